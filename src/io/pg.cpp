#include "io/pg.hpp"

namespace ads {

namespace {

// libpq's messages end in a newline, and may have several lines.
std::string one_line(const char* message) {
    std::string text(message == nullptr ? "" : message);
    while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) {
        text.pop_back();
    }
    for (char& c : text) {
        if (c == '\n' || c == '\t') {
            c = ' ';
        }
    }
    return text;
}

}  // namespace

bool check_conninfo(const std::string& conninfo, std::string& error) {
    char* message = nullptr;
    PQconninfoOption* options = PQconninfoParse(conninfo.c_str(), &message);
    const bool good = options != nullptr;
    if (!good) {
        error = one_line(message);
        PQfreemem(message);
    }
    PQconninfoFree(options);
    return good;
}

bool Pg::fail(std::string_view what) {
    error_ = what;
    if (const std::string text = one_line(PQerrorMessage(connection_.get())); !text.empty()) {
        error_ += error_.empty() ? text : ": " + text;
    }
    connection_.reset();
    return false;
}

bool Pg::connect(const std::string& conninfo) {
    // What stands in the conninfo goes before what comes first here.
    const char* names[] = {"connect_timeout", "client_encoding", "fallback_application_name",
                           "dbname", nullptr};
    const char* values[] = {"5", "UTF8", "nginx-ads", conninfo.c_str(), nullptr};
    connection_.reset();
    sqlstate_.clear();
    connecting_.store(true, std::memory_order_release);
    connection_.reset(PQconnectdbParams(names, values, 1));
    connecting_.store(false, std::memory_order_release);
    if (PQstatus(connection_.get()) != CONNECTION_OK) {
        return fail("");
    }
    if (PQsetnonblocking(connection_.get(), 1) != 0) {
        return fail("");
    }
    PQsetErrorContextVisibility(connection_.get(), PQSHOW_CONTEXT_NEVER);
    // Notices would go to stderr.
    PQsetNoticeReceiver(
        connection_.get(), [](void*, const PGresult*) {}, nullptr);
    error_.clear();
    return true;
}

bool Pg::flush(Millis deadline) {
    for (;;) {
        const int left = PQflush(connection_.get());
        if (left <= 0) {
            return left == 0;
        }
        if (!alarm_.wait(PQsocket(connection_.get()), true, deadline - monotonic()) ||
            PQconsumeInput(connection_.get()) == 0) {
            return false;
        }
    }
}

PgResult Pg::query(const char* sql, const PgParams& params, Millis timeout) {
    sqlstate_.clear();
    if (!connected()) {
        error_ = "not connected";
        return nullptr;
    }
    PGconn* connection = connection_.get();
    std::vector<const char*> values;
    std::vector<int> lengths;
    for (const auto& value : params.values) {
        values.push_back(value.data());
        lengths.push_back(static_cast<int>(value.size()));
    }
    const std::vector<int> formats(values.size(), 1);
    const Millis deadline = monotonic() + timeout;
    // Without parameters by the simple protocol: several statements may stand there.
    const int sent = values.empty()
                         ? PQsendQuery(connection, sql)
                         : PQsendQueryParams(connection, sql, static_cast<int>(values.size()),
                                             params.types.data(), values.data(), lengths.data(),
                                             formats.data(), 0);
    if (sent == 0 || !flush(deadline)) {
        fail(monotonic() >= deadline ? "timed out" : "");
        return nullptr;
    }
    PgResult last;
    for (;;) {
        while (PQisBusy(connection) != 0) {
            if (!alarm_.wait(PQsocket(connection), false, deadline - monotonic())) {
                fail(alarm_.stopped() ? "stopped" : "timed out");
                return nullptr;
            }
            if (PQconsumeInput(connection) == 0) {
                fail("");
                return nullptr;
            }
        }
        PgResult result(PQgetResult(connection));
        if (result == nullptr) {
            break;
        }
        const auto status = PQresultStatus(result.get());
        if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK && sqlstate_.empty()) {
            const char* state = PQresultErrorField(result.get(), PG_DIAG_SQLSTATE);
            sqlstate_ = state == nullptr ? "08000" : state;
            error_ = one_line(PQresultErrorMessage(result.get()));
        }
        last = std::move(result);
    }
    if (!sqlstate_.empty()) {
        if (PQstatus(connection) != CONNECTION_OK) {
            connection_.reset();
        }
        return nullptr;
    }
    return last;
}

bool Pg::notified(Millis timeout) {
    const Millis deadline = monotonic() + timeout;
    bool any = false;
    while (connected()) {
        while (PGnotify* notification = PQnotifies(connection_.get())) {
            PQfreemem(notification);
            any = true;
        }
        if (any || !alarm_.wait(PQsocket(connection_.get()), false, deadline - monotonic())) {
            break;
        }
        if (PQconsumeInput(connection_.get()) == 0) {
            fail("");
        }
    }
    return any;
}

bool Pg::bad_data() const noexcept {
    // 21: cardinality, 22: data, 23: constraints, 54: limits, P0: raised by our own functions.
    const std::string_view kind = sqlstate().substr(0, 2);
    return kind == "21" || kind == "22" || kind == "23" || kind == "54" || kind == "P0";
}

}  // namespace ads
