#include "lib/database/migrations.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <new>
#include <utility>

#include "version.hpp"

namespace ads::admin {

namespace {

constexpr std::string_view kTables = "tables/";
constexpr std::string_view kNoTransaction = "-- no transaction\n";
constexpr std::string_view kReplaces = "-- replaces migrations 1 to ";
constexpr std::string_view kGenerates = "-- each row is a statement";

// ---- SQL, as far as the end of a statement needs it ----

bool word(char c) noexcept {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           (static_cast<unsigned char>(c) & 0x80) != 0;
}

bool blank(char c) noexcept {
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

// Each of these gets the position of a token's first byte and returns that
// after its last; of one that does not end, the end of the text.

size_t after(std::string_view text, size_t at, std::string_view end) {
    const size_t found = text.find(end, at);
    return found == text.npos ? text.size() : found + end.size();
}

// '…' or "…": a doubled quote is one of the text, as two strings in a row are.
size_t quoted(std::string_view text, size_t at) {
    return after(text, at + 1, text.substr(at, 1));
}

// E'…', which has \' as well.
size_t escaped(std::string_view text, size_t at) {
    for (at += 1; at < text.size() && text[at] != '\''; at++) {
        at += text[at] == '\\' ? 1 : 0;
    }
    return std::min(at + 1, text.size());
}

// $tag$…$tag$; a lone $ is one byte.
size_t dollar(std::string_view text, size_t at) {
    size_t end = at + 1;
    while (end < text.size() && word(text[end])) {
        end++;
    }
    if (end == text.size() || text[end] != '$') {
        return at + 1;
    }
    return after(text, end + 1, text.substr(at, end + 1 - at));
}

// Comments like /* this */ may hold others.
size_t comment(std::string_view text, size_t at) {
    size_t depth = 0;
    for (; at < text.size(); at++) {
        const std::string_view two = text.substr(at, 2);
        if (two == "/*" || two == "*/") {
            depth = two == "/*" ? depth + 1 : depth - 1;
            at++;
        }
        if (depth == 0) {
            return at + 1;
        }
    }
    return text.size();
}

size_t token(std::string_view text, size_t at) {
    if (word(text[at])) {
        size_t end = at;
        while (end < text.size() && (word(text[end]) || text[end] == '$')) {
            end++;
        }
        const bool e = end == at + 1 && (text[at] == 'e' || text[at] == 'E');
        return e && end < text.size() && text[end] == '\'' ? escaped(text, end) : end;
    }
    switch (text[at]) {
        case '\'':
        case '"':
            return quoted(text, at);
        case '$':
            return dollar(text, at);
        default:
            return at + 1;
    }
}

// The comment that begins here; nothing if none does.
size_t comment_end(std::string_view text, size_t at) {
    const std::string_view two = text.substr(at, 2);
    return two == "--"   ? std::min(text.find('\n', at), text.size())
           : two == "/*" ? comment(text, at)
                         : at;
}

// ---- files ----

std::string sha256(std::string_view text) {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
    unsigned size = 0;
    if (EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha256(), nullptr) != 1) {
        throw std::bad_alloc();
    }
    return fmt::format("{:02x}", fmt::join(digest.begin(), digest.begin() + size, ""));
}

int number_after(std::string_view text, std::string_view label) {
    int number = 0;
    if (const size_t at = text.find(label); at != text.npos) {
        std::from_chars(text.data() + at + label.size(), text.data() + text.size(), number);
    }
    return number;
}

SchemaFile schema_file(const SqlFile& source) {
    SchemaFile file;
    file.path = source.path;
    file.text = source.text;
    file.checksum = sha256(source.text);
    file.version = number_after(source.path, kTables);
    if (file.numbered()) {
        const size_t name = source.path.find('_') + 1;
        file.name = source.path.substr(name, source.path.rfind('.') - name);
    }
    const std::string_view head = source.text.substr(0, source.text.find("\n\n"));
    file.transaction = !head.starts_with(kNoTransaction);
    file.replaces = number_after(head, kReplaces);
    return file;
}

// "1.2.10" is newer than "1.2.9".
bool newer(std::string_view release, std::string_view than) {
    const auto parts = [](std::string_view text) {
        std::array<int, 3> numbers{};
        for (int& number : numbers) {
            std::from_chars(text.data(), text.data() + text.size(), number);
            text.remove_prefix(std::min(text.find('.'), text.size() - 1) + 1);
        }
        return numbers;
    };
    return parts(release) > parts(than);
}

FileState state_of(const SchemaFile& file, const Applied& applied) {
    if (file.checksum == applied.checksum) {
        return FileState::applied;
    }
    if (file.numbered()) {
        return FileState::changed;
    }
    return newer(applied.release, ADS_VERSION) ? FileState::unknown : FileState::pending;
}

}  // namespace

std::vector<Statement> statements_of(std::string_view text) {
    std::vector<Statement> statements;
    size_t line = 1;
    bool generates = false;
    for (size_t at = 0; at < text.size();) {
        const size_t skipped = blank(text[at]) ? at + 1 : comment_end(text, at);
        if (skipped > at) {
            generates |= text.substr(at, skipped - at).starts_with(kGenerates);
            line += static_cast<size_t>(std::count(text.begin() + static_cast<ptrdiff_t>(at),
                                                   text.begin() + static_cast<ptrdiff_t>(skipped),
                                                   '\n'));
            at = skipped;
            continue;
        }
        const size_t begin = at;
        while (at < text.size() && text[at] != ';') {
            const size_t end = comment_end(text, at);
            at = end > at ? end : token(text, at);
        }
        at = std::min(at + 1, text.size());
        const std::string_view found = text.substr(begin, at - begin);
        if (found != ";") {
            statements.push_back({std::string(found), line, std::exchange(generates, false)});
        }
        line += static_cast<size_t>(std::count(found.begin(), found.end(), '\n'));
    }
    return statements;
}

const std::vector<SchemaFile>& schema_files() {
    static const std::vector<SchemaFile> list = [] {
        std::vector<SchemaFile> made;
        for (const auto& file : kSqlFiles) {
            made.push_back(schema_file(file));
        }
        return made;
    }();
    return list;
}

AppliedFiles applied_files(Database& database) {
    AppliedFiles applied;
    applied.schema = database.value("SELECT to_regclass('ads.migrations') IS NOT NULL") == "t";
    const auto read = [&](const std::string& query) {
        const Rows rows = database.run(fmt::format(
            "SELECT path, version, checksum, "
            "to_char(applied_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"'), seconds, "
            "release FROM ({}) f ORDER BY path",
            query));
        for (size_t i = 0; i < rows.size(); i++) {
            applied.files[std::string(rows.at(i, 0))] = {
                static_cast<int>(rows.number(i, 1)), std::string(rows.at(i, 2)),
                std::string(rows.at(i, 3)), rows.real(i, 4), std::string(rows.at(i, 5))};
        }
    };
    if (applied.schema) {
        read(
            "SELECT *, format('tables/%s_%s.sql', lpad(version::text, 4, '0'), name) AS path, "
            "'' AS release FROM ads.migrations");
    }
    if (database.value("SELECT to_regclass('ads.function_files') IS NOT NULL") == "t") {
        read("SELECT *, 0 AS version FROM ads.function_files");
    }
    return applied;
}

std::string_view name_of(FileState state) {
    constexpr auto kNames =
        std::to_array<std::string_view>({"applied", "pending", "changed", "unknown"});
    return kNames[static_cast<size_t>(state)];
}

std::vector<FileRow> compared(const AppliedFiles& applied) {
    std::vector<FileRow> rows;
    int replaced = 0;
    for (const auto& file : schema_files()) {
        FileRow row{file.path, &file};
        if (const auto found = applied.files.find(file.path); found != applied.files.end()) {
            row.applied = &found->second;
            row.state = state_of(file, *row.applied);
        } else if (file.replaces > 0) {
            row.replaced = std::any_of(
                applied.files.begin(), applied.files.end(),
                [&](const auto& other) { return other.second.version == file.replaces; });
        }
        replaced = std::max(replaced, file.replaces);
        rows.push_back(row);
    }
    for (const auto& [path, one] : applied.files) {
        const bool known =
            std::any_of(rows.begin(), rows.end(),
                        [&, &path = path](const auto& row) { return row.path == path; });
        if (!known && one.version > replaced) {
            rows.push_back({path, nullptr, &one, FileState::unknown});
        }
    }
    return rows;
}

}  // namespace ads::admin
