#include "lib/base/event_json.hpp"

#include <jansson.h>

#include <algorithm>
#include <chrono>

#include "lib/base/failure.hpp"
#include "lib/base/text.hpp"

namespace ads::admin {

namespace {

void put_digits(Out& out, unsigned value, int digits) {
    char text[10];
    for (int i = digits - 1; i >= 0; i--) {
        text[i] = static_cast<char>('0' + value % 10);
        value /= 10;
    }
    out.put(std::string_view(text, static_cast<size_t>(digits)));
}

void put_time(Out& out, Millis time) {
    namespace chrono = std::chrono;
    const chrono::sys_time<chrono::milliseconds> moment{chrono::milliseconds(time)};
    // Only what RFC 3339 can say; the record may hold anything.
    constexpr chrono::sys_days kFirst = chrono::year(0) / 1 / 1;
    constexpr chrono::sys_days kBeyond =
        chrono::sys_days(chrono::year(9999) / 12 / 31) + chrono::days(1);
    if (moment < kFirst || moment >= kBeyond) {
        out.put("null");
        return;
    }
    const auto day = chrono::floor<chrono::days>(moment);
    const chrono::year_month_day date(day);
    const auto rest = static_cast<unsigned>((moment - day).count());
    out.put('"');
    put_digits(out, static_cast<unsigned>(static_cast<int>(date.year())), 4);
    out.put('-');
    put_digits(out, static_cast<unsigned>(date.month()), 2);
    out.put('-');
    put_digits(out, static_cast<unsigned>(date.day()), 2);
    out.put('T');
    put_digits(out, rest / 3'600'000, 2);
    out.put(':');
    put_digits(out, rest / 60'000 % 60, 2);
    out.put(':');
    put_digits(out, rest / 1000 % 60, 2);
    out.put('.');
    put_digits(out, rest % 1000, 3);
    out.put("Z\"");
}

void put_text(Out& out, std::string_view text) {
    out.put('"');
    if (valid_utf8(text)) {
        out.json(text);
    } else {
        out.json(repaired_utf8(text));
    }
    out.put('"');
}

void put_optional(Out& out, std::string_view text) {
    if (text.empty()) {
        out.put("null");
    } else {
        put_text(out, text);
    }
}

void put_device(Out& out, uint8_t device) {
    put_optional(out, device < kCount<Device> ? name_of(static_cast<Device>(device)) : "");
}

void put_node(Out& out, uint32_t node) {
    char text[16];
    Out(text, sizeof text).hex64(node);
    out.put(std::string_view(text + 8, 8));
}

bool is_object(std::string_view text) {
    json_t* json =
        json_loadb(text.data(), text.size(), JSON_DECODE_INT_AS_REAL | JSON_ALLOW_NUL, nullptr);
    const bool object = json_is_object(json);
    json_decref(json);
    return object;
}

// As it was written, in one line. What is no JSON object is shown as a string.
void put_metadata(Out& out, std::string_view text) {
    if (text == "{}" || text.empty()) {
        out.put("{}");
    } else if (!is_object(text)) {
        put_text(out, text);
    } else {
        for (const char c : text) {  // a control character stands only between the values
            out.put(static_cast<unsigned char>(c) < 0x20 ? ' ' : c);
        }
    }
}

}  // namespace

void write_event(Out& out, const Event& e) {
    char id[kUuidChars];
    write_uuid(event_id(e), id);
    out.put("{\"id\":\"");
    out.put(std::string_view(id, sizeof id));
    out.put("\",\"type\":\"");
    out.put(name_of(e.type));
    out.put("\",\"time\":");
    put_time(out, e.time);
    out.put(",\"serve_id\":\"");
    out.hex64(e.serve);
    out.put("\",\"issued\":");
    put_time(out, e.issued);
    out.put(",\"campaign\":");
    out.number(e.campaign);
    out.put(",\"ad_group\":");
    out.number(e.ad_group);
    out.put(",\"creative\":");
    out.number(e.creative);
    out.put(",\"experiment\":");
    if (e.experiment == 0) {
        out.put("null");
    } else {
        out.number(e.experiment);
    }
    out.put(",\"placement\":");
    put_optional(out, e.placement);
    out.put(",\"user_id\":");
    put_optional(out, e.user);
    out.put(",\"session_id\":");
    put_optional(out, e.session);
    out.put(",\"price_cents\":");
    out.millionths(e.price);
    out.put(",\"country\":");
    put_optional(out, e.country);
    out.put(",\"device\":");
    put_device(out, e.device);
    out.put(",\"invalid\":");
    put_optional(out, name_of(e.invalid));
    out.put(e.consent ? ",\"consent\":true" : ",\"consent\":false");
    out.put(",\"node\":\"");
    put_node(out, e.node);
    out.put("\",\"metadata\":");
    put_metadata(out, e.metadata);
    out.put("}\n");
}

}  // namespace ads::admin
