// The catalog from PostgreSQL: it listens for changes, fetches what changed and publishes the
// whole. The last published document is saved in a file, for the next start and for days without a
// database.
#pragma once

#include <string>

#include "io/pg.hpp"
#include "keeper/catalog_parts.hpp"
#include "keeper/publish.hpp"

namespace ads {

struct FeedConf {
    std::string conninfo;  // a direct connection: LISTEN is lost behind a pooler
    Millis poll = 30'000;  // asks at least so often
    std::string saved;     // path of the last good document; empty: none is kept
};

class CatalogFeed : public CatalogSource {
public:
    CatalogFeed(FeedConf conf, Target target, ProcessId me, const Alarm& alarm,
                CatalogContext context)
        : CatalogSource(alarm, std::move(context)),
          conf_(std::move(conf)),
          publisher_(target, me, alarm),
          pg_(alarm) {}

    void step() override;
    void rest() noexcept override { pg_.close(); }
    bool hangs() const noexcept override { return pg_.connecting(); }

private:
    bool follow();
    bool fetch(Seconds today);
    bool take(const PGresult& rows);
    bool publish(Term read_in);
    void save(const std::string& text);
    void cannot_read();

    const FeedConf conf_;
    CatalogPublisher publisher_;
    Pg pg_;
    CatalogParts parts_;
    std::string mark_;      // of what is in them, as PostgreSQL names it; empty: nothing
    bool changed_ = false;  // since they were published
    Seconds day_ = 0;       // on which all of them were read
    uint64_t saved_ = 0;    // hash of what is in the file
    std::string told_;
    Millis pause_ = 0;  // before the next try, after a failure
};

}  // namespace ads
