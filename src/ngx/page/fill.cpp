// Which ads the slots of a page get.
#include <optional>
#include <string>
#include <utility>

#include "core/base/bytes.hpp"
#include "core/decide/insert.hpp"
#include "core/html/attributes.hpp"
#include "core/html/slot_keys.hpp"
#include "ngx/page/body.hpp"
#include "ngx/request/ad_request.hpp"
#include "ngx/request/origin.hpp"
#include "ngx/worker/worker.hpp"

namespace ads::ngx {

namespace {

constexpr size_t kLongestSlug = 256;

std::string_view tag_of(const PageSlot& slot) noexcept {
    return slot.text.substr(0, slot.content);
}

uint32_t placement_of(const Image& image, const PageSlot& slot) noexcept {
    char memory[kLongestSlug];
    std::string_view value;
    if (!html::find_attribute(tag_of(slot), "placement", value) || value.size() > sizeof memory) {
        return kNone;
    }
    return image.find_placement(html::decode(value, memory));
}

// Without memory, a slot has no key-values.
void read_keys(PageCtx& page, PageSlot& slot) noexcept {
    const std::string_view tag = tag_of(slot);
    if (tag.find('-', page.conf->element.len + 1) == tag.npos) {
        return;
    }
    auto* memory = static_cast<char*>(ngx_pnalloc(page.r->pool, tag.size()));
    auto* keys = memory == nullptr ? nullptr : pnew<Keys>(page.r->pool);
    if (keys != nullptr) {
        html::read_slot_keys(tag, {memory, tag.size()}, *keys);
        slot.keys = *keys;
    }
}

// The page's address as its visitor knows it, or at least its path.
std::string_view url_of(ngx_http_request_t* r) noexcept {
    std::string url;
    if (!find_origin(r, url)) {
        url.clear();
    }
    url += view(r->unparsed_uri);
    return valid_utf8(url) ? view(copy(r->pool, url)) : std::string_view();
}

// What the page has before these slots.
void add_page(PageCtx& page, AdRequest& request) noexcept {
    if (page.url.data() == nullptr) {
        page.url = url_of(page.r);
    }
    request.query.url = page.url;
    request.known = page.visitor;
    for (size_t i = 0; i < request.ctx->served_count; i++) {
        request.query.shown.push_back(request.ctx->served[i].creative);
    }
}

using Slots = FixedVector<PageSlot*, kMaxSlots>;

// Takes those with these key-values out of the list.
Slots take_alike(Slots& slots, std::span<const KeyValue> keys) noexcept {
    Slots alike;
    Slots rest;
    for (PageSlot* slot : slots) {
        const bool same = std::equal(
            slot->keys.begin(), slot->keys.end(), keys.begin(), keys.end(),
            [](const auto& a, const auto& b) { return a.name == b.name && a.value == b.value; });
        (same ? alike : rest).push_back(slot);
    }
    slots = rest;
    return alike;
}

// Slots at hand with the same key-values, those that the page declares, and their ads.
class Fill {
public:
    Fill(PageCtx& page, Worker& worker, RequestCtx* ctx, std::span<const KeyValue> keys) noexcept
        : page_(page),
          generation_(worker.catalog.generation()),
          image_(worker.catalog.image()),
          urls_(view(loc_conf(page.r)->base), view(loc_conf(page.r)->tag_base)),
          request_(worker, page.r, ctx) {
        for (const auto& key : keys) {
            request_.query.keys.push_back(key);
        }
    }

    // False if it waits for the fleet.
    bool run(const Slots& slots) noexcept {
        add_declared();
        for (PageSlot* slot : slots) {
            assign(*slot);
        }
        if (placements_.empty()) {
            return true;
        }
        add_page(page_, request_);
        if (request_.ctx->limited) {
            refuse_ads(request_, placements_);
            finish();
            return true;
        }
        request_.may_wait = true;
        return decide();
    }

    // The same when the fleet has answered.
    bool run_again() noexcept { return decide(); }

    // Whether the catalog is another than when it began, in which placements have other numbers.
    bool is_stale() const noexcept { return request_.worker.catalog.generation() != generation_; }

    // Puts back the slots that are not filled.
    void drop(Slots& slots) noexcept {
        if (FleetDecision* decision = std::exchange(request_.ctx->fleet, nullptr)) {
            abandon(decision);
        }
        for (const auto& [slot, index] : slots_) {
            slots.push_back(slot);
        }
    }

private:
    struct Assigned {
        PageSlot* slot;
        size_t index;  // of its placement
    };

