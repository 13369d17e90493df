// Putting a compiled catalog into the zone, and editing it live.
#pragma once

#include <pthread.h>

#include <atomic>
#include <memory>
#include <string>

#include "core/catalog/compile.hpp"
#include "io/file.hpp"
#include "io/state_file.hpp"
#include "io/turns.hpp"
#include "shm/zone.hpp"

namespace ads {

// Where a catalog goes: the zone, and the counters its groups get. The file is
// null where the counters live in the zone.
struct Target {
    Zone zone;
    State state;
    StateFile* file = nullptr;
};

// Publishes the image of a document that was read in this term. `without_counters` is the
// number of groups for which no slot was left: they are served, but not counted.
Publish publish_image(const Target& target, std::span<const char> image, Who me, Term term,
                      Seconds now, uint32_t& without_counters,
                      catalog::Pace* pace = nullptr) noexcept;

// All errors as text, a line each: `PATH: MESSAGE`.
std::string describe(const catalog::Compiled& compiled);

// What came of an edit.
enum class Edit : uint8_t {
    none,  // nothing to tell
    published,
    unchanged,
    waits,     // a reader is behind; tried again later
    outdated,  // the right to publish has changed hands meanwhile: the source is read again
    refused,   // see text
    unread,    // the source cannot be read; see text
};
struct EditReport {
    Edit outcome = Edit::none;
    std::string text;
    uint64_t generation = 0;
    uint32_t without_counters = 0;
};

// Bytes. Who compiles a larger document shares the core with the event loop: serving goes first.
constexpr size_t kLargeDocument = 1 << 20;

// Compiles documents and publishes them, for one thread at a time.
class Press {
public:
    Press(Target target, Who me) noexcept : target_(target), me_(me) {}

    // A document that was read in this term, as of `now`. Gives up early if it shall not go on.
    EditReport publish(const std::string& text, Term term, Seconds now, catalog::Pace& pace);

    // The source cannot be read: what is served stays, the status tells why.
    EditReport cannot_read(std::string why);

private:
    EditReport put(const catalog::Compiled& compiled, Term term, Seconds now, catalog::Pace& pace);

    Target target_;
    Who me_;
};

// Where live edits come from. All calls come from the event loop, and only of
// the worker that has the lease.
class CatalogSource {
public:
    virtual ~CatalogSource() = default;

    // Starts work if there is any, and tells what came of the last. `term` is that of the lease.
    virtual EditReport poll(Seconds now, Term term) = 0;

    // Another worker has the lease now: what runs may end, nobody waits for it.
    virtual void rest() noexcept {}

    // Waits for what runs to end.
    virtual void stop() noexcept = 0;
};

// Reads the catalog file again when it changed, and compiles it in a thread of
// its own.
class CatalogFile : public CatalogSource {
public:
    CatalogFile(std::string path, Target target, Who me, std::shared_ptr<Turns> turns)
        : path_(std::move(path)), press_(target, me), turns_(std::move(turns)) {}
    CatalogFile(const CatalogFile&) = delete;
    ~CatalogFile() override { stop(); }

    EditReport poll(Seconds now, Term term) override;
    void stop() noexcept override;

private:
    static void* run(void* self);
    void work(catalog::Pace& pace);

    const std::string path_;
    Press press_;
    const std::shared_ptr<Turns> turns_;  // with the event loop

    FileMark seen_;       // of the file last read
    Seconds day_ = 0;     // for which it was compiled
    bool again_ = false;  // not read, or not published
    std::string told_;    // why it cannot be read
    bool running_ = false;
    pthread_t thread_{};
    std::atomic<bool> finished_{false};
    std::atomic<bool> stopping_{false};

    // Of the thread while it runs, of the loop otherwise.
    FileMark mark_;
    Seconds now_ = 0;
    Term term_ = 0;
    EditReport report_;
};

}  // namespace ads
