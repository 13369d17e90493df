// Access to personal data wherever it is stored, and its erasure. Prints nothing; throws Failure.
#pragma once

#include <string>
#include <vector>

#include "lib/base/database.hpp"
#include "lib/base/json.hpp"
#include "lib/privacy/person.hpp"
#include "lib/privacy/redis.hpp"

namespace ads::admin {

// The places to search.
struct Places {
    Database* database = nullptr;  // null: none
    std::string spool;             // folders; empty: none
    std::string state;
    RedisSessions* redis = nullptr;  // null: none
    std::string actor;               // for the audit log
};

// The pseudonyms of a user, one for each key of the key ring in this file.
std::vector<std::string> pseudonyms(const std::string& ring, const std::string& name);

// The keys of a key ring by which users and sessions are hashed.
std::vector<SipKey> user_keys(const std::string& ring);

Json export_person(const Places& places, Person person);

struct Erased {
    uint64_t events = 0;  // in PostgreSQL
    uint64_t trials = 0;
    uint64_t spool = 0;
    uint64_t frequency = 0;
    uint64_t redis = 0;                  // sessions, by key
    bool more = false;                   // more was found in each round
    std::vector<std::string> set_aside;  // files that cannot be searched

    uint64_t all() const { return events + trials + spool + frequency + redis; }
    void add(const Erased& other) {
        events += other.events;
        trials += other.trials;
        spool += other.spool;
        frequency += other.frequency;
        redis += other.redis;
    }
};

Erased erase_person(const Places& places, Person person);

}  // namespace ads::admin
