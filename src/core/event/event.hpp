// An event, and its record in the spool. The frame:
//
//   u32 length of the payload   u32 crc32 of the payload   payload
//
// and the payload: a fixed part (see event.cpp) and five strings. A reader
// knows a torn or damaged record by its length or its crc.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/base/types.hpp"

namespace ads {

// Why an event is not billed. Stored in the spool: append, never reorder.
enum class Invalid : uint8_t {
    none,
    ignored,        // by the operator (ads_ignore), or because its serve was invalid
    late,           // the reservation has expired, and the wall is reached
    over_budget,    // the budget is exhausted
    bot,            // no user agent of a browser
    prefetch,       // prefetched
    network,        // from a listed network
    user_agent,     // a click with another user agent than the serve
    too_fast,       // a click earlier than a person can click
    no_impression,  // a click without an impression
    rapid_fire,     // one of too many clicks of a visitor
    rate_limit,     // over a silent ads_rate_limit
    mismatch,       // creative, ad group and campaign of its token do not belong together
};

template <>
struct Names<Invalid> {
    static constexpr auto list = std::to_array<std::string_view>({
        "",
        "ignored",
        "late",
        "over_budget",
        "bot",
        "prefetch",
        "network",
        "user_agent",
        "too_fast",
        "no_impression",
        "rapid_fire",
        "rate_limit",
        "mismatch",
    });
};

// The type of a record that is not an event but a summary of a worker's requests since the last,
// as its metadata (see ledger/outcomes.hpp). It goes to the database with the events.
inline constexpr auto kSummary = static_cast<EventType>(kCount<EventType>);

inline constexpr std::string_view kAnonymous = "anonymous";

struct Event {
    EventType type = EventType::serve;
    Invalid invalid = Invalid::none;
    uint8_t device = 0xff;  // a Device, or 0xff: unknown
    bool consent = false;
    Millis time = 0;
    Millis issued = 0;  // of the serve
    uint64_t serve = 0;
    Id campaign = 0;
    Id ad_group = 0;
    Id creative = 0;
    Id experiment = 0;
    MicroCents price = 0;
    uint32_t node = 0;
    std::string_view placement;
    std::string_view country;
    std::string_view session = kAnonymous;
    std::string_view user;
    std::string_view metadata = "{}";
};

// The same event has the same id on any node at any time: issue time, serve id and type are packed,
// not hashed, into the form of a UUIDv7.
struct EventId {
    std::array<uint8_t, 16> bytes{};
    bool operator==(const EventId&) const = default;
    auto operator<=>(const EventId&) const = default;
};

EventId event_id(Millis issued, uint64_t serve, EventType type) noexcept;
inline EventId event_id(const Event& e) noexcept {
    return event_id(e.issued, e.serve, e.type);
}

inline constexpr size_t kUuidChars = 36;
void write_uuid(const EventId& id, char* out) noexcept;

// The longest and the shortest record, frame included.
inline constexpr size_t kMaxRecord = 8192;
inline constexpr size_t kMinRecord = 72;
inline constexpr size_t kMaxMetadata = 4096;
inline constexpr size_t kFrameHead = 8;

// Appends the framed record to `out`; returns 0 if it does not fit or is larger than kMaxRecord
// (strings are cut to the limits of their length fields).
size_t write_record(const Event& event, std::span<char> out) noexcept;

enum class Read : uint8_t {
    ok,
    short_,  // truncated: a torn end
    damaged,
};

// Reads the record at the start of `from`; `used` is its size with the frame.
// The strings point into `from`.
Read read_record(std::string_view from, Event& event, size_t& used) noexcept;

// The size of the record at the start of `from`, frame included, if its length agrees with the
// sizes of its strings; else 0. The record itself may be damaged or truncated.
size_t agreed_size(std::string_view from) noexcept;

// Makes the record at the start of `record`, a whole one, anonymous, as if the visitor had not
// consented: no session, no user, no metadata. Its size is unchanged.
void erase_person(std::span<char> record) noexcept;

// The head of a segment file.
inline constexpr std::string_view kSegmentMagic = "adspool1";
inline constexpr size_t kSegmentHead = 32;

}  // namespace ads
