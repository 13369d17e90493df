#include "keeper/publish.hpp"

#include <malloc.h>
#include <vector>

#include "io/process.hpp"
#include "ledger/billing.hpp"
#include "ledger/campaign_sums.hpp"

namespace ads {

namespace {

constexpr Millis kLook = 400;      // between two looks at the file
constexpr Millis kTryAgain = 25;   // while a reader is behind
constexpr Millis kStopped = 1000;  // a publisher of an older term that takes longer

}  // namespace

Publish publish_image(const Target& target, std::span<const char> image, ProcessId me, Term term,
                      Seconds now, uint32_t& without_counters) noexcept {
    Zone zone = target.zone;
    State state = target.state;
    const auto fill_slots = [&](char* copy) noexcept {
        const Image published(copy);
        const auto& head = published.head();
        const SlotList list(
            published,
            {reinterpret_cast<GroupSlots*>(copy + head.group_slots.offset), head.group_slots.count},
            {reinterpret_cast<CampaignSlots*>(copy + head.campaign_slots.offset),
             head.campaign_slots.count});
        // During a binary upgrade two zones, and so two publishers, share one file.
        State::Grow grow;
        if (target.file != nullptr) {
            if (const uint32_t holder = target.file->lock(); holder != 0) {
                zone.head().waits_for.store(holder, std::memory_order_relaxed);
                return false;
            }
            grow = [&](uint64_t wanted) { target.file->reserve(wanted); };
        }
        reinterpret_cast<ImageHead*>(copy)->node = state.head().node;
        std::vector<uint32_t> slots(list.keys.size());
        without_counters = state.assign_slots(list.keys, slots, now, grow);
        list.set(slots);
        const Slots found{published.group_slots(), published.campaign_slots()};
        Billing(published, found, state, 0).catch_up(now);
        sum_campaigns(published, found, state, now);
        if (target.file != nullptr) {
            target.file->unlock();
        }
        return true;
    };
    return zone.publish(image, me, term, now, process_alive, fill_slots);
}

std::string describe(const catalog::Compiled& compiled) {
    std::string text;
    for (const auto& error : compiled.errors) {
        text += (text.empty() ? "" : "\n") + error.path + ": " + error.message;
    }
    if (compiled.more_errors > 0) {
        text += "\n… and " + std::to_string(compiled.more_errors) + " more";
    }
    return text;
}

void CatalogFile::step() {
    context_.tell(look());
    alarm_.pause(kLook);
}

EditReport CatalogFile::look() {
    const Seconds now = context_.now();
    const FileMark mark = mark_of(path_.c_str());
    if (!again_ && mark == seen_ && now / 86'400 == day_) {
        return {};
    }
    day_ = now / 86'400;
    const Term term = context_.term();
    std::string text;
    EditReport report;
    if (const int error = read_regular_file(path_.c_str(), text, &seen_); error != 0) {
        seen_ = mark;
        report = publisher_.cannot_read("cannot read \"" + path_ + "\": " + read_error(error));
    } else {
        report = publisher_.publish(text, term, now);
    }
    // An error may pass while the file stays as it is; one that does not is told once.
    const bool unread = report.outcome == Edit::unread;
    again_ = unread || report.outcome == Edit::waits || report.outcome == Edit::outdated;
    if (unread && report.text == told_) {
        return {};
    }
    told_ = unread ? report.text : "";
    return report;
}

EditReport CatalogPublisher::cannot_read(std::string why) {
    target_.zone.set_unreadable(why);
    EditReport report;
    report.outcome = Edit::unread;
    report.text = std::move(why);
    return report;
}

EditReport CatalogPublisher::publish(const std::string& text, Term term, Seconds now) {
    EditReport report;
    target_.zone.set_unreadable({});
    KeeperLife& life = target_.zone.head().keeper;
    const uint64_t hash = catalog::document_hash(text, now, target_.options);
    if (target_.zone.publishes(hash, target_.state.head().node)) {
        report.outcome = Edit::unchanged;
        target_.zone.set_error({});
    } else if (life.refuses(hash)) {
        report.outcome = Edit::refused;
        report.text = "the keeper died twice while it compiled this document";
        target_.zone.set_error(report.text);
    } else {
        life.compiling.store(hash);
        report = compile_and_put(text, hash, term, now);
        life.compiling.store(0);
        malloc_trim(0);
    }
    if (report.outcome != Edit::waits) {
        target_.zone.head().waits_for.store(0, std::memory_order_relaxed);
    }
    return report;
}

EditReport CatalogPublisher::compile_and_put(const std::string& text, uint64_t hash, Term term,
                                             Seconds now) {
    const auto compiled = catalog::compile(text, hash, now, target_.options);
    if (compiled.ok()) {
        return put(compiled, term, now);
    }
    EditReport report;
    report.outcome = Edit::refused;
    report.text = describe(compiled);
    target_.zone.set_error(report.text);
    return report;
}

// The keeper of an older configuration was stopped in the middle of its copy. It could not publish
// it any more, but when woken would write on into the half of the zone that is to be filled.
void CatalogPublisher::end_stopped_publisher() noexcept {
    const ProcessId holder = target_.zone.head().publisher.load();
    if (holder != holder_) {
        holder_ = holder;
        held_since_ = monotonic();
    } else if (monotonic() - held_since_ >= kStopped) {
        end_process(holder);
    }
}

EditReport CatalogPublisher::put(const catalog::Compiled& compiled, Term term, Seconds now) {
    EditReport report;
    report.outcome = Edit::waits;
    // Readers follow within a tick or two; if one does not, the caller asks again.
    for (int tries = 0; tries < 40 && !alarm_.stopped(); tries++) {
        switch (publish_image(target_, compiled.bytes, me_, term, now, report.without_counters)) {
            case Publish::outdated:
                report.outcome = Edit::outdated;
                return report;
            case Publish::done:
                report.outcome = Edit::published;
                report.generation = target_.zone.generation();
                target_.zone.set_error({});
                return report;
            case Publish::too_large:
                report.outcome = Edit::refused;
                report.text = "the compiled catalog has " + std::to_string(compiled.bytes.size()) +
                              " bytes, the zone holds " +
                              std::to_string(target_.zone.head().half_size) +
                              ": set ads_zone to at least " +
                              std::to_string(Zone::needed(compiled.bytes.size()) >> 20) + "m";
                target_.zone.set_error(report.text);
                return report;
            case Publish::waits:
                break;
            case Publish::busy:
                end_stopped_publisher();
                break;
        }
        alarm_.pause(kTryAgain);
    }
    return report;
}

}  // namespace ads
