#include "ngx/worker/request_counts.hpp"

#include "ngx/worker/recorder.hpp"

namespace ads::ngx {

namespace {

constexpr Millis kSummaryEvery = 60'000;
constexpr Millis kHour = 3'600'000;

}  // namespace

void RequestCounts::leave(const Image& image) noexcept {
    add_to_state(image);
    outcomes_.gather(image);
}

void RequestCounts::bind(const Image& image) noexcept {
    requests_.assign(image.placements().size(), 0);
    outcomes_.bind(image.placements().size());
}

void RequestCounts::add_to_state(const Image& image) noexcept {
    State& state = process_.state();
    for (size_t i = 0; i < requests_.size(); i++) {
        if (requests_[i] > 0) {
            state.add_requests(image.placements()[i].hash, requests_[i]);
            requests_[i] = 0;
        }
    }
    traffic_.add_to(state.head().traffic);
    if (serves_ > 0) {
        state.head().health.served(process_.now() / 1000, serves_);
        serves_ = 0;
    }
}

void RequestCounts::summarize(const Image& image, Recorder& recorder, bool now_anyway) noexcept {
    const Millis now = process_.now();
    hour_end_ = (now / kHour + 1) * kHour;
    if (process_.conf().postgres.len == 0) {
        return;  // unused
    }
    const Millis since = outcomes_since_ == 0 ? now : outcomes_since_;
    outcomes_since_ = now;
    if (!now_anyway && since / kHour == now / kHour && now >= since &&
        now - since < kSummaryEvery) {
        outcomes_since_ = since;
        return;
    }
    outcomes_.gather(image);
    while (!outcomes_.empty()) {
        size_t placements = 0;
        const std::string text = outcomes_.text(placements);
        if (!recorder.write_alone({.type = kSummary,
                                   .time = since,
                                   .issued = now,
                                   .serve = process_.rng().next(),
                                   .node = process_.node(),
                                   .metadata = text})) {
            return;
        }
        outcomes_.forget(placements);
    }
}

}  // namespace ads::ngx
