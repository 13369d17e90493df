#include "cli/database/migrations.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <new>
#include <utility>

namespace ads::cli {

namespace {

constexpr std::string_view kNoTransaction = "-- no transaction";
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

Migration migration_of(const SqlFile& file) {
    Migration migration;
    const std::string_view stem = file.file.substr(0, file.file.rfind('.'));
    std::from_chars(stem.data(), stem.data() + stem.size(), migration.version);
    migration.name = stem.substr(stem.find('_') + 1);
    migration.file = file.file;
    migration.text = file.text;
    migration.checksum = sha256(file.text);
    migration.transaction = file.text.substr(0, file.text.find('\n')) != kNoTransaction;
    return migration;
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

const std::vector<Migration>& migrations() {
    static const std::vector<Migration> list = [] {
        std::vector<Migration> made;
        for (const auto& file : kSqlFiles) {
            made.push_back(migration_of(file));
        }
        std::sort(made.begin(), made.end(),
                  [](const auto& a, const auto& b) { return a.version < b.version; });
        return made;
    }();
    return list;
}

std::optional<std::map<int, Applied>> applied_migrations(Database& database) {
    if (database.value("SELECT to_regclass('ads.migrations') IS NOT NULL") != "t") {
        return std::nullopt;
    }
    const Rows rows = database.run(
        "SELECT version, name, checksum, "
        "to_char(applied_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"'), seconds "
        "FROM ads.migrations ORDER BY version");
    std::map<int, Applied> applied;
    for (size_t i = 0; i < rows.size(); i++) {
        const int version = static_cast<int>(rows.number(i, 0));
        applied[version] = {version, std::string(rows.at(i, 1)), std::string(rows.at(i, 2)),
                            std::string(rows.at(i, 3)), rows.real(i, 4)};
    }
    return applied;
}

std::string_view name_of(MigrationState state) {
    constexpr auto kNames =
        std::to_array<std::string_view>({"applied", "pending", "changed", "unknown"});
    return kNames[static_cast<size_t>(state)];
}

std::vector<MigrationRow> compared(const std::map<int, Applied>& applied) {
    std::map<int, MigrationRow> rows;
    for (const auto& migration : migrations()) {
        rows[migration.version].migration = &migration;
    }
    for (const auto& [version, one] : applied) {
        MigrationRow& row = rows[version];
        row.applied = &one;
        row.state = row.migration == nullptr                           ? MigrationState::unknown
                    : row.migration->checksum != row.applied->checksum ? MigrationState::changed
                                                                       : MigrationState::applied;
    }
    std::vector<MigrationRow> list;
    for (const auto& [version, row] : rows) {
        list.push_back(row);
    }
    return list;
}

}  // namespace ads::cli