    void add_declared() noexcept {
        if (page_.declared == nullptr) {
            return;
        }
        for (const uint32_t hash : page_.declared->open) {
            const uint32_t placement = image_.find_placement(hash);
            if (placement != kNone) {
                placements_.push_back(placement);
                taken_.push_back(false);
            }
        }
        page_.declared->open.clear();
    }

    void assign(PageSlot& slot) noexcept {
        const uint32_t placement = placement_of(image_, slot);
        if (placement == kNone || use_ready(slot, image_.placements()[placement].hash)) {
            return;
        }
        size_t index = 0;
        while (index < placements_.size() && (taken_[index] || placements_[index] != placement)) {
            index++;
        }
        if (index == placements_.size() &&
            (!placements_.push_back(placement) || !taken_.push_back(false))) {
            return;
        }
        taken_[index] = true;
        slots_.push_back({&slot, index});
    }

    bool use_ready(const PageSlot& slot, uint32_t hash) noexcept {
        if (page_.declared == nullptr) {
            return false;
        }
        for (auto& ready : page_.declared->ready) {
            if (ready.placement == hash && !ready.used) {
                ready.used = true;
                note_decided(1);
                write(slot, slot.text.size() + ready.attributes.size() + ready.content.size(),
                      [&](Out& out, const SlotText& text) {
                          render_slot(out, text, ready.attributes, ready.content);
                      });
                return true;
            }
        }
        return false;
    }

    bool decide() noexcept {
        switch (decide_ads(request_, placements_)) {
            case Decided::done:
                finish();
                return true;
            case Decided::waits:
                return false;
            case Decided::failed:
                break;
        }
        return true;
    }

    void finish() noexcept {
        if (page_.visitor == nullptr) {
            if (auto* visitor = pnew<Visitor>(page_.r->pool)) {
                *visitor = request_.visitor;
                page_.visitor = visitor;
            }
        }
        for (const auto& [slot, index] : slots_) {
            render(*slot, index);
        }
        keep_ready();
        note_decided(slots_.size());
    }

    void note_decided(size_t slots) noexcept {
        page_.decided += slots;
        if (slots > 0) {
            page_.result = PageResult::decided;
        }
    }

    // The ad for the placement; nullptr if there is none.
    const Ad* ad_of(size_t index) const noexcept {
        const auto picks = request_.page.picks();
        if (index >= picks.size() || !picks[index].filled()) {
            return nullptr;
        }
        size_t before = 0;
        for (size_t i = 0; i < index; i++) {
            before += picks[i].filled() ? 1 : 0;
        }
        return &request_.ads[before];
    }

    // Without memory, or when it does not fit, the slot stays as it is.
    template <class F>
    void write(const PageSlot& slot, size_t room, F f) noexcept {
        auto* memory = static_cast<char*>(ngx_pnalloc(page_.r->pool, room));
        if (memory == nullptr || slot.text.empty()) {
            return;
        }
        Out out(memory, room);
        f(out, SlotText{slot.text, page_.conf->element.len + 1, slot.content, slot.content_end});
        if (!out.overflow()) {
            replace_text(*slot.buffer, out.text());
        }
    }

    void render(const PageSlot& slot, size_t index) noexcept {
        const Ad* ad = ad_of(index);
        if (ad == nullptr) {
            write(slot, slot.text.size() + kUnfilled.size(),
                  [](Out& out, const SlotText& text) { render_slot(out, text, kUnfilled, {}); });
            return;
        }
        write(slot, slot.text.size() + insertion_size(image_, *ad, urls_),
              [&](Out& out, const SlotText& text) {
                  render_slot(out, image_, text, *ad, urls_, page_.conf->pixel);
              });
    }

    // The ads of slots that are still to come: when they come, the catalog may be another.
    void keep_ready() noexcept {
        for (size_t i = 0; i < placements_.size(); i++) {
            if (taken_[i]) {
                continue;
            }
            DeclaredSlots::Ready ready{
                image_.placements()[placements_[i]].hash, false, kUnfilled, {}};
            if (const Ad* ad = ad_of(i)) {
                const size_t room = insertion_size(image_, *ad, urls_);
                auto* memory = static_cast<char*>(ngx_pnalloc(page_.r->pool, room));
                if (memory == nullptr) {
                    continue;
                }
                Out out(memory, room);
                render_attributes(out, image_, *ad, urls_);
                ready.attributes = out.text();
                render_content(out, image_, *ad, urls_, page_.conf->pixel);
                ready.content = out.text().substr(ready.attributes.size());
            }
            page_.declared->ready.push_back(ready);
        }
    }

