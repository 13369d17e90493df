// Management: the commands that edit one thing of the catalog in PostgreSQL.
// They read a campaign as a document, change it, check it as nginx does, and
// write it by the functions that import uses, in one transaction.
#pragma once

#include <jansson.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cli/common/output.hpp"

namespace ads::cli {

enum class Kind { advertiser, campaign, ad_group, creative, placement, experiment };
inline constexpr size_t kKinds = 6;

struct KindWords {
    const char* command;  // ad-group
    const char* name;     // ad group
    const char* article;  // an
    const char* plural;
    const char* table;
    const char* parent;  // the key by which a file names what it stands in; null without
};
const KindWords& words_of(Kind kind);

// What every command of them is told.
struct Access {
    std::string database;
    std::string actor;  // --as; empty: $USER
    bool json = false;
    bool dry_run = false;
    bool strict = false;
};

// The values of an object's flags, by flag.
using Values = std::map<std::string, std::vector<std::string>>;

// An edit as the command line says it.
struct Edit {
    Kind kind = Kind::campaign;
    Access access;
    std::string id;                // of what is edited; of a new one, or empty
    std::vector<std::string> ids;  // of several that are edited at once
    std::string parent;            // of a new one: the campaign, the ad group
    std::string name;              // of a clone
    std::string winner;            // of an experiment that is stopped; empty: none
    std::string file;
    Values values;
    std::vector<std::string> sets;  // PATH=VALUE
};

Exit create(const Edit& edit);
Exit update(const Edit& edit);
Exit pause(const Edit& edit);
Exit resume(const Edit& edit);
Exit archive(const Edit& edit);
Exit clone(const Edit& edit);
Exit start(const Edit& edit);  // an experiment
Exit stop(const Edit& edit);
Exit resanitize(const Edit& edit);

struct Look {
    Kind kind = Kind::campaign;
    Access access;
    std::string id;
    bool all = false;    // history: what is below, too
    uint64_t limit = 0;  // 0: no limit
};

Exit show(const Look& look);
Exit history(const Look& look);

// Asks for what a campaign needs, and explains. Throws Failure if nobody is
// there to answer.
void ask_for_campaign(json_t* campaign);

// A number from 1 to 2^32 - 1. Throws Failure.
uint64_t id_of(Kind kind, const std::string& text);

}  // namespace ads::cli
