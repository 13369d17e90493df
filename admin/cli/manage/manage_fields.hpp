// The options that set an object: flags, --set and --file.
#pragma once

#include <span>
#include "cli/common/arguments.hpp"

#include "cli/common/output.hpp"
#include "cli/manage/manage.hpp"
#include "lib/base/json.hpp"

namespace ads::cli {

enum class As {
    text,
    name,  // of another object; "none" takes it away
    number,
    moment,    // a date or a time in the campaign's zone, or "none"
    money,     // 2.50
    price,     // the same, of the model that the flag is called by
    list,      // separated by commas
    texts,     // a value each time the flag is given
    file,      // the text of a file
    budget,    // none, 50.00/day, 5000/total
    caps,      // 3/day, each time the flag is given
    hours,     // mon-fri:9-17, the same
    goal,      // 500000, 2000/clicks
    keys,      // section=sports,politics, the same
    image,     // a file that is uploaded
    option,    // of the command, not of the object
    variants,  // creatives, each with its share, or none with one: equal shares
};

struct Field {
    const char* flag;
    const char* path;  // in the object
    As as;
    const char* value;  // how --help calls it
    const char* help;
};

// Given several times, it means all of them.
bool is_repeated(As as);

std::span<const Field> fields_of(Kind kind);

void add_fields(Arguments& app, Kind kind, Values& values);

// Into the object. Throws Failure.
void set_field(json_t* object, const Field& field, const std::vector<std::string>& values);
// All that the command line says: the file first, then flags, then --set.
void apply(const EditCommand& command, json_t* object);

// The object in a file; "campaign" or "ad_group" in it name its parent.
Json read_object(const std::string& file);

}  // namespace ads::cli
