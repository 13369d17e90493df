#include "io/publish.hpp"

#include <malloc.h>
#include <time.h>

#include <cstring>
#include <vector>

#include "io/process.hpp"
#include "io/thread.hpp"
#include "shm/billing.hpp"

namespace ads {

Publish publish_image(const Target& target, std::span<const char> image, Who me, Term term,
                      Seconds now, uint32_t& without_counters, catalog::Pace* pace) noexcept {
    Zone zone = target.zone;
    State state = target.state;
    const auto fill_slots = [&](char* copy) noexcept {
        if (pace != nullptr) {
            pace->go_alone();
        }
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
            target.file->lock();
            grow = [&](uint64_t wanted) { target.file->reserve(wanted); };
        }
        reinterpret_cast<ImageHead*>(copy)->node = state.head().node;
        std::vector<uint32_t> slots(list.keys.size());
        without_counters = state.assign_slots(list.keys, slots, now, grow);
        list.set(slots);
        const Slots found{published.group_slots(), published.campaign_slots()};
        Billing(published, found, state, 0).catch_up(now);
        if (target.file != nullptr) {
            target.file->unlock();
        }
    };
    return zone.publish(image, me, term, now, process_alive, fill_slots, pace);
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

EditReport CatalogFile::poll(Seconds now, Term term) {
    EditReport report;
    if (running_) {
        if (!finished_.load(std::memory_order_acquire)) {
            return report;
        }
        pthread_join(thread_, nullptr);
        running_ = false;
        seen_ = mark_;
        report = std::move(report_);
        // An error may pass while the file stays as it is; one that does not is told once.
        const bool unread = report.outcome == Edit::unread;
        again_ = unread || report.outcome == Edit::waits || report.outcome == Edit::outdated;
        if (unread && report.text == told_) {
            return {};
        }
        told_ = unread ? report.text : "";
        return report;
    }
    const FileMark mark = mark_of(path_.c_str());
    if (!again_ && mark == seen_ && now / 86'400 == day_) {
        return report;
    }
    day_ = now / 86'400;
    now_ = now;
    term_ = term;
    report_ = {};
    finished_.store(false, std::memory_order_relaxed);
    stopping_.store(false, std::memory_order_relaxed);

    running_ = start_thread(thread_, run, this);
    return report;
}

void CatalogFile::stop() noexcept {
    stopping_.store(true, std::memory_order_relaxed);
    if (running_) {
        turns_->hurry();
        pthread_join(thread_, nullptr);
        running_ = false;
    }
}

void* CatalogFile::run(void* self) {
    auto& file = *static_cast<CatalogFile*>(self);
    const bool large = mark_of(file.path_.c_str()).size > static_cast<int64_t>(kLargeDocument);
    {
        SharedCore core(large ? file.turns_.get() : nullptr, file.stopping_);
        file.work(core);
        if (core.go_alone()) {
            malloc_trim(0);
        }
    }
    file.finished_.store(true, std::memory_order_release);
    return nullptr;
}

void CatalogFile::work(catalog::Pace& pace) {
    std::string text;
    if (const int error = read_regular_file(path_.c_str(), text, &mark_, &pace); error != 0) {
        mark_ = mark_of(path_.c_str());
        report_ = press_.cannot_read("cannot read \"" + path_ + "\": " + read_error(error));
        return;
    }
    report_ = press_.publish(text, term_, now_, pace);
}

EditReport Press::cannot_read(std::string why) {
    target_.zone.set_unreadable(why);
    EditReport report;
    report.outcome = Edit::unread;
    report.text = std::move(why);
    return report;
}

EditReport Press::publish(const std::string& text, Term term, Seconds now, catalog::Pace& pace) {
    EditReport report;
    target_.zone.set_unreadable({});
    const uint64_t hash = catalog::document_hash(text, now, &pace);
    if (target_.zone.publishes(hash, target_.state.head().node)) {
        report.outcome = Edit::unchanged;
        target_.zone.set_error({});
    } else if (const auto compiled = catalog::compile(text, hash, now, &pace); compiled.stopped) {
        return report;
    } else if (compiled.ok()) {
        report = put(compiled, term, now, pace);
    } else {
        report.outcome = Edit::refused;
        report.text = describe(compiled);
        target_.zone.set_error(report.text);
    }
    if (report.outcome != Edit::waits) {
        target_.zone.head().waits_for.store(0, std::memory_order_relaxed);
    }
    return report;
}

EditReport Press::put(const catalog::Compiled& compiled, Term term, Seconds now,
                      catalog::Pace& pace) {
    EditReport report;
    report.outcome = Edit::waits;
    // Readers follow within a tick or two; if one does not, the caller asks again.
    for (int tries = 0; tries < 40 && pace.go_alone(); tries++) {
        switch (publish_image(target_, compiled.bytes, me_, term, now, report.without_counters,
                              &pace)) {
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
                              ": give ads_zone at least " +
                              std::to_string(Zone::needed(compiled.bytes.size()) >> 20) + "m";
                target_.zone.set_error(report.text);
                return report;
            case Publish::waits:
            case Publish::busy:
                break;
        }
        const timespec pause{0, 25'000'000};
        nanosleep(&pause, nullptr);
    }
    return report;
}

}  // namespace ads
