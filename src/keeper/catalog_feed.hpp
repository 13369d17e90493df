// Reads the catalog from PostgreSQL: listens for changes, fetches them and publishes
// the whole document, which is also saved in a file for the next start without a
// database.
#pragma once

#include <string>

#include "io/pg.hpp"
#include "keeper/catalog_parts.hpp"
#include "keeper/publish.hpp"

namespace ads {

struct FeedConf {
    std::string conninfo;  // a direct connection: LISTEN is lost behind a pooler
    Millis poll = 30'000;  // maximum interval between queries
    std::string saved;     // path of the last valid document; empty: none is kept
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
    std::string mark_;      // the mark of PostgreSQL for the parts; empty: nothing
    bool changed_ = false;  // since they were published
    Seconds day_ = 0;       // on which all of them were read
    uint64_t saved_ = 0;    // hash of the saved file
    std::string told_;
    Millis pause_ = 0;  // before the next try after a failure
};

}  // namespace ads
