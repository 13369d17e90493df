#include "lib/database/doctor.hpp"

#include <dirent.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <optional>

#include "core/decide/stop_list.hpp"
#include "io/spool.hpp"
#include "lib/base/http.hpp"
#include "lib/base/json.hpp"
#include "lib/base/text.hpp"
#include "lib/diagnosis/node_status.hpp"

namespace ads::admin {

namespace {

constexpr std::chrono::milliseconds kHttpTimeout(5000);
constexpr double kClockWarning = 2;   // seconds
constexpr double kClockProblem = 60;  // tokens from further ahead are refused
constexpr int64_t kLagWarning = 300;  // seconds
constexpr int64_t kLagProblem = 3600;
constexpr int64_t kSilentProblem = 5000;  // ms
constexpr off_t kOpenSize = 2 << 20;      // larger is an open segment only if it is not shipped

std::string duration_text(int64_t seconds) {
    return seconds < 120       ? fmt::format("{} s", seconds)
           : seconds < 7200    ? fmt::format("{} min", seconds / 60)
           : seconds < 172'800 ? fmt::format("{} h", seconds / 3600)
                               : fmt::format("{} days", seconds / 86'400);
}

std::string size_text(uint64_t bytes) {
    return bytes < 1 << 10   ? counted(bytes, "byte")
           : bytes < 1 << 20 ? fmt::format("{:.1f} KiB", static_cast<double>(bytes) / (1 << 10))
                             : fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
}

class Doctor {
public:
    explicit Doctor(const Examined& options)
        : options_(options), status_url_(status_url(options.status_url)) {}

    const Findings& run() {
        const bool other = !options_.spool.empty() || !status_url_.empty();
        if (!options_.database.empty() || admin::database_configured() || !other) {
            database();
        } else {
            findings_.ok("connection", "no database is configured: events stay in the spool.");
        }
        if (!options_.spool.empty()) {
            spool();
        }
        if (!status_url_.empty()) {
            node();
        }
        return findings_;
    }

private:
    // ---- the connection ----

    void database() {
        std::optional<Database> database;
        try {
            database.emplace(options_.database, "nginx-ads doctor");
        } catch (const Failure& e) {
            if (e.exit() == Exit::usage) {
                throw;
            }
            findings_.problem("connection", e.what(),
                              "try psql with the same conninfo on this machine");
            return;
        }
        try {
            connection(*database);
            server(*database);
            pooler(*database);
            clock(*database);
            examine_schema(*database, findings_);
            examine_fleet(*database, findings_);
        } catch (const SqlError& e) {
            findings_.problem("database", e.what(),
                              e.lost() ? "see the server's log for why it closed the connection"
                                       : "run doctor as the owner of the schema");
        }
    }

    void connection(Database& database) {
        const std::string tls = database.tls();
        const std::string how = database.socket() ? "by socket"
                                : !tls.empty()    ? tls
                                                  : "without TLS";
        const std::string message = fmt::format("{}, {}.", database.shown(), how);
        if (tls.empty() && !database.local()) {
            findings_.warning("connection", message,
                              "add \"sslmode=verify-full\" to the conninfo: passwords and events "
                              "cross the network unencrypted");
        } else {
            findings_.ok("connection", message);
        }
    }

    void server(Database& database) {
        const std::string version = version_text(database.version());
        if (database.version() < kLeastServer) {
            findings_.problem(
                "server", fmt::format("PostgreSQL {} is too old.", version),
                fmt::format("upgrade to PostgreSQL {} or newer", kLeastServer / 10000));
            return;
        }
        const Rows rows = database.run(
            "SELECT pg_is_in_recovery(), current_setting('transaction_read_only'), "
            "current_setting('synchronous_commit')");
        if (rows.flag(0, 0) || rows.at(0, 1) == "on") {
            findings_.problem("server", fmt::format("PostgreSQL {}, read-only.", version),
                              rows.flag(0, 0)
                                  ? "connect to the primary: name all hosts and add "
                                    "\"target_session_attrs=read-write\" to the conninfo"
                                  : "ALTER ROLE … RESET default_transaction_read_only;");
        } else if (rows.at(0, 2) == "off") {
            findings_.warning("server",
                              fmt::format("PostgreSQL {}, synchronous_commit off: a crash of the "
                                          "server loses events that the spool no longer has.",
                                          version),
                              "ALTER ROLE … SET synchronous_commit = on;");
        } else {
            findings_.ok("server", fmt::format("PostgreSQL {}.", version));
        }
    }

    void pooler(Database& database) {
        switch (pooling_of(database, options_.database)) {
            case Pooling::none:
                findings_.ok("pooler", "none: a direct connection.");
                break;
            case Pooling::session:
                findings_.ok("pooler", "present, with a server process per client.");
                break;
            case Pooling::transaction:
                findings_.warning(
                    "pooler",
                    "present, in transaction mode: events and polling work, "
                    "notifications and migrate do not.",
                    "ads_catalog postgres listen=\"conninfo\" with a direct connection, and the "
                    "same for \"nginx-ads migrate --database\"");
        }
    }

    void clock(Database& database) {
        const auto now = [] {
            timespec time;
            clock_gettime(CLOCK_REALTIME, &time);
            return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
        };
        const double before = now();
        const double there =
            database.run("SELECT extract(epoch FROM clock_timestamp())").real(0, 0);
        const double after = now();
        const double ahead = there - (before + after) / 2;
        // The round trip may be on either side.
        const double least = std::max(0.0, std::abs(ahead) - (after - before) / 2);
        const std::string message = fmt::format("the server's clock is {:.3f} s {} this machine's.",
                                                std::abs(ahead), ahead < 0 ? "behind" : "ahead of");
        if (least > kClockProblem) {
            findings_.problem("clock", message, "timedatectl set-ntp true, on both machines");
        } else if (least > kClockWarning) {
            findings_.warning("clock", message, "timedatectl set-ntp true, on both machines");
        } else {
            findings_.ok("clock", message);
        }
    }

    // ---- the spool ----

    void spool() {
        DIR* dir = opendir(options_.spool.c_str());
        if (dir == nullptr) {
            findings_.problem(
                "spool",
                fmt::format("cannot read {}: {}.", printable(options_.spool), std::strerror(errno)),
                "pass the folder of ads_spool, and run as a user who may read it");
            return;
        }
        closedir(dir);
        const SpoolUse use = spool_use(options_.spool);
        const auto oldest = oldest_waiting();
        const int64_t age = oldest ? std::max<int64_t>(0, std::time(nullptr) - *oldest / 1000) : 0;
        const std::string message = fmt::format(
            "{}, {}, {}.", counted(use.segments, "segment"), size_text(use.bytes),
            oldest ? fmt::format("the oldest waiting event is {} old", duration_text(age))
                   : "no events are waiting");
        const std::string remedy =
            "see the error log of nginx, lines with \"ads:\", and ads_status for why nothing is "
            "shipped";
        if (age >= kLagProblem) {
            findings_.problem("spool", message, remedy);
        } else if (age >= kLagWarning) {
            findings_.warning("spool", message, remedy);
        } else {
            findings_.ok("spool", message);
        }
        quarantine();
    }

    // A worker closes its segment when all of it is shipped and it is large or
    // nothing more comes. So an open one that is small and fresh waits for nobody.
    static bool in_use(const std::string& path) {
        struct stat info;
        return path.ends_with(".open") && stat(path.c_str(), &info) == 0 &&
               info.st_size < kOpenSize && std::time(nullptr) - info.st_mtime < kLagWarning;
    }

    std::optional<Millis> oldest_waiting() {
        std::optional<Millis> oldest;
        for (const auto& path : spool_segments(options_.spool)) {
            const auto time = in_use(path) ? std::nullopt : first_event(path);
            oldest = time && oldest ? std::min(*oldest, *time) : time ? time : oldest;
        }
        return oldest;
    }

    // The first intact one: events follow each other in a segment.
    static std::optional<Millis> first_event(const std::string& path) {
        const std::unique_ptr<FILE, int (*)(FILE*)> file(fopen(path.c_str(), "re"), fclose);
        std::string text(kSegmentHead + kMaxRecord, '\0');
        text.resize(file == nullptr ? 0 : fread(text.data(), 1, text.size(), file.get()));
        std::optional<Millis> time;
        each_event(text, [&](const Event& event) { time = time ? time : event.time; });
        return time;
    }

    void quarantine() {
        const std::string folder = options_.spool + "/quarantine";
        if (const size_t segments = spool_segments(folder).size(); segments > 0) {
            findings_.warning(
                "quarantine",
                fmt::format("{} with events that PostgreSQL refused.", counted(segments, "file")),
                fmt::format("the reasons are in {}/*.txt; what is moved back into the spool is "
                            "sent again",
                            printable(folder)));
        }
        if (const size_t files = count_ending(folder, ".damaged"); files > 0) {
            findings_.warning(
                "quarantine",
                fmt::format("{} with damaged bytes of segments; their other events were shipped.",
                            counted(files, "file")),
                fmt::format("check the disk and its cables; then remove {}/*.damaged",
                            printable(folder)));
        }
    }

    static size_t count_ending(const std::string& folder, std::string_view end) {
        const std::unique_ptr<DIR, int (*)(DIR*)> dir(opendir(folder.c_str()), closedir);
        size_t found = 0;
        while (const dirent* entry = dir == nullptr ? nullptr : readdir(dir.get())) {
            found += std::string_view(entry->d_name).ends_with(end) ? 1 : 0;
        }
        return found;
    }

    // ---- the node ----

    void node() {
        HttpAnswer answer;
        const std::string url = shown_url(status_url_);
        try {
            answer = http_get(status_url_, kHttpTimeout);
        } catch (const Failure& e) {
            findings_.problem("node", e.what(), "nginx -t, and the error log of nginx");
            return;
        }
        const Json root(json_loadb(answer.body.data(), answer.body.size(), 0, nullptr));
        if (answer.status != 200 || !json_is_object(json_object_get(root.get(), "catalog"))) {
            findings_.problem(
                "node",
                fmt::format("{} is not the URL of an ads_status: status {}.", url, answer.status),
                "pass the URL of the location with ads_status");
            return;
        }
        judge(root.get());
    }

    void judge(const json_t* root) {
        const auto text = [](const json_t* object, const char* name) {
            const char* value = json_string_value(json_object_get(object, name));
            std::string one_line = value == nullptr ? "" : value;
            for (size_t at; (at = one_line.find('\n')) != std::string::npos;) {
                one_line.replace(at, 1, "; ");
            }
            return printable(one_line);
        };
        bool well = true;
        if (const auto error = text(json_object_get(root, "catalog"), "error"); !error.empty()) {
            well = false;
            findings_.problem("node", fmt::format("the last catalog was refused: {}", error),
                              json_is_object(json_object_get(root, "postgres"))
                                  ? "nginx-ads export | nginx-ads validate -, or validate the file "
                                    "of ads_catalog"
                                  : "nginx-ads validate, with the file of ads_catalog");
        }
        if (const auto error = text(json_object_get(root, "catalog"), "unreadable");
            !error.empty()) {
            well = false;
            findings_.problem("node", fmt::format("its catalog cannot be read: {}", error),
                              "the node serves the last one; see the error log of nginx");
        }
        const json_t* keeper = json_object_get(root, "keeper");
        if (const auto silent = json_integer_value(json_object_get(keeper, "silent_ms"));
            silent > kSilentProblem) {
            well = false;
            findings_.problem(
                "node",
                fmt::format("its keeper (process {}) has been silent for {} s: no event is "
                            "shipped, no edit goes live and pacing stands still.",
                            json_integer_value(json_object_get(keeper, "pid")), silent / 1000),
                "the error log of nginx; if the process is stopped, kill it: nginx starts another");
        }
        const json_t* shipping = json_object_get(root, "postgres");
        if (const auto error = text(shipping, "error"); !error.empty()) {
            well = false;
            findings_.problem("node", fmt::format("events are not shipped: {}", error),
                              "nginx-ads doctor --database with the conninfo of ads_postgres");
        }
        if (const auto number = json_integer_value(json_object_get(shipping, "quarantined"));
            number > 0) {
            well = false;
            findings_.warning(
                "node",
                fmt::format("{} refused by PostgreSQL since the state was created.",
                            number == 1 ? "1 event was" : fmt::format("{} events were", number)),
                "the reasons are in the folder quarantine of its spool");
        }
        const json_t* spool = json_object_get(root, "spool");
        if (const auto damaged = json_integer_value(json_object_get(spool, "damaged_records"));
            damaged > 0) {
            well = false;
            findings_.warning(
                "node",
                fmt::format("{} of the spool {} damaged and could not be shipped.",
                            counted(static_cast<uint64_t>(damaged), "record"),
                            damaged == 1 ? "was" : "were"),
                "check its disk; the damaged bytes are in the folder quarantine of its spool");
        }
        const json_t* events = json_object_get(root, "events");
        if (const auto dropped = json_integer_value(json_object_get(events, "dropped"));
            dropped > 0) {
            well = false;
            findings_.warning("node",
                              fmt::format("{} could not be written to the spool and were lost.",
                                          counted(static_cast<uint64_t>(dropped), "event")),
                              "df, and the error log of nginx");
        }
        stop_list(root);
        if (well) {
            findings_.ok("node",
                         !json_is_object(shipping)
                             ? "it serves; without ads_postgres, events are kept in the spool."
                             : "it serves and ships events.");
        }
    }

    void stop_list(const json_t* root) {
        const json_t* list = json_object_get(root, "stopped");
        for (size_t i = 0; i < json_array_size(list); i++) {
            const json_t* entry = json_array_get(list, i);
            const std::string what = text_of(entry, "what");
            std::string error;
            Stop stop = Stop::parse(what, {}, error).value_or(Stop());
            stop.by = text_of(entry, "by");
            stop.at = text_of(entry, "at");
            stop.reason = text_of(entry, "reason");
            const std::string option =
                stop.what == Stop::What::campaign ? fmt::format("--campaign {}", stop.campaign)
                : stop.what == Stop::What::advertiser
                    ? fmt::format("--advertiser \"{}\"", printable(stop.advertiser))
                    : "--all";
            if (number_of(entry, "ad_groups") > 0) {
                findings_.warning("stop list", fmt::format("{}: {}.", what, stop.told()),
                                  fmt::format("nginx-ads start {}, once that is resolved", option));
            } else {
                findings_.warning("stop list",
                                  fmt::format("{}: {}, but it has no effect: it is not in the "
                                              "catalog.",
                                              what, stop.told()),
                                  fmt::format("nginx-ads start {}", option));
            }
        }
    }

    const Examined& options_;
    const std::string status_url_;
    Findings findings_;
};

}  // namespace

std::vector<Finding> examine(const Examined& what) {
    return Doctor(what).run().list();
}

}  // namespace ads::admin
