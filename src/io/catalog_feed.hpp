// The catalog from PostgreSQL: a thread that listens for changes, fetches the
// document and publishes it. What it published last is kept in a file, for the
// next start and for days without a database.
#pragma once

#include <string>

#include "io/pg.hpp"
#include "io/publish.hpp"

namespace ads {

struct FeedConf {
    std::string conninfo;  // a direct connection: LISTEN is lost behind a pooler
    Millis poll = 30'000;  // asks at least so often
    std::string saved;     // path of the last good document; empty: none is kept
};

class CatalogFeed : public CatalogSource {
public:
    CatalogFeed(FeedConf conf, Target target, Who me, std::shared_ptr<Turns> turns);
    CatalogFeed(const CatalogFeed&) = delete;
    ~CatalogFeed() override { stop(); }

    EditReport poll(Seconds now, Term term) override;
    void rest() noexcept override;
    void stop() noexcept override;

private:
    class Work;
    const FeedConf conf_;
    const Target target_;
    const Who me_;
    const std::shared_ptr<Turns> turns_;
    std::shared_ptr<Work> work_;
    Thread thread_;
};

}  // namespace ads
