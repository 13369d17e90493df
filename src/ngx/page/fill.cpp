// Which ads the slots of a page get.
#include <string>

#include "core/decide/insert.hpp"
#include "core/html/attributes.hpp"
#include "ngx/page/page.hpp"
#include "ngx/request/ad_request.hpp"
#include "ngx/request/origin.hpp"
#include "ngx/worker/worker.hpp"

namespace ads::ngx {

namespace {

constexpr size_t kLongestSlug = 256;

uint32_t placement_of(const Image& image, const PageSlot& slot) noexcept {
    char memory[kLongestSlug];
    std::string_view value;
    if (!html::find_attribute(slot.text.substr(0, slot.content), "placement", value) ||
        value.size() > sizeof memory) {
        return kNone;
    }
    return image.find_placement(html::decode(value, memory));
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

// The one of the decided ads that is for the pick; nullptr if it has none.
const Ad* ad_of(const AdRequest& request, size_t index) noexcept {
    const auto picks = request.page.picks();
    if (index >= picks.size() || !picks[index].filled()) {
        return nullptr;
    }
    size_t before = 0;
    for (size_t i = 0; i < index; i++) {
        before += picks[i].filled() ? 1 : 0;
    }
    return &request.ads[before];
}

void replace(ngx_buf_t& b, std::string_view text) noexcept {
    b.pos = str(text).data;
    b.last = b.pos + text.size();
    b.memory = 1;
    b.temporary = 0;
    b.mmap = 0;
    b.in_file = 0;
}

// Without memory, or when it does not fit, the slot stays as it is.
void render(const PageCtx& page, const Image& image, const PageSlot& slot, const Ad* ad) noexcept {
    const std::string_view base = view(loc_conf(page.r)->base);
    const SlotText text{slot.text, page.conf->element.len + 1, slot.content, slot.content_end};
    const size_t room =
        ad == nullptr ? slot.text.size() + kUnfilledSlot.size() : slot_size(image, text, *ad, base);
    auto* memory = static_cast<char*>(ngx_pnalloc(page.r->pool, room));
    if (memory == nullptr) {
        return;
    }
    Out out(memory, room);
    if (ad == nullptr) {
        render_unfilled(out, text);
    } else {
        render_slot(out, image, text, *ad, base, page.conf->pixel);
    }
    if (!out.overflow()) {
        replace(*slot.buffer, out.text());
    }
}

}  // namespace

bool fill_slots(PageCtx& page) noexcept {
    Worker* worker = Worker::current();
    RequestCtx* ctx = context(page.r);
    const std::span<PageSlot> slots(page.slots, page.slot_count);
    page.slot_count = 0;
    if (worker == nullptr || ctx == nullptr || !worker->refresh()) {
        return false;
    }
    AdRequest request(*worker, page.r, ctx);
    add_page(page, request);
    FixedVector<uint32_t, kMaxSlots> placements;
    for (auto& slot : slots) {
        slot.placement = placement_of(worker->catalog.image(), slot);
        if (slot.placement != kNone) {
            placements.push_back(slot.placement);
        }
    }
    if (placements.empty()) {
        return false;
    }
    const size_t before = ctx->served_count;
    if (ctx->limited) {
        refuse_ads(request, placements);
    } else if (!decide_ads(request, placements)) {
        return false;
    }
    if (page.visitor == nullptr) {
        if (auto* visitor = pnew<Visitor>(page.r->pool)) {
            *visitor = request.visitor;
            page.visitor = visitor;
        }
    }
    page.decided += placements.size();
    page.result = PageResult::decided;
    size_t index = 0;
    for (const auto& slot : slots) {
        if (slot.placement != kNone) {
            render(page, worker->catalog.image(), slot, ad_of(request, index++));
        }
    }
    return ctx->served_count > before;
}

}  // namespace ads::ngx
