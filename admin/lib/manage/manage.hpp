// Edits single objects of the catalog in PostgreSQL. A campaign is read as a document, changed,
// checked as nginx does, and written by the functions that import uses, in one transaction. All
// functions throw Failure, and print nothing.
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
    std::string actor;     // for the history; empty: the database role
    bool dry_run = false;  // roll back at the end
    bool strict = false;   // a warning is an error
};

// Changes an object of the catalog document. Throws Failure.
using Patch = std::function<void(json_t* object)>;

// Objects are named by id, or by a unique name.
struct Edit {
    Kind kind = Kind::campaign;
    std::vector<std::string> ids;             // of edited objects; of a new advertiser or placement
    std::string parent;                       // of a new object: the campaign, the ad group
    std::string name;                         // of a clone
    std::string winner;                       // of an experiment to stop; empty: none
    Patch patch;                              // for create: turns an empty object into the new one
    std::optional<std::string> version = {};  // required version of the object: version_of()
};

// The object was edited by someone else in the meantime.
class Conflict : public Failure {
public:
    Conflict(const std::string& message, std::string version)
        : Failure(Exit::bad_input, message), version_(std::move(version)) {}
    const std::string& version() const noexcept { return version_; }  // the present one

private:
    std::string version_;
};

// The result of an edit.
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