    PageCtx& page_;
    const uint64_t generation_;
    const Image& image_;
    AdUrls urls_;
    AdRequest request_;
    FixedVector<uint32_t, kMaxSlots> placements_;  // to be decided
    FixedVector<bool, kMaxSlots> taken_;           // by a slot at hand
    FixedVector<Assigned, kMaxSlots> slots_;
};

}  // namespace

// The slots at hand: those with the same key-values are decided together, one set after the other.
class PageFill {
public:
    PageFill(PageCtx& page, Worker& worker, RequestCtx* ctx, std::span<PageSlot> slots) noexcept
        : page_(page), worker_(worker), ctx_(ctx), served_before_(ctx->served_count) {
        for (PageSlot& slot : slots) {
            read_keys(page, slot);
            rest_.push_back(&slot);
        }
    }

    PageHold run() noexcept {
        do {
            // First those that have none: so are declared placements decided.
            const auto keys = set_ ? rest_[0]->keys : std::span<const KeyValue>();
            const Slots alike = take_alike(rest_, keys);
            if (!set_.emplace(page_, worker_, ctx_, keys).run(alike)) {
                keep_texts(alike);
                keep_texts(rest_);
                return PageHold::fleet;
            }
        } while (!rest_.empty());
        return end();
    }

    PageHold run_again() noexcept {
        if (!worker_.refresh()) {
            Slots unfilled;
            set_->drop(unfilled);
            return end();
        }
        if (set_->is_stale()) {
            set_->drop(rest_);
        } else if (!set_->run_again()) {
            return PageHold::fleet;
        }
        return rest_.empty() ? end() : run();
    }

private:
    // What was read may be gone when the fleet has answered. Without memory, a slot has no text.
    void keep_texts(const Slots& slots) noexcept {
        for (PageSlot* slot : slots) {
            slot->text = view(copy(page_.r->pool, slot->text));
        }
    }

    PageHold end() const noexcept {
        return ctx_->served_count > served_before_ ? PageHold::write : PageHold::none;
    }

    PageCtx& page_;
    Worker& worker_;
    RequestCtx* ctx_;
    const size_t served_before_;
    Slots rest_;  // of the sets to come
    std::optional<Fill> set_;
};

bool declare_slots(PageCtx& page, std::string_view list) noexcept {
    if (page.declared == nullptr) {
        page.declared = pnew<DeclaredSlots>(page.r->pool);
        if (page.declared == nullptr) {
            return false;
        }
    }
    while (!list.empty()) {
        const size_t comma = std::min(list.find(','), list.size());
        std::string_view id = list.substr(0, comma);
        list.remove_prefix(std::min(comma + 1, list.size()));
        const size_t begin = std::min(id.find_first_not_of(" \t\n\r\f"), id.size());
        id = id.substr(begin, id.find_last_not_of(" \t\n\r\f") + 1 - begin);
        const size_t known = page.declared->open.size() + page.declared->ready.size();
        if (!id.empty() && known < kMaxSlots) {
            page.declared->open.push_back(fnv1a32(id));
        }
    }
    return true;
}

PageHold fill_slots(PageCtx& page) noexcept {
    Worker* worker = Worker::current();
    RequestCtx* ctx = context(page.r);
    const size_t count = std::exchange(page.slot_count, 0);
    if (worker == nullptr || ctx == nullptr || !worker->refresh()) {
        return PageHold::none;
    }
    const std::span slots(page.slots, count);
    if (!worker->fleet.on()) {
        return PageFill(page, *worker, ctx, slots).run();
    }
    static_assert(std::is_trivially_destructible_v<PageFill>);
    void* memory = page.fill;
    if (memory == nullptr) {
        memory = ngx_palloc(page.r->pool, sizeof(PageFill));
    }
    if (memory == nullptr) {
        return PageHold::none;
    }
    page.fill = ::new (memory) PageFill(page, *worker, ctx, slots);
    return page.fill->run();
}

PageHold fill_waiting(PageCtx& page) noexcept {
    return page.fill->run_again();
}

}  // namespace ads::ngx
