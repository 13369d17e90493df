// Somebody who asks what is kept of them, and where that is in files. In PostgreSQL it
// is found by ads.export_person and ads.erase_person.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "core/event/event.hpp"
#include "ledger/frequency.hpp"

namespace ads::admin {

// A session, or a user by its pseudonyms, one for each key that may have made it.
struct Person {
    std::string session;  // empty: a user
    std::vector<std::string> users;
    // Sessions that were seen with the user: theirs, but for what stands under the name
    // of another one.
    std::set<std::string> linked;

    bool is(const Event& event) const;
    std::vector<std::string> sessions() const;
    // Adds the session of an event of the user.
    void link(const Event& event);
};

// ---- the spool ----

// Calls `see` for each event of the person, of segments and of the quarantine.
void read_spool(const std::string& folder, const Person& person,
                const std::function<void(const Event&)>& see);

struct SpoolErased {
    uint64_t events = 0;
    uint64_t places = 0;  // in what cannot be read as events
};
// Makes these events anonymous, where they stand: nginx may run, and what is not yet
// shipped is shipped, without the person. In what is no whole record the identifiers
// are overwritten. Throws Failure.
SpoolErased erase_in_spool(const std::string& folder, const Person& person);

// ---- the state folder ----

// Calls `see` for each ring and count of the frequency caps, and forgets it if that says
// so. Without a file of frequency caps there are none. Throws Failure.
void each_in_state(const std::string& folder, const Person& person,
                   const std::function<bool(const Frequency::Seen&)>& see);

// Files of the folder that were set aside, and may hold anything.
std::vector<std::string> set_aside(const std::string& folder);

}  // namespace ads::admin
