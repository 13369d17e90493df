// --batch: a JSON object on each line of standard input, and one on each line
// of standard output, in the same order. A bad line has its answer, too, and
// the next one goes on.
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

// Fills in the answer, which has the line's id.
using BatchHandler = std::function<void(const json_t* line, json_t* answer)>;

Exit run_batch(const BatchHandler& handle);

// A member that is a string; throws BadLine.
std::string_view string_member(const json_t* line, const char* name);

void put(json_t* object, const char* name, json_t* value);

}  // namespace ads::cli
