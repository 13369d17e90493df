// The calls by which a node of a fleet asks PostgreSQL for rights and returns them.
#pragma once

#include <optional>
#include <string>

#include "io/pg.hpp"
#include "io/state_file.hpp"
#include "ledger/fleet/rights.hpp"
#include "ledger/fleet/verdicts.hpp"

namespace ads {

// What a node tells of itself.
struct FleetAbout {
    std::string name;
    std::string_view exactness = "exact";  // "share", "sealed"
    bool shares = false;                   // on_error
    bool catalog_from_postgres = false;
    uint64_t generation = 0;  // of its catalog
    Millis catalog_time = 0;
};

class FleetRights {
public:
    FleetRights(std::string conninfo, const Alarm& alarm)
        : conninfo_(std::move(conninfo)), pg_(alarm) {}

    // Blocks as Pg::connect() does. False: see error().
    bool connect() { return pg_.connected() || pg_.connect(conninfo_); }
    bool connecting() const noexcept { return pg_.connecting(); }
    void close() noexcept { pg_.close(); }

    // The answer, or nothing: see error().
    std::optional<RightsAnswer> call(uint32_t node, const RightsCall& call, const FleetAbout& about,
                                     Millis timeout);

    // At most `most` verdicts that follow the cursor.
    std::optional<Verdicts> verdicts(uint32_t node, uint64_t cursor, uint32_t most, Millis timeout);

    const std::string& error() const noexcept { return error_.empty() ? pg_.error() : error_; }

private:
    template <class T>
    std::optional<T> answer(const char* sql, const PgParams& params, Millis timeout,
                            std::optional<T> (*parse)(std::string_view), const char* name);

    const std::string conninfo_;
    Pg pg_;
    std::string error_;
};

// Nothing if the text is not an answer of ads.rights().
std::optional<RightsAnswer> parse_rights(std::string_view text);

// The same of ads.verdicts().
std::optional<Verdicts> parse_verdicts(std::string_view text);

// A number that no copy of this machine has: of 63 bits, not 0.
uint64_t random_word();

// What has to be durable before a call is sent.
bool store_rights(StateFile& file);

struct DrainConf {
    std::string name;
    std::string state;  // its folder
    std::string run;    // the folder of the run mark
    std::string conninfo;
    Millis timeout = 10'000;  // of all of it
};

// Returns all rights of a node that is stopped. False with a sentence in `error`.
bool drain_fleet(const DrainConf& conf, const Alarm& alarm, std::string& error);

}  // namespace ads
