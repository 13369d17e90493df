#include "io/ingest.hpp"

#include <concepts>

namespace ads {

namespace {

// The types of elements and of their arrays, as every PostgreSQL numbers them.
struct Type {
    Oid element;
    Oid array;
};
constexpr Type kBool{16, 1000};
constexpr Type kInt8{20, 1016};
constexpr Type kInt2{21, 1005};
constexpr Type kText{25, 1009};
constexpr Type kUuid{2950, 2951};

template <std::unsigned_integral T>
void put(std::string& out, T value) {
    for (size_t shift = sizeof(T) * 8; shift > 0; shift -= 8) {
        out += static_cast<char>(value >> (shift - 8));
    }
}

void put_size(std::string& out, size_t size) {
    put(out, static_cast<uint32_t>(size));
}

class Columns {
public:
    explicit Columns(std::span<const Event> events) : events_(events) {}

    // An array of one value of each event; `get` returns its bytes.
    template <class Get>
    void add(Type type, size_t bytes, Get get) {
        std::string value;
        value.reserve(20 + events_.size() * (4 + bytes));
        put_size(value, 1);  // dimensions
        put_size(value, 0);  // no nulls
        put(value, static_cast<uint32_t>(type.element));
        put_size(value, events_.size());
        put_size(value, 1);  // the first index
        for (const Event& event : events_) {
            get(value, event);
        }
        params_.types.push_back(type.array);
        params_.values.push_back(std::move(value));
    }

    template <class Get>
    void numbers(Get get) {
        add(kInt8, 8, [&](std::string& out, const Event& event) {
            put_size(out, 8);
            put(out, static_cast<uint64_t>(get(event)));
        });
    }

    template <class Get>
    void small(Get get) {
        add(kInt2, 2, [&](std::string& out, const Event& event) {
            put_size(out, 2);
            put(out, static_cast<uint16_t>(get(event)));
        });
    }

    void texts(std::string_view Event::*field) {
        add(kText, 16, [&](std::string& out, const Event& event) {
            put_size(out, (event.*field).size());
            out += event.*field;
        });
    }

    PgParams take() { return std::move(params_); }

private:
    std::span<const Event> events_;
    PgParams params_;
};

}  // namespace

PgParams ingest_params(std::span<const Event> events, uint32_t recorder) {
    Columns columns(events);
    columns.add(kUuid, 16, [](std::string& out, const Event& event) {
        const EventId id = event_id(event);
        put_size(out, id.bytes.size());
        out.append(reinterpret_cast<const char*>(id.bytes.data()), id.bytes.size());
    });
    columns.small([](const Event& e) { return e.type; });
    columns.numbers([](const Event& e) { return e.time; });
    columns.numbers([](const Event& e) { return e.issued; });
    columns.numbers([](const Event& e) { return e.serve; });
    columns.numbers([](const Event& e) { return e.campaign; });
    columns.numbers([](const Event& e) { return e.ad_group; });
    columns.numbers([](const Event& e) { return e.creative; });
    columns.numbers([](const Event& e) { return e.experiment; });
    columns.numbers([](const Event& e) { return e.price; });
    columns.numbers([](const Event& e) { return e.node; });
    columns.small([](const Event& e) { return e.device; });
    columns.small([](const Event& e) { return e.invalid; });
    columns.add(kBool, 1, [](std::string& out, const Event& event) {
        put_size(out, 1);
        out += event.consent ? '\1' : '\0';
    });
    columns.texts(&Event::placement);
    columns.texts(&Event::country);
    columns.texts(&Event::session);
    columns.texts(&Event::user);
    columns.texts(&Event::metadata);
    PgParams params = columns.take();
    if (recorder != 0) {
        std::string value;
        put(value, uint64_t{recorder});
        params.types.push_back(kInt8.element);
        params.values.push_back(std::move(value));
    }
    return params;
}

}  // namespace ads
