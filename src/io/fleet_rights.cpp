#include "io/fleet_rights.hpp"

#include <simdjson.h>
#include <sys/random.h>

#include <concepts>

#include "io/process.hpp"
#include "io/run_mark.hpp"
#include "version.hpp"

namespace ads {

namespace {

constexpr char kRights[] =
    "SELECT ads.rights($1, $2, $3, $4, $5, $6, $7, $8::jsonb, $9, $10, $11, $12, $13, $14, $15, "
    "$16, $17)::text";

// The types as every PostgreSQL numbers them.
constexpr Oid kInt8 = 20;
constexpr Oid kInt2 = 21;
constexpr Oid kInt4 = 23;
constexpr Oid kText = 25;
constexpr Oid kInt2Array = 1005;
constexpr Oid kInt4Array = 1007;
constexpr Oid kInt8Array = 1016;

template <std::unsigned_integral T>
void put(std::string& out, T value) {
    for (size_t shift = sizeof(T) * 8; shift > 0; shift -= 8) {
        out += static_cast<char>(value >> (shift - 8));
    }
}

class Params {
public:
    void number(uint64_t value) {
        std::string text;
        put(text, value);
        add(kInt8, std::move(text));
    }
    void small(uint32_t value) {
        std::string text;
        put(text, value);
        add(kInt4, std::move(text));
    }
    void text(std::string value) { add(kText, std::move(value)); }

    // An array; `get(i)` is the value of an element.
    template <std::unsigned_integral T, class Get>
    void array(Oid type, Oid element, size_t count, Get get) {
        std::string text;
        text.reserve(20 + count * (4 + sizeof(T)));
        put(text, uint32_t{count > 0});  // dimensions
        put(text, uint32_t{0});          // no nulls
        put(text, static_cast<uint32_t>(element));
        if (count > 0) {
            put(text, static_cast<uint32_t>(count));
            put(text, uint32_t{1});  // the first index
        }
        for (size_t i = 0; i < count; i++) {
            put(text, uint32_t{sizeof(T)});
            put(text, static_cast<T>(get(i)));
        }
        add(type, std::move(text));
    }
    template <class Get>
    void numbers(size_t count, Get get) {
        array<uint64_t>(kInt8Array, kInt8, count, get);
    }

