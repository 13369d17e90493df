// The findings of nginx-ads doctor, each with a remedy.
#pragma once

#include <string>
#include <vector>

#include "lib/base/database.hpp"
#include "lib/base/failure.hpp"

namespace ads::admin {

enum class Level { ok, warning, problem };

struct Finding {
    std::string check;
    Level level = Level::ok;
    std::string message;
    std::string remedy;  // a command or an instruction; empty if ok
};

class Findings {
public:
    void ok(const char* check, std::string message) {
        list_.push_back({check, Level::ok, std::move(message), {}});
    }
    void warning(const char* check, std::string message, std::string remedy) {
        list_.push_back({check, Level::warning, std::move(message), std::move(remedy)});
    }
    void problem(const char* check, std::string message, std::string remedy) {
        list_.push_back({check, Level::problem, std::move(message), std::move(remedy)});
    }
    const std::vector<Finding>& list() const noexcept { return list_; }

private:
    std::vector<Finding> list_;
};

// Migrations, rights, partitions, indexes. Throws SqlError.
void examine_schema(Database& database, Findings& findings);

// Nodes that share limits, and which of these are short. Throws SqlError.
void examine_fleet(Database& database, Findings& findings);

}  // namespace ads::admin
