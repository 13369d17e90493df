// What of an object the command line can say: flags, --set and --file.
#pragma once

#include <span>
#include "arguments.hpp"

#include "json.hpp"
#include "manage.hpp"

namespace ads::cli {

enum class As {
    text,
    number,
    moment,    // a date alone is its midnight, UTC; "none" is none
    list,      // separated by commas
    texts,     // a value each time the flag is given
    file,      // the text of a file
    budget,    // none, daily:CENTS, lifetime:CENTS
    variants,  // creatives, each with its share, or none with one: equal shares
};

struct Field {
    const char* flag;
    const char* path;  // in the object
    As as;
    const char* value;  // how --help calls it
    const char* help;
};

std::span<const Field> fields_of(Kind kind);

void add_fields(Arguments& app, Kind kind, Values& values);

// Into the object. Throws Failure.
void set_field(json_t* object, const Field& field, const std::vector<std::string>& values);
// All that the command line says: the file first, then flags, then --set.
void apply(const Edit& edit, json_t* object);

// The object in a file: "campaign" or "ad_group" in it is what it stands in.
Json read_object(const std::string& file);

// As RFC 7396 says: objects are merged, null removes, all else is replaced.
void merge(json_t* target, const json_t* patch);

}  // namespace ads::cli