    PgParams take() { return std::move(params_); }

private:
    void add(Oid type, std::string value) {
        params_.types.push_back(type);
        params_.values.push_back(std::move(value));
    }
    PgParams params_;
};

// The name is one that the configuration allows: nothing in it needs to be escaped.
std::string describe(const FleetAbout& about) {
    std::string text = "{\"name\":\"" + about.name + "\",\"version\":\"" ADS_VERSION "\"";
    text += ",\"exactness\":\"" + std::string(about.exactness) + "\"";
    text += ",\"on_error\":\"" + std::string(about.shares ? "share" : "stop") + "\"";
    text += ",\"catalog\":\"" + std::string(about.catalog_from_postgres ? "postgres" : "file");
    text += "\",\"generation\":" + std::to_string(about.generation);
    text += ",\"catalog_time\":" + std::to_string(about.catalog_time);
    return text + "}";
}

// In calls the cap of visitors without a session has a number of its own.
constexpr uint16_t kAnonymous = 4;

uint16_t kind_of(SlotKind kind) noexcept {
    return kind == SlotKind::group ? kAnonymous : static_cast<uint16_t>(kind);
}

PgParams params_of(uint32_t node, const RightsCall& call, const FleetAbout& about) {
    Params params;
    const auto& lines = call.lines;
    params.number(node);
    params.number(call.instance);
    params.number(call.next);
    params.numbers(call.known.size(), [&](size_t i) { return call.known[i]; });
    params.number(call.sequence);
    params.number(call.nonce);
    params.small(kRightsProtocol);
    params.text(describe(about));
    params.array<uint16_t>(kInt2Array, kInt2, lines.size(),
                           [&](size_t i) { return kind_of(lines[i].wall.kind); });
    params.numbers(lines.size(), [&](size_t i) { return uint64_t{lines[i].wall.id}; });
    params.array<uint32_t>(kInt4Array, kInt4, lines.size(),
                           [&](size_t i) { return static_cast<uint32_t>(lines[i].wall.day); });
    params.numbers(lines.size(), [&](size_t i) { return lines[i].got; });
    params.numbers(lines.size(), [&](size_t i) { return lines[i].gave; });
    params.numbers(lines.size(), [&](size_t i) { return lines[i].need; });
    params.numbers(lines.size(), [&](size_t i) { return lines[i].ahead; });
    params.numbers(lines.size(), [&](size_t i) { return lines[i].quantum; });
    params.numbers(lines.size(), [&](size_t i) { return lines[i].limit; });
    return params.take();
}

// [kind, id, day, …]
bool read_row(const simdjson::dom::element& row, std::vector<int64_t>& numbers) {
    simdjson::dom::array list;
    numbers.clear();
    if (row.get(list) != simdjson::SUCCESS) {
        return false;
    }
    for (const auto one : list) {
        int64_t number = 0;
        if (one.get(number) != simdjson::SUCCESS) {
            return false;
        }
        numbers.push_back(number);
    }
    return numbers.size() >= 3;
}

FleetWall wall_of(const std::vector<int64_t>& numbers) {
    return {numbers[0] == kAnonymous ? SlotKind::group : static_cast<SlotKind>(numbers[0]),
            static_cast<Id>(numbers[1]), static_cast<Day>(numbers[2])};
}

template <class F>
bool each_row(const simdjson::dom::object& object, const char* name, size_t columns, F f) {
    simdjson::dom::array rows;
    if (object[name].get(rows) != simdjson::SUCCESS) {
        return true;  // none
    }
    std::vector<int64_t> numbers;
    for (const auto row : rows) {
        if (!read_row(row, numbers) || numbers.size() < columns) {
            return false;
        }
        f(numbers);
    }
    return true;
}

uint64_t positive(int64_t number) noexcept {
    return number > 0 ? static_cast<uint64_t>(number) : 0;
}

}  // namespace

std::optional<RightsAnswer> parse_rights(std::string_view text) {
    simdjson::dom::parser parser;
    simdjson::dom::object object;
    std::string_view admission;
    if (parser.parse(simdjson::padded_string(text)).get(object) != simdjson::SUCCESS ||
        object["admission"].get(admission) != simdjson::SUCCESS) {
        return {};
    }
    RightsAnswer answer;
    if (admission == "accepted") {
        answer.admission = rights::Admission::accepted;
    } else if (admission == "stale") {
        answer.admission = rights::Admission::stale;
    } else if (admission == "refused") {
        answer.admission = rights::Admission::refused;
    } else {
        return {};
    }
    if (int64_t active = 0; object["active"].get(active) == simdjson::SUCCESS && active > 0) {
        answer.active = static_cast<uint32_t>(active);
    }
    if (int64_t newest = 0; object["newest"].get(newest) == simdjson::SUCCESS) {
        answer.newest = positive(newest);
    }
    const bool good = each_row(object, "grants", 6,
                               [&](const std::vector<int64_t>& row) {
                                   answer.grants.push_back({.wall = wall_of(row),
                                                            .got = positive(row[3]),
                                                            .free = row[4],
                                                            .rest = positive(row[5])});
                               }) &&
                      each_row(object, "wanted_back", 3, [&](const std::vector<int64_t>& row) {
                          answer.wanted_back.push_back(wall_of(row));
                      });
    return good ? std::optional(std::move(answer)) : std::nullopt;
}

std::optional<Verdicts> parse_verdicts(std::string_view text) {
    simdjson::dom::parser parser;
    simdjson::dom::object object;
    simdjson::dom::array rows;
    Verdicts verdicts;
    int64_t next = 0;
    if (parser.parse(simdjson::padded_string(text)).get(object) != simdjson::SUCCESS ||
        object["next"].get(next) != simdjson::SUCCESS ||
        object["rows"].get(rows) != simdjson::SUCCESS) {
        return {};
    }
    verdicts.next = positive(next);
    for (const auto row : rows) {
        const auto number = [&](const char* name) {
            int64_t value = 0;
            return row[name].get(value) == simdjson::SUCCESS ? value : 0;
        };
        std::string_view verdict;
        const int64_t type = number("type");
        if (row["verdict"].get(verdict) != simdjson::SUCCESS || type <= 0 ||
            type >= static_cast<int64_t>(kCount<EventType>)) {
            return {};
        }
        VerdictRow& to = verdicts.rows.emplace_back();
        to.verdict = verdict == "confirmed" ? Verdict::confirmed
                     : verdict == "late"    ? Verdict::late
                                            : Verdict::duplicate;
        to.recorder = static_cast<uint32_t>(number("node_recorded"));
        to.event.type = static_cast<EventType>(type);
        to.event.time = number("at");
        to.event.issued = number("issued");
        to.event.serve = static_cast<uint64_t>(number("serve"));
        to.event.campaign = static_cast<Id>(number("campaign"));
        to.event.ad_group = static_cast<Id>(number("ad_group"));
        to.event.price = number("price");
    }
    return verdicts;
}

template <class T>
std::optional<T> FleetRights::answer(const char* sql, const PgParams& params, Millis timeout,
                                     std::optional<T> (*parse)(std::string_view),
                                     const char* name) {
    error_.clear();
    const PgResult result = pg_.query(sql, params, timeout);
    if (result == nullptr) {
        return {};
    }
    if (PQntuples(result.get()) == 1 && PQgetisnull(result.get(), 0, 0) == 0) {
        const auto size = static_cast<size_t>(PQgetlength(result.get(), 0, 0));
        if (auto parsed = parse({PQgetvalue(result.get(), 0, 0), size})) {
            return parsed;
        }
    }
    error_ = "unexpected answer of " + std::string(name);
    return {};
}

std::optional<RightsAnswer> FleetRights::call(uint32_t node, const RightsCall& call,
                                              const FleetAbout& about, Millis timeout) {
    return answer(kRights, params_of(node, call, about), timeout, parse_rights, "ads.rights()");
}

std::optional<Verdicts> FleetRights::verdicts(uint32_t node, uint64_t cursor, uint32_t most,
                                              Millis timeout) {
    Params params;
    params.number(node);
    params.number(cursor);
    params.small(most);
    return answer("SELECT ads.verdicts($1, $2, $3)::text", params.take(), timeout, parse_verdicts,
                  "ads.verdicts()");
}

uint64_t random_word() {
    uint64_t word = 0;
    while (word == 0) {
        if (getrandom(&word, sizeof word, 0) != static_cast<ssize_t>(sizeof word)) {
            word = 0;
        }
        word >>= 1;
    }
    return word;
}

bool store_rights(StateFile& file) {
    return file.sync_head();
}

bool drain_fleet(const DrainConf& conf, const Alarm& alarm, std::string& error) {
    if (access((conf.state + "/state").c_str(), F_OK) != 0) {
        error = "\"" + conf.state + "/state\" does not exist";
        return false;
    }
    StateFile file;
    std::string notice;
    if (!file.open(conf.state, size_t{1} << 20, error, notice)) {
        return false;
    }
    State state = file.state();
    FleetState& fleet = state.head().fleet;
    if (fleet.mode.load() == FleetMode::none) {
        error = "\"" + conf.state + "\" is not the state of a node in a fleet";
        return false;
    }
    if (file.in_use()) {
        error = "\"" + conf.state + "\" is in use: stop nginx first";
        return false;
    }
    if (const uint32_t holder = file.lock(); holder != 0) {
        error = "\"" + conf.state + "\" is locked by process " + std::to_string(holder);
        return false;
    }
    file.settle();
    const std::string mark = run_mark_path(conf.run, conf.state);
    begin_in_fleet(state, read_run_mark(mark), random_node());
    if (!file.sync_all()) {
        error = "cannot store \"" + conf.state + "/state\"";
        return false;
    }
    RightsClient client(state,
                        {.random = random_word, .store = [&] { return store_rights(file); }});
    FleetRights rights(conf.conninfo, alarm);
    const Millis end = monotonic() + conf.timeout;
    FleetAbout about;
    about.name = conf.name;
    for (bool done = false; !done;) {
        const Millis left = end - monotonic();
        if (left <= 0) {
            error = "timed out";
            return false;
        }
        if (!rights.connect()) {
            error = rights.error();
            return false;
        }
        const bool open = fleet.mode.load() == FleetMode::open;
        about.exactness = open ? "exact" : "sealed";
        const std::vector<OpenWall> walls = held_walls(state);
        if (open) {
            client.drain(walls);
        }
        RightsCall call;
        if (!client.prepare(walls, monotonic(), call)) {
            error = "PostgreSQL has refused this node: it has no rights to return";
            return false;
        }
        const auto answer = rights.call(state.head().node, call, about, left);
        if (!answer) {
            error = rights.error();
            return false;
        }
        client.receive(call, *answer);
        if (fleet.mode.load() == FleetMode::fenced) {
            error = "PostgreSQL has refused this node: it has no rights to return";
            return false;
        }
        done = open && fleet.mode.load() == FleetMode::open && client.told_all();
    }
    write_run_mark(mark, {fleet.instance.load(), fleet.sequence.load()});
    if (file.sync_all()) {
        fleet.clean.store(1);
        file.sync_head();
    }
    file.unlock();
    return true;
}

}  // namespace ads
