// nginx-ads doctor: what is in the schema, and who may use it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "lib/base/text.hpp"
#include "lib/database/findings.hpp"
#include "lib/database/migrations.hpp"

namespace ads::admin {

namespace {

constexpr const char* kMigrate = "nginx-ads migrate";
constexpr const char* kRepair = "nginx-ads migrate --repair";
constexpr size_t kMonthsAhead = 2;
constexpr size_t kNamesShown = 3;

// "a, b, c and 4 more"
std::string listed(const std::vector<std::string>& names) {
    const size_t shown = std::min(names.size(), kNamesShown);
    std::string text = printable(fmt::format(
        "{}", fmt::join(names.begin(), names.begin() + static_cast<ptrdiff_t>(shown), ", ")));
    if (names.size() > shown) {
        text += fmt::format(" and {} more", names.size() - shown);
    }
    return text;
}

std::vector<std::string> column(const Rows& rows) {
    std::vector<std::string> values;
    for (size_t i = 0; i < rows.size(); i++) {
        values.emplace_back(rows.at(i, 0));
    }
    return values;
}

class Schema {
public:
    Schema(Database& database, Findings& findings) : database_(database), findings_(findings) {}

    void run() {
        if (database_.value("SELECT to_regnamespace('ads') IS NULL") == "t") {
            findings_.problem("migrations", "there is no schema ads in this database.", kMigrate);
            return;
        }
        migrations();
        rights();
        // Without USAGE PostgreSQL does not list the schema.
        const bool usage = database_.value("SELECT has_schema_privilege('ads', 'USAGE')") == "t";
        if (usage && exists("ads.ad_events") && exists("ads.event_claims")) {
            partitions();
            indexes();
        }
    }

private:
    bool exists(const char* table) {
        return database_.value("SELECT to_regclass($1) IS NOT NULL", {table}) == "t";
    }

    // ---- migrations ----

    void migrations() {
        try {
            judge(applied_files(database_));
        } catch (const SqlError& e) {
            if (!e.is("42501")) {
                throw;
            }
            findings_.warning("migrations", "this role may not read which files were applied.",
                              "run nginx-ads migrate status as the owner of the schema");
        }
    }

    void judge(const AppliedFiles& applied) {
        if (!applied.schema) {
            findings_.problem("migrations", "the schema ads was not created by nginx-ads migrate.",
                              kMigrate);
            return;
        }
        const auto rows = compared(applied);
        std::map<FileState, std::vector<std::string>> files;
        int version = 0;
        for (const auto& row : rows) {
            files[row.state].push_back(row.path);
            version = std::max(version, row.file == nullptr ? 0 : row.file->version);
        }
        if (const auto& pending = files[FileState::pending]; !pending.empty()) {
            pending_ = true;
            findings_.problem("migrations", fmt::format("pending: {}.", listed(pending)), kMigrate);
        }
        if (const auto& changed = files[FileState::changed]; !changed.empty()) {
            findings_.problem(
                "migrations",
                fmt::format("applied from files that differ from this nginx-ads: {}.",
                            listed(changed)),
                "use the nginx-ads that migrated this database; \"nginx-ads migrate status\" "
                "says when that was");
        }
        if (const auto& unknown = files[FileState::unknown]; !unknown.empty()) {
            findings_.problem(
                "migrations",
                fmt::format("the database is newer than this nginx-ads: {}.", listed(unknown)),
                "install the nginx-ads that migrated it, or a newer one");
        }
        if (files[FileState::applied].size() == rows.size()) {
            findings_.ok("migrations", fmt::format("version {}, up to date.", version));
        }
    }

    // ---- rights ----

