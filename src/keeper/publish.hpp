// Compiles catalogs and publishes them to the zone.
#pragma once

#include <functional>
#include <string>

#include "core/catalog/compile.hpp"
#include "io/file.hpp"
#include "io/state_file.hpp"
#include "io/thread.hpp"
#include "ledger/zone.hpp"

namespace ads {

// The destination of a catalog: the zone, and the counters of its groups. The file is null if the
// counters are in the zone.
struct Target {
    Zone zone;
    State state;
    StateFile* file = nullptr;
    catalog::Options options;  // how documents are compiled for it
};

// Publishes the image of a document that was read in this term. `without_counters` is the
// number of groups for which no slot was left: they are served, but not counted.
Publish publish_image(const Target& target, std::span<const char> image, ProcessId me, Term term,
                      Seconds now, uint32_t& without_counters) noexcept;

// All errors as text, a line each: `PATH: MESSAGE`.
std::string describe(const catalog::Compiled& compiled);

// The outcome of an edit.
enum class Edit : uint8_t {
    none,  // nothing to report
    published,
    unchanged,
    waits,     // a reader uses the other image; tried again later
    outdated,  // another keeper publishes now: the source is read again
    refused,   // see text
    unread,    // the source cannot be read; see text
};
struct EditReport {
    Edit outcome = Edit::none;
    std::string text;
    uint64_t generation = 0;
    uint32_t without_counters = 0;
};

// Compiles documents and publishes them, in one thread.
class CatalogPublisher {
public:
    CatalogPublisher(Target target, ProcessId me, const Alarm& alarm) noexcept
        : target_(target), me_(me), alarm_(alarm) {}

    // A document that was read in this term, as of `now`.
    EditReport publish(const std::string& text, Term term, Seconds now);

    // The source cannot be read: what is served stays, the status tells why.
    EditReport cannot_read(std::string why);

private:
    EditReport compile_and_put(const std::string& text, uint64_t hash, Term term, Seconds now);
    EditReport put(const catalog::Compiled& compiled, Term term, Seconds now);

    void end_stopped_publisher() noexcept;

    Target target_;
    ProcessId me_;
    const Alarm& alarm_;
    ProcessId holder_ = 0;   // of the right to fill the zone, when it was asked for last
    Millis held_since_ = 0;  // monotonic
};

// The context of a source: its input and its callbacks.
struct CatalogContext {
    std::function<Seconds()> now;
    std::function<Term()> term;  // of what is read from now on
    std::function<void(const EditReport&)> tell;
};

// A source of live edits.
class CatalogSource {
public:
    CatalogSource(const Alarm& alarm, CatalogContext context)
        : alarm_(alarm), context_(std::move(context)) {}
    virtual ~CatalogSource() = default;

    // Checks the source once, publishes changes, and waits until the next check is due.
    virtual void step() = 0;

    // Called while another configuration publishes.
    virtual void rest() noexcept {}

    // Whether it is blocked in a library that cannot be interrupted.
    virtual bool hangs() const noexcept { return false; }

protected:
    const Alarm& alarm_;
    const CatalogContext context_;
};

// Reads the catalog file again when it changed.
class CatalogFile : public CatalogSource {
public:
    CatalogFile(std::string path, Target target, ProcessId me, const Alarm& alarm,
                CatalogContext context)
        : CatalogSource(alarm, std::move(context)),
          path_(std::move(path)),
          publisher_(target, me, alarm) {}

    void step() override;

    // One check, without the wait.
    EditReport look();

private:
    const std::string path_;
    CatalogPublisher publisher_;
    FileMark seen_;       // of the file last read
    Seconds day_ = 0;     // for which it was compiled
    bool again_ = false;  // not read or not published
    std::string told_;    // why it cannot be read
};

}  // namespace ads
