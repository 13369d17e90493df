// nginx-ads spool ship: brings what a stopped node has left in its spool to PostgreSQL.
#include <dirent.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "cli/main/commands.hpp"
#include "io/ingest.hpp"
#include "io/process.hpp"
#include "io/shipper.hpp"
#include "lib/base/database.hpp"

namespace ads::cli {

namespace {

constexpr const char* kDefaultFolder = "/var/lib/nginx-ads/spool";
constexpr Millis kTimeout = 30'000;

struct Options {
    std::string database;
    std::string folder = kDefaultFolder;
};

class Ship {
public:
    explicit Ship(const Options& options)
        : options_(options),
          memory_(static_cast<std::byte*>(std::aligned_alloc(4096, kStateSize))) {
        std::memset(memory_.get(), 0, kStateSize);
        State::format({memory_.get(), kStateSize}, kBucketEntries, 0, 1);
        state_ = State::attach(memory_.get());
    }

    Exit run() {
        check_folder();
        ship_closed();
        ship_open();
        const uint64_t left = spool_segments(options_.folder).size();
        out().put(fmt::format("{} stored, {} stored before, {} in quarantine.\n",
                              counted(state_.total(Total::shipped), "event"),
                              state_.total(Total::repeated), state_.total(Total::quarantined)));
        if (left > 0) {
            out().put(
                fmt::format("{} kept: at its next start, nginx counts the events of dead "
                            "workers and removes them.\n",
                            counted(left, "segment")));
        }
        return exit_;
    }

private:
    struct Free {
        void operator()(std::byte* memory) const { std::free(memory); }
    };
    static constexpr size_t kStateSize = 4 << 20;

    void check_folder() const {
        DIR* dir = opendir(options_.folder.c_str());
        if (dir == nullptr) {
            throw Failure(Exit::failed, fmt::format("cannot read {}: {}.", options_.folder,
                                                    std::strerror(errno)));
        }
        closedir(dir);
        for (const auto& path : spool_segments(options_.folder)) {
            const ProcessId writer = segment_name(path).writer;
            if (writer != 0 && process_alive(writer)) {
                throw Failure(Exit::failed,
                              fmt::format("process {} is writing to {}: stop nginx first, which "
                                          "ships it itself.",
                                          pid_of(writer), options_.folder));
            }
        }
    }

    void ship_closed() {
        ShipperConf conf;
        conf.conninfo = options_.database;
        conf.folder = options_.folder;
        Shipper shipper(std::move(conf), {}, state_, alarm_, [this](LogLevel level, auto text) {
            if (level != LogLevel::notice) {
                complain(text + ".");
                exit_ = Exit::failed;
            }
        });
        Shipper::Step step = Shipper::Step::worked;
        while (step == Shipper::Step::worked) {
            step = shipper.step();
        }
        if (step == Shipper::Step::failed) {
            throw Failure(Exit::failed, "shipping stopped; unsent events remain in the spool.");
        }
    }

    // Of workers that died. Their segments stay: nginx looks there for what it has not counted.
    void ship_open() {
        Pg pg(alarm_);
        for (const auto& path : spool_segments(options_.folder)) {
            std::string text;
            if (!segment_name(path).open || read_file(path.c_str(), text) != 0) {
                continue;
            }
            std::vector<Event> events;
            each_event(text, [&](const Event& event) { events.push_back(event); });
            for (size_t at = 0; at < events.size(); at += ShipperConf{}.batch) {
                const size_t size = std::min<size_t>(ShipperConf{}.batch, events.size() - at);
                send(pg, std::span(events).subspan(at, size));
            }
        }
    }

    void send(Pg& pg, std::span<const Event> events) {
        PgResult result;
        if (pg.connected() || pg.connect(options_.database)) {
            result = pg.query(kIngest, ingest_params(events), kTimeout);
        }
        if (result == nullptr || PQntuples(result.get()) != 1) {
            throw Failure(Exit::failed, fmt::format("PostgreSQL: {}.", pg.error()));
        }
        const auto number = [&](int column) {
            return std::strtoull(PQgetvalue(result.get(), 0, column), nullptr, 10);
        };
        state_.add(Total::shipped, number(0));
        state_.add(Total::repeated, number(1));
    }

    const Options options_;
    std::unique_ptr<std::byte, Free> memory_;
    State state_;  // only its totals are used
    Alarm alarm_;
    Exit exit_ = Exit::ok;
};

}  // namespace

void add_spool_ship(Arguments& spool, Command& chosen) {
    auto options = std::make_shared<Options>();
    auto* app =
        spool.add_subcommand("ship", "Send the remaining events of a stopped node to PostgreSQL");
    app->add_option("FOLDER", options->folder,
                    fmt::format("Folder of ads_spool (default {})", kDefaultFolder))
        ->option_text(" ");
    app->add_option("--database", options->database, kDatabaseHelp)->option_text("CONNINFO");
    app->footer(
        "The last events of a node remain in its spool when nginx stops. Use this command after\n"
        "that, for example as ExecStopPost= of the nginx unit. An event that is sent twice is\n"
        "stored once. Exit code 3: some events were not sent and remain in the spool.\n"
        "\n"
        "Example:\n"
        "  nginx-ads spool ship --database \"host=db dbname=ads user=edge\" "
        "/var/lib/nginx-ads/spool");
    app->callback([options, &chosen] { chosen = [options] { return Ship(*options).run(); }; });
}

}  // namespace ads::cli
