// A person who requests access or erasure, and where their data is in files. For PostgreSQL see
// ads.export_person and ads.erase_person.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "core/event/event.hpp"
#include "ledger/visitor/frequency.hpp"

namespace ads::admin {

// A session, or a user given by the pseudonyms of all keys that may have been used.
struct Person {
    std::string session;  // empty: it is a user
    std::vector<std::string> users;
    // Sessions that were seen with the user: their events belong to the user, except those of
    // another user.
    std::set<std::string> linked;

    bool is(const Event& event) const;
    std::vector<std::string> sessions() const;
    // Adds the session of an event of the user.
    void link(const Event& event);
};

// ---- the spool ----

// Calls `see` for each event of the person in segments and in the quarantine.
void read_spool(const std::string& folder, const Person& person,
                const std::function<void(const Event&)>& see);

struct SpoolErased {
    uint64_t events = 0;
    uint64_t places = 0;  // in data that cannot be read as events
};
// Makes these events anonymous in place: nginx may run, and events that are not shipped yet are
// shipped without the person. In damaged records the identifiers are overwritten. Throws
// Failure.
SpoolErased erase_in_spool(const std::string& folder, const Person& person);

// ---- the state folder ----

// Calls `see` for each entry of the frequency caps, and removes it if that returns true. Without a
// file of frequency caps there are none. Throws Failure.
void each_in_state(const std::string& folder, const Person& person,
                   const std::function<bool(const Frequency::Seen&)>& see);

// Files of the folder that were set aside, with unknown content.
std::vector<std::string> set_aside(const std::string& folder);

}  // namespace ads::admin
