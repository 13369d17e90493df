// --batch: reads a JSON object from each line of standard input and writes one line to standard
// output for each, in the same order. An invalid line gets an error as its answer, and reading
// continues.
#pragma once

#include <jansson.h>

#include <functional>
#include <stdexcept>
#include <string>

#include "cli/common/output.hpp"
#include "lib/base/json.hpp"

namespace ads::cli {

// The error of a line.
struct BadLine : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// Fills in the answer, which has the id of the line.
using BatchHandler = std::function<void(const json_t* line, json_t* answer)>;

Exit run_batch(const BatchHandler& handle);

// A string member; throws BadLine if it is missing.
std::string_view string_member(const json_t* line, const char* name);

void put(json_t* object, const char* name, json_t* value);

}  // namespace ads::cli
