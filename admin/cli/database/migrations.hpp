// The schema's migrations: the files of admin/sql, built into the command,
// and what a database says it has of them.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/common/database.hpp"

namespace ads::cli {

// A file as it was when the command was built: NNNN_name.sql. The list is in
// a source that make writes.
struct SqlFile {
    std::string_view file;
    std::string_view text;
};
extern const std::span<const SqlFile> kSqlFiles;

struct Statement {
    std::string text;
    size_t line = 1;         // of the file, where it begins
    bool generates = false;  // each row of its answer is a statement
};

// The statements of a file, each without the comments before it.
std::vector<Statement> statements_of(std::string_view text);

struct Migration {
    int version = 0;
    std::string name;
    std::string file;
    std::string_view text;
    std::string checksum;     // SHA-256 of the text, in hex
    bool transaction = true;  // false: statement by statement, to be re-run if interrupted
};

// All of them, in order.
const std::vector<Migration>& migrations();

// What ads.migrations says of one.
struct Applied {
    int version = 0;
    std::string name;
    std::string checksum;
    std::string at;  // UTC
    double seconds = 0;
};

// By version; nothing if there is no such table. Throws SqlError.
std::optional<std::map<int, Applied>> applied_migrations(Database& database);

enum class MigrationState { applied, pending, changed, unknown };
std::string_view name_of(MigrationState state);

// A line of `migrate status`: of the command, of the database, or of both.
struct MigrationRow {
    const Migration* migration = nullptr;
    const Applied* applied = nullptr;
    MigrationState state = MigrationState::pending;

    int version() const { return migration != nullptr ? migration->version : applied->version; }
    const std::string& name() const {
        return migration != nullptr ? migration->name : applied->name;
    }
};
std::vector<MigrationRow> compared(const std::map<int, Applied>& applied);

}  // namespace ads::cli
