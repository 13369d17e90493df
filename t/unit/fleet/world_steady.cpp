#include "fleet/stepped.hpp"
//
#include "fleet/world.hpp"

namespace fleet_test {

namespace {

constexpr Millis kTick = 20;      // a request each for every node
constexpr size_t kShipped = 100;  // events that a node ships in a tick at most

}  // namespace

World::Steady World::steady(const Traffic& traffic) {
    constexpr Seconds kWait = 10;  // as in ngx/conf, for what others have recorded
    constexpr Millis kOldest = 15'000;
    quiet_ = true;
    reservation_ = kOldest / 1000 + kWait;
    now_ = (kMidnight + 40'000) * 1000;
    set_limits(editions_[edition_].limits);
    for (size_t i = 0; i < traffic.nodes; i++) {
        machines_.push_back(std::make_unique<Machine>(layout_));
        machines_.back()->state.head().node = ++nodes_;
        start(i);
    }
    struct Pixel {
        size_t machine = 0;
        Serve serve;
    };
    std::multimap<Millis, Pixel> pixels;
    const Image image = editions_[edition_].image();
    const Slots slots{layout_.groups, layout_.campaigns};
    Process visitor;
    Steady result;
    const Millis begun = now_;
    const auto second = [&] { return (now_ - begun) / 1000; };
    while (second() < traffic.seconds && outcome_.violation.empty()) {
        now_ += kTick;
        away_ = second() >= traffic.away_from && second() < traffic.away_until;
        deliver();
        for (size_t i = 0; i < machines_.size(); i++) {
            Machine& machine = *machines_[i];
            burst_ = 1'000'000;
            machine.processes.back()->fiber->resume();  // the keeper
            Billing billing(image, slots, machine.state, reservation_);
            serve(machine, visitor, billing, image);
            for (Serve& one : machine.pending) {
                const size_t other = (i + 1 + rng_.below(machines_.size() - 1)) % machines_.size();
                if (!chance(traffic.lost)) {
                    const auto age = static_cast<Millis>(rng_.below(kOldest));
                    pixels.emplace(now_ + age, Pixel{other, one});
                }
            }
            machine.pending.clear();
            check_words(machine);
        }
        while (!pixels.empty() && pixels.begin()->first <= now_) {
            const Pixel& pixel = pixels.begin()->second;
            Machine& machine = *machines_[pixel.machine];
            Billing billing(image, slots, machine.state, reservation_);
            record_pixels(machine, visitor, billing, image, pixel.serve);
            pixels.erase(pixels.begin());
        }
        for (size_t i = 0; i < machines_.size() && !away_; i++) {
            auto& spool = machines_[i]->spool;
            std::vector<Record> rest;
            size_t shipped = 0;
            for (Record& record : spool) {
                if (record.ready > now_ || shipped == kShipped) {
                    rest.push_back(std::move(record));
                    continue;
                }
                shipped++;
                const bool impression = record.event.type == EventType::impression;
                const auto fate = store(*machines_[i], std::move(record));
                result.impressions += impression ? 1 : 0;
                result.late += impression && fate == PostgresModel::Fate::late ? 1 : 0;
            }
            spool = std::move(rest);
        }
    }
    const Day today = image.day_of(image.campaigns()[0], now_ / 1000);
    for (const auto& [wall, entry] : postgres_.walls()) {
        if (wall.day == today || wall.day == 0) {
            result.used[wall] =
                static_cast<double>(entry.billed) / static_cast<double>(entry.wall.limit);
            if (postgres_.is_denied(entry, now_ / 1000)) {
                result.reached.insert(wall);
            }
        }
    }
    result.violation = outcome_.violation;
    return result;
}

}  // namespace fleet_test
