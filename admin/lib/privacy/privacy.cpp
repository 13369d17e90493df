#include "lib/privacy/privacy.hpp"

#include <fmt/format.h>

#include <array>

#include "core/token/keyring.hpp"
#include "core/token/pseudonym.hpp"
#include "lib/base/event_json.hpp"
#include "lib/base/files.hpp"

namespace ads::admin {

namespace {

constexpr int kRounds = 5;

// ---- PostgreSQL ----

// Hex digits all of them.
std::string list_of(const auto& texts) {
    std::string list = "{";
    for (const auto& text : texts) {
        list += (list.size() == 1 ? "" : ",") + ("\"" + text + "\"");
    }
    return list + "}";
}

Param session_of(const Person& person) {
    return person.session.empty() ? Param() : Param(std::string_view(person.session));
}

// The sessions of a user, from wherever they are known.
void find_sessions(const Places& places, Person& person) {
    if (!person.session.empty()) {
        return;
    }
    if (places.database != nullptr) {
        const Rows rows =
            places.database->run("SELECT s FROM ads.sessions_of($1) AS s", {list_of(person.users)});
        for (size_t i = 0; i < rows.size(); i++) {
            // Only what a cookie can hold: others were put there by hand.
            if (is_session(rows.at(i, 0))) {
                person.linked.emplace(rows.at(i, 0));
            }
        }
    }
    if (!places.spool.empty()) {
        const Person user = person;
        read_spool(places.spool, user, [&](const Event& event) { person.link(event); });
    }
}

void begin(const Places& places) {
    places.database->run("SELECT set_config('ads.actor', $1, true)", {places.actor});
}

// ---- export ----

json_t* parsed(std::string_view text) {
    json_t* json = json_loadb(text.data(), text.size(), JSON_ALLOW_NUL, nullptr);
    return json == nullptr ? text_json(text) : json;
}

json_t* spool_json(const Places& places, const Person& person) {
    json_t* list = json_array();
    std::string line(kMaxLine, '\0');
    read_spool(places.spool, person, [&](const Event& event) {
        Out out(line.data(), line.size());
        write_event(out, event);
        json_array_append_new(list, parsed(out.text()));
    });
    return list;
}

json_t* frequency_json(const Places& places, const Person& person) {
    constexpr std::array<const char*, 4> kLevels = {"ad_group", "campaign", "creative", "clicks"};
    json_t* list = json_array();
    each_in_state(places.state, person, [&](const Frequency::Seen& seen) {
        json_t* item = json_object();
        json_object_set_new(item, "level",
                            json_string(kLevels[static_cast<size_t>(seen.level) & 3]));
        json_object_set_new(item, "id", number_json(seen.id));
        json_object_set_new(item, "newest", number_json(seen.newest));
        json_array_append_new(list, item);
        return false;
    });
    return list;
}

json_t* redis_json(RedisSessions& redis, const Person& person) {
    json_t* list = json_array();
    redis.each(person.sessions(), [&](const RedisSessions::Seen& seen) {
        json_t* item = json_object();
        json_object_set_new(item, "level", text_json(seen.level));
        json_object_set_new(item, "id", number_json(seen.id));
        json_object_set_new(item, "serves", number_json(seen.serves));
        json_object_set_new(item, "newest", number_json(seen.newest));
        json_array_append_new(list, item);
    });
    return list;
}

// Redis comes first: while it cannot be reached, nothing is changed. Then PostgreSQL is told, which
// stores what nodes still send of them without them; then the spool: what is shipped after that is
// anonymous.
Erased erase_once(const Places& places, Person& person) {
    Database* database = places.database;
    Erased erased;
    find_sessions(places, person);
    if (places.redis != nullptr) {
        erased.redis = places.redis->erase(person.sessions());
    }
    if (database != nullptr) {
        database->run("SELECT ads.mark_erased($1, $2, $3)",
                      {session_of(person), list_of(person.users), list_of(person.linked)});
    }
    if (!places.spool.empty()) {
        const SpoolErased in_spool = erase_in_spool(places.spool, person);
        erased.spool = in_spool.events + in_spool.places;
    }
    if (!places.state.empty()) {
        each_in_state(places.state, person, [&](const Frequency::Seen&) {
            erased.frequency++;
            return true;
        });
    }
    if (database != nullptr) {
        const Rows rows =
            database->run("SELECT events, trials FROM ads.erase_person($1, $2, $3)",
                          {session_of(person), list_of(person.users), list_of(person.linked)});
        erased.events = static_cast<uint64_t>(rows.number(0, 0));
        erased.trials = static_cast<uint64_t>(rows.number(0, 1));
    }
    return erased;
}

}  // namespace

std::vector<SipKey> user_keys(const std::string& path) {
    std::string error;
    const auto ring = KeyRing::parse(read_input(path), error);
    if (!ring) {
        throw Failure(Exit::bad_input, fmt::format("{}: {}.", path, error));
    }
    std::vector<SipKey> keys;
    for (unsigned id = 1; id <= 255; id++) {
        if (const Key* key = ring->find(static_cast<uint8_t>(id)); key != nullptr) {
            keys.push_back(key->user_key());
        }
    }
    return keys;
}

std::vector<std::string> pseudonyms(const std::string& path, const std::string& name) {
    std::vector<std::string> all;
    for (const SipKey& key : user_keys(path)) {
        char text[kPseudonymChars];
        Out out(text, sizeof text);
        write_pseudonym(out, key, name);
        all.emplace_back(out.text());
    }
    return all;
}

Json export_person(const Places& places, Person person) {
    Database* database = places.database;
    Json root(json_object());
    json_object_set_new(root.get(), "session",
                        person.session.empty() ? json_null() : text_json(person.session));
    try {
        find_sessions(places, person);
        if (database != nullptr) {
            json_object_set_new(root.get(), "events", json_array());
            json_object_set_new(root.get(), "trials", json_array());
            Transaction transaction(*database);
            begin(places);
            const Rows rows =
                database->run("SELECT kind, fact FROM ads.export_person($1, $2, $3)",
                              {session_of(person), list_of(person.users), list_of(person.linked)});
            for (size_t i = 0; i < rows.size(); i++) {
                json_array_append_new(
                    json_object_get(root.get(), std::string(rows.at(i, 0)).c_str()),
                    parsed(rows.at(i, 1)));
            }
            database->run(
                "SELECT ads.note_privacy('export', jsonb_build_object('by', $1::text, "
                "'rows', $2::bigint))",
                {person.session.empty() ? "user" : "session", std::to_string(rows.size())});
            transaction.commit();
        }
    } catch (const SqlError& e) {
        throw explained(e);
    }
    if (!places.spool.empty()) {
        json_object_set_new(root.get(), "spool", spool_json(places, person));
    }
    if (!places.state.empty()) {
        json_object_set_new(root.get(), "frequency", frequency_json(places, person));
    }
    if (places.redis != nullptr) {
        json_object_set_new(root.get(), "redis", redis_json(*places.redis, person));
    }
    return root;
}

Erased erase_person(const Places& places, Person person) {
    Erased erased;
    try {
        // What was on its way from one place to the other is found in the next round;
        // the last one finds nothing.
        for (int round = 0; round < kRounds; round++) {
            const Erased found = erase_once(places, person);
            erased.add(found);
            erased.more = found.all() != 0;
            if (!erased.more) {
                break;
            }
        }
        if (Database* database = places.database; database != nullptr) {
            Transaction transaction(*database);
            begin(places);
            database->run(
                "SELECT ads.note_privacy('erase', jsonb_strip_nulls(jsonb_build_object('by', "
                "$1::text, 'events', $2::bigint, 'trials', $3::bigint, 'spool', $4::bigint, "
                "'frequency', $5::bigint, 'redis', $6::bigint)))",
                {person.session.empty() ? "user" : "session", std::to_string(erased.events),
                 std::to_string(erased.trials), std::to_string(erased.spool),
                 std::to_string(erased.frequency),
                 places.redis != nullptr ? Param(std::to_string(erased.redis)) : Param()});
            transaction.commit();
        }
    } catch (const SqlError& e) {
        throw explained(e);
    }
    if (!places.state.empty()) {
        erased.set_aside = set_aside(places.state);
    }
    return erased;
}

}  // namespace ads::admin
