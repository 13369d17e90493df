// Writes a backlog, as a worker that is gone would have left it:
//
//   segments FOLDER EVENTS [GROUPS]
//
// A site's mix: for each serve an impression, for some a click, over some
// hundred ad groups, two thirds of the visitors with consent, now.
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "core/base/rng.hpp"
#include "core/event/event.hpp"
#include "io/file.hpp"
#include "io/spool.hpp"

using namespace ads;

namespace {

constexpr size_t kSegment = 8 << 20;

[[noreturn]] void fail(const std::string& why) {
    std::fprintf(stderr, "segments: %s\n", why.c_str());
    std::exit(1);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 3) {
        fail("usage: segments FOLDER EVENTS [GROUPS]");
    }
    const std::string folder = argv[1];
    const long wanted = std::atol(argv[2]);
    const auto groups = static_cast<uint64_t>(argc > 3 ? std::atol(argv[3]) : 300);
    mkdir(folder.c_str(), 0755);
    timespec t{};
    clock_gettime(CLOCK_REALTIME, &t);
    const Millis now = static_cast<Millis>(t.tv_sec) * 1000;
    Rng rng(static_cast<uint64_t>(t.tv_nsec) ^ static_cast<uint64_t>(t.tv_sec) << 32);
    std::vector<char> record(kMaxRecord);
    std::string data;
    int segments = 0;
    const auto close = [&] {
        char name[64];
        std::snprintf(name, sizeof name, "/%013lld-00000001-1-1-%d.seg",
                      static_cast<long long>(now), segments++);
        const Fd fd(::open((folder + name).c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644));
        const std::string head = segment_head(now, 1);
        if (!fd || write_all(fd.get(), head) != head.size() ||
            write_all(fd.get(), data) != data.size()) {
            fail(folder + name + " cannot be written");
        }
        data.clear();
    };
    const auto add = [&](const Event& event) {
        data.append(record.data(), write_record(event, record));
        if (data.size() >= kSegment) {
            close();
        }
    };
    static constexpr std::string_view kCountries[] = {"DE", "FR", "US", "GB", "PL"};
    static constexpr std::string_view kPlacements[] = {"home-top", "home-side", "in-article"};
    for (long done = 0; done < wanted;) {
        char session[24];
        const uint64_t who = rng.below(200'000);
        std::snprintf(session, sizeof session, "s%020llu", static_cast<unsigned long long>(who));
        const uint64_t group = 1 + rng.below(groups);
        Event event;
        event.consent = who % 3 != 0;
        event.issued = now - static_cast<Millis>(rng.below(3'600'000));
        event.time = event.issued;
        event.serve = rng.next();
        event.campaign = static_cast<Id>(1 + group / 10);
        event.ad_group = static_cast<Id>(group);
        event.creative = static_cast<Id>(group);
        event.node = 1;
        event.device = static_cast<uint8_t>(rng.below(3));
        event.placement = kPlacements[rng.below(3)];
        event.country = kCountries[rng.below(5)];
        if (event.consent) {
            event.session = session;
        }
        add(event);
        done++;
        if (done < wanted) {
            event.type = EventType::impression;
            event.time += 900;
            event.price = 250'000;
            add(event);
            done++;
        }
        if (done < wanted && rng.below(50) == 0) {
            event.type = EventType::click;
            event.time += 5000;
            event.price = 0;
            add(event);
            done++;
        }
    }
    if (!data.empty()) {
        close();
    }
}
