#include "core/event/event.hpp"

#include <libdeflate.h>

#include <algorithm>
#include <cstring>

#include "core/base/bytes.hpp"

namespace ads {

namespace {

constexpr uint8_t kRecordVersion = 1;

// The payload's fixed part, in the order of its bytes.
struct [[gnu::packed]] Fixed {
    uint8_t version;
    uint8_t type;
    uint8_t invalid;
    uint8_t device;
    uint8_t consent;
    uint8_t placement_size;
    uint8_t country_size;
    uint8_t session_size;
    uint8_t user_size;
    uint16_t metadata_size;
    uint8_t spare;
    int64_t time;
    int64_t issued;
    uint64_t serve;
    uint32_t campaign;
    uint32_t ad_group;
    uint32_t creative;
    uint32_t experiment;
    int64_t price;
    uint32_t node;
};
static_assert(sizeof(Fixed) == kMinRecord - kFrameHead);

// The usual CRC-32, by the library that computes it fastest.
uint32_t checksum(const char* data, size_t size) noexcept {
    return libdeflate_crc32(0, data, size);
}

}  // namespace

EventId event_id(Millis issued, uint64_t serve, EventType type) noexcept {
    EventId id;
    auto& b = id.bytes;
    for (int i = 0; i < 6; i++) {
        b[i] = static_cast<uint8_t>(issued >> (40 - 8 * i));
    }
    // 12 free bits: 4 of zero, 4 of type, 4 of the serve id; then the variant
    // and the 60 bits left of the serve id.
    b[6] = 0x70;
    b[7] = static_cast<uint8_t>(static_cast<uint8_t>(type) << 4 | serve >> 60);
    const uint64_t low = (serve & 0x0fff'ffff'ffff'ffff) | 0x8000'0000'0000'0000;
    for (int i = 0; i < 8; i++) {
        b[8 + i] = static_cast<uint8_t>(low >> (56 - 8 * i));
    }
    return id;
}

void write_uuid(const EventId& id, char* out) noexcept {
    constexpr char kHex[] = "0123456789abcdef";
    for (size_t i = 0; i < id.bytes.size(); i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10) {
            *out++ = '-';
        }
        *out++ = kHex[id.bytes[i] >> 4];
        *out++ = kHex[id.bytes[i] & 15];
    }
}

size_t write_record(const Event& e, std::span<char> out) noexcept {
    const auto cut = [](std::string_view text, size_t most) { return text.substr(0, most); };
    const std::string_view parts[] = {cut(e.placement, 255), cut(e.country, 255),
                                      cut(e.session, 255), cut(e.user, 255),
                                      e.metadata.size() > kMaxMetadata ? "{}" : e.metadata};
    size_t size = kFrameHead + sizeof(Fixed);
    for (const auto part : parts) {
        size += part.size();
    }
    if (size > out.size() || size > kMaxRecord) {
        return 0;
    }
    const Fixed fixed{.version = kRecordVersion,
                      .type = static_cast<uint8_t>(e.type),
                      .invalid = static_cast<uint8_t>(e.invalid),
                      .device = e.device,
                      .consent = e.consent,
                      .placement_size = static_cast<uint8_t>(parts[0].size()),
                      .country_size = static_cast<uint8_t>(parts[1].size()),
                      .session_size = static_cast<uint8_t>(parts[2].size()),
                      .user_size = static_cast<uint8_t>(parts[3].size()),
                      .metadata_size = static_cast<uint16_t>(parts[4].size()),
                      .spare = 0,
                      .time = e.time,
                      .issued = e.issued,
                      .serve = e.serve,
                      .campaign = e.campaign,
                      .ad_group = e.ad_group,
                      .creative = e.creative,
                      .experiment = e.experiment,
                      .price = e.price,
                      .node = e.node};
    char* at = out.data() + kFrameHead;
    store(at, fixed);
    at += sizeof fixed;
    for (const auto part : parts) {
        at = std::copy(part.begin(), part.end(), at);
    }
    const auto payload = static_cast<uint32_t>(size - kFrameHead);
    store(out.data(), payload);
    store(out.data() + 4, checksum(out.data() + kFrameHead, payload));
    return size;
}

size_t agreed_size(std::string_view from) noexcept {
    if (from.size() < kMinRecord) {
        return 0;
    }
    const auto payload = load<uint32_t>(from.data());
    const auto fixed = load<Fixed>(from.data() + kFrameHead);
    const size_t strings = size_t{fixed.placement_size} + fixed.country_size + fixed.session_size +
                           fixed.user_size + fixed.metadata_size;
    return fixed.version == kRecordVersion && payload == sizeof fixed + strings &&
                   payload <= kMaxRecord - kFrameHead
               ? kFrameHead + payload
               : 0;
}

// The checksum comes last: a search for records tries this at each byte.
Read read_record(std::string_view from, Event& e, size_t& used) noexcept {
    if (from.size() < kFrameHead) {
        return Read::short_;
    }
    const auto payload = load<uint32_t>(from.data());
    if (payload < sizeof(Fixed) || payload > kMaxRecord - kFrameHead) {
        return Read::damaged;
    }
    if (from.size() - kFrameHead < payload) {
        return Read::short_;
    }
    const char* at = from.data() + kFrameHead;
    const auto fixed = load<Fixed>(at);
    if (agreed_size(from) == 0 || fixed.type > static_cast<uint8_t>(kSummary) ||
        fixed.invalid >= kCount<Invalid> ||
        checksum(at, payload) != load<uint32_t>(from.data() + 4)) {
        return Read::damaged;
    }
    at += sizeof fixed;
    const auto take = [&](size_t size) {
        const std::string_view text(at, size);
        at += size;
        return text;
    };
    e = Event{.type = static_cast<EventType>(fixed.type),
              .invalid = static_cast<Invalid>(fixed.invalid),
              .device = fixed.device,
              .consent = fixed.consent != 0,
              .time = fixed.time,
              .issued = fixed.issued,
              .serve = fixed.serve,
              .campaign = fixed.campaign,
              .ad_group = fixed.ad_group,
              .creative = fixed.creative,
              .experiment = fixed.experiment,
              .price = fixed.price,
              .node = fixed.node,
              .placement = take(fixed.placement_size),
              .country = take(fixed.country_size),
              .session = take(fixed.session_size),
              .user = take(fixed.user_size),
              .metadata = take(fixed.metadata_size)};
    used = kFrameHead + payload;
    return Read::ok;
}

// The room of what goes is filled up with blanks behind the metadata's "{}", which
// mean nothing in JSON.
void erase_person(std::span<char> record) noexcept {
    constexpr std::string_view kNothing = "{}";
    const auto payload = load<uint32_t>(record.data());
    char* at = record.data() + kFrameHead;
    auto fixed = load<Fixed>(at);
    const size_t room = size_t{fixed.session_size} + fixed.user_size + fixed.metadata_size;
    char* strings = at + sizeof fixed + fixed.placement_size + fixed.country_size;
    std::fill_n(strings, room, ' ');
    fixed.consent = 0;
    fixed.user_size = 0;
    if (room >= kAnonymous.size() + kNothing.size()) {
        fixed.session_size = static_cast<uint8_t>(kAnonymous.size());
        strings = std::copy(kAnonymous.begin(), kAnonymous.end(), strings);
        std::copy(kNothing.begin(), kNothing.end(), strings);
    } else {
        fixed.session_size = static_cast<uint8_t>(room);
    }
    fixed.metadata_size = static_cast<uint16_t>(room - fixed.session_size);
    store(at, fixed);
    store(record.data() + 4, checksum(at, payload));
}

}  // namespace ads
