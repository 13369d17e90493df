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
    name,  // of another object; "none" removes it
    number,
    moment,    // a date or a time in the campaign's zone, or "none"
    money,     // 2.50
    price,     // the same; the flag names the price model
    list,      // separated by commas
    texts,     // one value per flag
    file,      // the text of a file
    budget,    // none, 50.00/day, 5000/total
    caps,      // 3/day, one per flag
    hours,     // mon-fri:9-17, one per flag
    goal,      // 500000, 2000/clicks
    keys,      // section=sports,politics, one per flag
    image,     // a file to upload
    option,    // of the command, not of the object
    variants,  // creatives, all or none with a share; none: equal shares
};

struct Field {
    const char* flag;
    const char* path;  // in the object
    As as;
    const char* value;  // as shown by --help
    const char* help;
};

// If the flag is given several times, all values apply.
bool is_repeated(As as);

std::span<const Field> fields_of(Kind kind);

void add_fields(Arguments& app, Kind kind, Values& values);

// Sets the value in the object. Throws Failure.
void set_field(json_t* object, const Field& field, const std::vector<std::string>& values);
// Everything from the command line: the file first, then flags, then --set.
void apply(const EditCommand& command, json_t* object);

// The object from a file; "campaign" or "ad_group" in it name its parent.
Json read_object(const std::string& file);

}  // namespace ads::cli
