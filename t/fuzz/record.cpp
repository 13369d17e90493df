// Any bytes as a record and as a segment: what is read stays inside them, and
// a record that is found good is written again byte for byte.
#include <zlib.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "core/base/bytes.hpp"
#include "core/event/event.hpp"
#include "io/spool.hpp"

namespace {

using namespace ads;

void check(bool holds) {
    if (!holds) {
        std::abort();
    }
}

bool inside(std::string_view part, std::string_view whole) {
    return part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size();
}

void check_event(const Event& event, std::string_view from) {
    check(name_of(event.type) != "?" && name_of(event.invalid) != "?");
    for (const std::string_view part :
         {event.placement, event.country, event.session, event.user, event.metadata}) {
        check(inside(part, from));
    }
    char uuid[kUuidChars];
    write_uuid(event_id(event), uuid);
    check(uuid[14] == '7' && uuid[19] == '8');
}

void check_record(std::string_view text) {
    Event event;
    size_t used = 0;
    if (read_record(text, event, used) != Read::ok) {
        return;
    }
    check(used >= kFrameHead && used <= text.size() && used <= kMaxRecord);
    check_event(event, text);
    Event again;
    size_t size = 0;
    std::string written(kMaxRecord, '\0');
    written.resize(write_record(event, written));
    check(read_record(written, again, size) == Read::ok && size == written.size());
    check(again.serve == event.serve && again.session == event.session);
    check(event_id(again) == event_id(event));
}

// The checksum made right, so that what lies behind it is reached.
void mend(std::string& text) {
    if (text.size() > kFrameHead) {
        const auto payload = static_cast<uint32_t>(text.size() - kFrameHead);
        store(text.data(), payload);
        store(text.data() + 4,
              static_cast<uint32_t>(
                  crc32(0, reinterpret_cast<const Bytef*>(text.data() + kFrameHead), payload)));
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    check_record(text);
    std::string mended(text);
    mend(mended);
    check_record(mended);

    for (const std::string& segment :
         {std::string(text), std::string(kSegmentMagic) + std::string(24, '\0') + mended + mended +
                                 std::string(text)}) {
        size_t seen = 0;
        size_t at = 0;
        const SegmentEnd end = each_piece(
            segment,
            [&](const Event& event, size_t offset, size_t size) {
                check_event(event, segment);
                check(offset == std::max(at, offset) && offset + size <= segment.size());
                at = offset + size;
                seen += size;
            },
            [&](size_t offset, size_t size) {
                check(size > 0 && offset >= at && offset + size <= segment.size());
                at = offset + size;
                seen += size;
            });
        check(end.total == segment.size());
        // Only a head is neither a record nor damaged nor torn.
        check(seen + end.torn == end.total || seen + end.torn + kSegmentHead == end.total);
        check(!end.foreign || end.damaged_bytes == end.total);
    }
    return 0;
}