    void rights() {
        if (database_.value("SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = 'ads_edge')") !=
            "t") {
            findings_.problem("rights", "there is no role ads_edge for the nodes.", kMigrate);
            return;
        }
        // Who owns the schema or edits campaigns may ask on behalf of the nodes.
        const Rows rows = database_.run(
            "SELECT current_user, pg_has_role(current_user, 'ads_edge', 'MEMBER'), "
            "pg_has_role(current_user, nspowner, 'USAGE') OR EXISTS (SELECT FROM pg_roles "
            "WHERE rolname IN ('ads_admin', 'ads_report') AND pg_has_role(current_user, oid, "
            "'MEMBER')) FROM pg_namespace WHERE nspname = 'ads'");
        const std::string me(rows.at(0, 0));
        const bool other = rows.flag(0, 2);
        const std::string role = other ? "ads_edge" : me;
        const std::string what = fmt::format("role {}", printable(role));
        const Rows missing = database_.run(
            "SELECT wanted FROM unnest(ARRAY['ingest', 'catalog', 'catalog_changes', "
            "'ensure_partitions', 'rights', 'verdicts']) AS wanted WHERE NOT "
            "has_schema_privilege($1, 'ads', 'USAGE') "
            "OR NOT EXISTS (SELECT FROM pg_proc WHERE pronamespace = 'ads'::regnamespace "
            "AND proname = wanted AND has_function_privilege($1, oid, 'EXECUTE'))",
            {role});
        if (!missing.empty()) {
            std::vector<std::string> names;
            for (const auto& name : column(missing)) {
                names.push_back(fmt::format("ads.{}()", name));
            }
            findings_.problem(
                "rights", fmt::format("{} may not execute {}.", what, listed(names)),
                other || pending_ ? kMigrate : fmt::format("GRANT ads_edge TO {};", quoted(me)));
            return;
        }
        const auto more = column(database_.run(
            "SELECT relname FROM pg_class WHERE relnamespace = 'ads'::regnamespace "
            "AND relkind IN ('r', 'p') AND has_schema_privilege($1, 'ads', 'USAGE') "
            "AND has_table_privilege($1, oid, 'INSERT, UPDATE, DELETE, TRUNCATE') ORDER BY 1",
            {role}));
        if (!more.empty()) {
            findings_.warning(
                "rights",
                fmt::format("{} may write to {}: a node only needs the functions.", what,
                            listed(more)),
                fmt::format("REVOKE ALL ON ALL TABLES IN SCHEMA ads FROM {};", quoted(role)));
            return;
        }
        findings_.ok("rights",
                     fmt::format("{} has exactly the privileges that a node needs.", what));
    }

    std::string quoted(const std::string& name) {
        return printable(database_.value("SELECT quote_ident($1)", {name}));
    }

    // ---- partitions ----

    void partitions() {
        std::vector<std::string> missing;
        for (const char* table : {"ad_events", "event_claims"}) {
            for (const auto& month : missing_months(table)) {
                missing.push_back(fmt::format("{} of {}", table, month));
            }
        }
        if (missing.empty()) {
            findings_.ok("partitions",
                         fmt::format("present for this month and the next {}.", kMonthsAhead));
        } else {
            findings_.problem(
                "partitions",
                fmt::format("missing: {}. Events of those months will be quarantined.",
                            listed(missing)),
                "SELECT ads.ensure_partitions();");
        }
    }

    // Bounds are compared as moments. Those of event_claims are ids, which
    // begin with 48 bits of milliseconds.
    std::vector<std::string> missing_months(const std::string& table) {
        return column(database_.run(
            "WITH bound AS ("
            "  SELECT pg_get_expr(c.relpartbound, c.oid) AS text"
            "  FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid"
            "  WHERE i.inhparent = ('ads.' || $1)::regclass"
            "), ends AS ("
            "  SELECT substring(text FROM 'FROM \\(''([^'']*)''\\)') AS low,"
            "         substring(text FROM 'TO \\(''([^'']*)''\\)') AS high FROM bound"
            "), part AS ("
            "  SELECT CASE WHEN $1 = 'ad_events' THEN low::timestamptz ELSE to_timestamp("
            "    ('x' || left(translate(low, '-', ''), 12))::bit(48)::bigint / 1000.0) END AS low,"
            "    CASE WHEN $1 = 'ad_events' THEN high::timestamptz ELSE to_timestamp("
            "    ('x' || left(translate(high, '-', ''), 12))::bit(48)::bigint / 1000.0) END AS high"
            "  FROM ends"
            "), month AS ("
            "  SELECT date_trunc('month', now() AT TIME ZONE 'UTC') + n * interval '1 month' AS day"
            "  FROM generate_series(0, $2::int) AS n"
            ") "
            "SELECT to_char(day, 'YYYY-MM') FROM month WHERE NOT EXISTS (SELECT FROM part "
            "  WHERE coalesce(low, '-infinity') <= day AT TIME ZONE 'UTC' AND "
            "  coalesce(high, 'infinity') >= (day + interval '1 month') AT TIME ZONE 'UTC') "
            "ORDER BY day",
            {table, std::to_string(kMonthsAhead)}));
    }

