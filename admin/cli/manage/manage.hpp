// The commands that edit or show objects of the catalog in PostgreSQL.
#pragma once

#include <jansson.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cli/common/output.hpp"
#include "lib/manage/manage.hpp"

namespace ads::cli {

// Options of all these commands.
struct Access {
    std::string database;
    std::string actor;  // --as; empty: $USER
    bool json = false;
    bool dry_run = false;
    bool strict = false;
};

// The values of an object's flags, by flag.
using Values = std::map<std::string, std::vector<std::string>>;

// An edit as given on the command line.
struct EditCommand {
    Edit edit;
    Access access;
    std::string id;  // of the only one
    std::string file;
    Values values;
    std::vector<std::string> sets;  // PATH=VALUE
    std::string to;                 // of revert: a version,
    std::string before;             // or that before an edit
};

Exit run_create(const EditCommand& command);
Exit run_update(const EditCommand& command);
Exit run_pause(const EditCommand& command);
Exit run_resume(const EditCommand& command);
Exit run_archive(const EditCommand& command);
Exit run_clone(const EditCommand& command);
Exit run_start(const EditCommand& command);  // an experiment
Exit run_stop(const EditCommand& command);
Exit run_revert(const EditCommand& command);
Exit resanitize(const Access& access);

struct Look {
    Kind kind = Kind::campaign;
    Access access;
    std::string id;
    bool all = false;    // history: with the changes of its children
    uint64_t limit = 0;  // 0: no limit
};

Exit show(const Look& look);
Exit history(const Look& look);

// Asks for the values that a campaign requires, with explanations. Throws Failure without a
// terminal.
void ask_for_campaign(json_t* campaign);

// The options of an edit. The actor is --as, else the user.
EditOptions options_of(const Access& access);
std::string actor_of(const std::string& option);

// Prints the result.
void show_edited(const EditCommand& command, const char* action, const Edited& edited);

json_t* warnings_json(const std::vector<std::string>& warnings);

}  // namespace ads::cli
