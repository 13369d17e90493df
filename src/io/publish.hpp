// Putting a compiled catalog into the zone, and editing it live.
#pragma once

#include <pthread.h>

#include <atomic>
#include <string>

#include "core/catalog/compile.hpp"
#include "io/file.hpp"
#include "io/state_file.hpp"
#include "shm/zone.hpp"

namespace ads {

// Where a catalog goes: the zone, and the counters its groups get. The file is
// null where the counters live in the zone.
struct Target {
    Zone zone;
    State state;
    StateFile* file = nullptr;
};

// Publishes the image. `without_counters` is the number of groups for which
// no slot was left: they are served, but not counted.
Publish publish_image(const Target& target, std::span<const char> image, Who me, Seconds now,
                      uint32_t& without_counters) noexcept;

// All errors as text, a line each: `PATH: MESSAGE`.
std::string describe(const catalog::Compiled& compiled);

// Reads the catalog file again when it changed, compiles it in a thread of its
// own and publishes it. All calls come from the event loop.
class CatalogEditor {
public:
    enum class Outcome : uint8_t {
        none,  // nothing to tell
        published,
        unchanged,
        waits,    // a reader is behind; tried again at the next poll
        refused,  // see text
    };
    struct Report {
        Outcome outcome = Outcome::none;
        std::string text;
        uint64_t generation = 0;
        uint32_t without_counters = 0;
    };

    CatalogEditor(std::string path, Target target, Who me, uint64_t epoch)
        : path_(std::move(path)), target_(target), me_(me), epoch_(epoch) {}
    CatalogEditor(const CatalogEditor&) = delete;
    ~CatalogEditor() { stop(); }

    // Starts work if there is any, and tells what came of the last.
    Report poll(Seconds now);

    // Waits for the thread, if one runs.
    void stop() noexcept;

private:
    static void* run(void* self);
    void work();
    void publish(const catalog::Compiled& compiled);

    const std::string path_;
    Target target_;
    const Who me_;
    const uint64_t epoch_;

    FileMark seen_;       // of the file last read
    Seconds day_ = 0;     // for which it was compiled
    bool again_ = false;  // publication waits
    bool running_ = false;
    pthread_t thread_{};
    std::atomic<bool> finished_{false};
    std::atomic<bool> stopping_{false};

    // Of the thread while it runs, of the loop otherwise.
    FileMark mark_;
    Seconds now_ = 0;
    Report report_;
};

}  // namespace ads