    // ---- indexes ----

    void indexes() {
        const Rows rows = database_.run(
            "WITH wanted AS (SELECT unnest(ARRAY['idx_ad_events_campaign_type_time', "
            "  'idx_ad_events_session_group_type_time', 'idx_ad_events_campaign_creative_type', "
            "  'idx_ad_events_campaign_time']) AS name), "
            "leaf AS (SELECT i.inhrelid AS oid, c.relname AS name FROM pg_inherits i "
            "  JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = "
            "'ads.ad_events'::regclass) "
            // The indexes of the whole table, then those of each partition.
            "SELECT wanted.name, NULL, x.indisvalid, NULL FROM wanted LEFT JOIN (pg_class c "
            "  JOIN pg_index x ON x.indexrelid = c.oid AND x.indrelid = 'ads.ad_events'::regclass) "
            "  ON c.relname = wanted.name "
            "UNION ALL "
            "SELECT wanted.name, leaf.name, x.indisvalid, x.indexrelid::regclass::text "
            "FROM wanted CROSS JOIN leaf "
            "LEFT JOIN (pg_class parent JOIN pg_inherits i ON i.inhparent = parent.oid "
            "  JOIN pg_index x ON x.indexrelid = i.inhrelid) "
            "  ON parent.relname = wanted.name AND parent.relnamespace = 'ads'::regnamespace "
            "  AND x.indrelid = leaf.oid "
            "ORDER BY 1, 2 NULLS FIRST");
        std::vector<std::string> missing;
        std::vector<std::string> invalid;
        std::string to_rebuild;
        for (size_t i = 0; i < rows.size(); i++) {
            const bool whole = rows.null(i, 1);
            const std::string name = whole ? std::string(rows.at(i, 0))
                                           : fmt::format("{} of {}", rows.at(i, 0), rows.at(i, 1));
            if (rows.null(i, 2)) {
                missing.push_back(name);
            } else if (!rows.flag(i, 2)) {
                invalid.push_back(name);
                to_rebuild = whole ? to_rebuild : printable(rows.at(i, 3));
            }
        }
        if (!missing.empty()) {
            findings_.problem("indexes", fmt::format("missing: {}.", listed(missing)),
                              pending_ ? kMigrate : kRepair);
        }
        // That of the whole table is invalid as long as one of a partition is missing.
        if (!to_rebuild.empty() || (!invalid.empty() && missing.empty())) {
            findings_.problem(
                "indexes", fmt::format("invalid, so that no query uses them: {}.", listed(invalid)),
                to_rebuild.empty() ? kRepair
                                   : fmt::format("REINDEX INDEX CONCURRENTLY {};", to_rebuild));
        }
        leftovers();
        if (missing.empty() && invalid.empty()) {
            findings_.ok("indexes", fmt::format("all {} are present and valid.", rows.size()));
        }
    }

    // Left over from an interrupted CREATE INDEX CONCURRENTLY or REINDEX.
    void leftovers() {
        const auto names = column(
            database_.run("SELECT x.indexrelid::regclass::text FROM pg_index x JOIN pg_class c "
                          "ON c.oid = x.indexrelid WHERE NOT x.indisvalid AND c.relkind = 'i' AND "
                          "c.relnamespace = 'ads'::regnamespace AND NOT EXISTS "
                          "(SELECT FROM pg_inherits WHERE inhrelid = c.oid) ORDER BY 1"));
        if (!names.empty()) {
            findings_.warning(
                "indexes",
                fmt::format("invalid, left over from an interrupted build: {}.", listed(names)),
                pending_ ? kMigrate : kRepair);
        }
    }

    Database& database_;
    Findings& findings_;
    bool pending_ = false;
};

}  // namespace

void examine_schema(Database& database, Findings& findings) {
    Schema(database, findings).run();
}

}  // namespace ads::admin
