// Management: edits of one thing of the catalog in PostgreSQL. A campaign is read as a document,
// changed, checked as nginx checks it, and written by the functions that import uses, in one
// transaction. All of them throw Failure, and print nothing.
#pragma once

#include <jansson.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/database.hpp"
#include "lib/catalog/clean.hpp"
#include "lib/catalog/diff.hpp"
#include "lib/manage/kinds.hpp"

namespace ads::admin {

struct EditOptions {
    std::string actor;     // for the history; empty: whoever is connected
    bool dry_run = false;  // roll back what was done
    bool strict = false;   // a warning is an error
};

// Changes an object of the catalog, as a document has it. Throws Failure.
using Patch = std::function<void(json_t* object)>;

// Objects are named by their id, or by a name that only one of them has.
struct Edit {
    Kind kind = Kind::campaign;
    std::vector<std::string> ids;             // of what is edited; of a new advertiser or placement
    std::string parent;                       // of a new one: the campaign, the ad group
    std::string name;                         // of a clone
    std::string winner;                       // of an experiment that is stopped; empty: none
    Patch patch;                              // of create, an empty object becomes what is created
    std::optional<std::string> version = {};  // that what is edited must have: version_of()
};

// Somebody else has edited the object since.
class Conflict : public Failure {
public:
    Conflict(const std::string& message, std::string version)
        : Failure(Exit::bad_input, message), version_(std::move(version)) {}
    const std::string& version() const noexcept { return version_; }  // that it has now

private:
    std::string version_;
};

// What an edit did.
struct Edited {
    std::vector<std::string> ids;
    std::string currency;  // ISO 4217; empty if none is set
    std::vector<Change> changes;
    std::vector<Removed> removed;
    std::vector<std::string> warnings;
};

Edited create(Database& database, const EditOptions& options, const Edit& edit);
Edited update(Database& database, const EditOptions& options, const Edit& edit);
Edited pause(Database& database, const EditOptions& options, const Edit& edit);
Edited resume(Database& database, const EditOptions& options, const Edit& edit);
Edited archive(Database& database, const EditOptions& options, const Edit& edit);
Edited clone(Database& database, const EditOptions& options, const Edit& edit);
Edited start(Database& database, const EditOptions& options, const Edit& edit);  // an experiment
Edited stop(Database& database, const EditOptions& options, const Edit& edit);

// A version of the history, or what was there before the edit that it belongs to.
struct RevertTo {
    std::string version;
    bool before = false;
};

// Makes an object, with what is in it, what it was. What is new since is archived; a status that
// cannot return stays.
Edited revert(Database& database, const EditOptions& options, const Edit& edit, const RevertTo& to);

}  // namespace ads::admin
