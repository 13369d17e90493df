// PostgreSQL for a separate thread: calls block, but not beyond their timeouts, and return at once
// when the thread is asked to stop.
#pragma once

#include <libpq-fe.h>

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/types.hpp"
#include "io/thread.hpp"

namespace ads {

struct PgFree {
    void operator()(PGconn* connection) const noexcept { PQfinish(connection); }
    void operator()(PGresult* result) const noexcept { PQclear(result); }
};
using PgResult = std::unique_ptr<PGresult, PgFree>;

// Parameters in binary form.
struct PgParams {
    std::vector<Oid> types;
    std::vector<std::string> values;
};

class Pg {
public:
    explicit Pg(const Alarm& alarm) noexcept : alarm_(alarm) {}

    // Blocks as long as libpq does (connect_timeout for each host, and the resolver): only for
    // threads. False: see error().
    bool connect(const std::string& conninfo);
    bool connected() const noexcept { return connection_ != nullptr; }
    void close() noexcept { connection_.reset(); }

    // True while connect() is in libpq, where nothing can interrupt it.
    bool connecting() const noexcept { return connecting_.load(std::memory_order_acquire); }

    // The result of one statement, or nullptr: see error() and sqlstate(). A
    // connection that failed, or did not answer in time, is closed.
    PgResult query(const char* sql, Millis timeout) { return query(sql, {}, timeout); }
    PgResult query(const char* sql, const PgParams& params, Millis timeout);

    // Waits for a notification; true if there was one.
    bool notified(Millis timeout);

    const std::string& error() const noexcept { return error_; }
    std::string_view sqlstate() const noexcept { return sqlstate_; }

    // Whether the statement failed because of its input and would fail again, rather than because
    // of the server's state or missing privileges.
    bool bad_data() const noexcept;

private:
    bool fail(std::string_view what);
    bool flush(Millis deadline);

    const Alarm& alarm_;
    std::unique_ptr<PGconn, PgFree> connection_;
    std::atomic<bool> connecting_{false};
    std::string error_;
    std::string sqlstate_;
};

// Whether libpq accepts the text; if not, sets `error`.
bool check_conninfo(const std::string& conninfo, std::string& error);

}  // namespace ads
