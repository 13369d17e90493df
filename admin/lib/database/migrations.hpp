// The files of the schema: those of admin/sql, built into the command, and the ones recorded as
// applied in a database. Tables are created by numbered files, each applied once; function files
// are applied again when they have changed, and rights.sql after any other change.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/database.hpp"
#include "lib/base/failure.hpp"

namespace ads::admin {

// A file as it was when the command was built. The list is in a source that make writes: in the
// order in which they are applied.
struct SqlFile {
    std::string_view path;  // "tables/0021_catalog.sql", "functions/ingest.sql", "rights.sql"
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

struct SchemaFile {
    std::string path;
    std::string_view text;
    std::string checksum;     // SHA-256 of the text, in hex
    int version = 0;          // of a numbered file
    std::string name;         // of a numbered file
    bool transaction = true;  // false: statement by statement, to be re-run if interrupted
    int replaces = 0;         // a database with this migration, now gone, has what the file makes

    bool numbered() const { return version > 0; }
};
const std::vector<SchemaFile>& schema_files();

// The record of a file in ads.migrations or ads.function_files.
struct Applied {
    int version = 0;
    std::string checksum;
    std::string at;  // UTC
    double seconds = 0;
    std::string release;  // of the nginx-ads that applied a file of functions
};

// By path. Throws SqlError.
struct AppliedFiles {
    bool schema = false;  // there is a table of migrations
    std::map<std::string, Applied> files;
};
AppliedFiles applied_files(Database& database);

enum class FileState {
    applied,
    pending,
    changed,  // a numbered file that is not the one that was applied
    unknown,  // of a newer nginx-ads
};
std::string_view name_of(FileState state);

// A line of `migrate status`: of the command, of the database, or of both.
struct FileRow {
    std::string path;
    const SchemaFile* file = nullptr;
    const Applied* applied = nullptr;
    FileState state = FileState::pending;
    bool replaced = false;  // the database has what the file makes, by the migrations it replaces
};
std::vector<FileRow> compared(const AppliedFiles& applied);

}  // namespace ads::admin
