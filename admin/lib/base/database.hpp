// A connection to PostgreSQL: synchronous, one statement at a time.
#pragma once

#include <libpq-fe.h>

#include <chrono>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/failure.hpp"

namespace ads::admin {

// An error of PostgreSQL. The sentence is PostgreSQL's own message, with detail and
// hint.
class SqlError : public Failure {
public:
    SqlError(const PGconn* connection, const PGresult* result);

    // Five characters; empty if the connection was lost.
    const std::string& state() const noexcept { return state_; }
    bool is(std::string_view state) const noexcept { return state_ == state; }
    bool lost() const noexcept { return state_.empty(); }

    // The position in the statement, in characters from 1; 0: unknown.
    size_t position() const noexcept { return position_; }

private:
    std::string state_;
    size_t position_ = 0;
};

// Receives the warnings of PostgreSQL; nullptr drops them. To be set before the first
// connection.
using WarningSink = void (*)(std::string_view warning);
void send_warnings_to(WarningSink sink) noexcept;

// The rows of a result. Values are text and live as long as the rows.
class Rows {
public:
    explicit Rows(PGresult* result) noexcept : result_(result) {}

    size_t size() const noexcept { return static_cast<size_t>(PQntuples(result_.get())); }
    bool empty() const noexcept { return size() == 0; }
    bool null(size_t row, int column) const noexcept {
        return PQgetisnull(result_.get(), static_cast<int>(row), column) != 0;
    }
    // NULL is an empty string.
    std::string_view at(size_t row, int column) const noexcept;
    bool flag(size_t row, int column) const noexcept { return at(row, column) == "t"; }
    int64_t number(size_t row, int column) const noexcept;
    double real(size_t row, int column) const noexcept;

    // The number of rows that a statement changed.
    uint64_t affected() const noexcept;

private:
    struct Clear {
        void operator()(PGresult* result) const noexcept { PQclear(result); }
    };
    std::unique_ptr<PGresult, Clear> result_;
};

// A parameter of a statement; without a value it is NULL.
using Param = std::optional<std::string_view>;

// Whether an environment variable or a configuration file names a database.
bool database_configured();

class Database {
public:
    // `conninfo` is the value of --database: a conninfo string or a
    // URI. If it is empty, ADS_DATABASE is used, then
    // ADS_DATABASE_URL, then a configuration file, then libpq's own
    // PG* variables.
    Database(const std::string& conninfo, const std::string& application);

    // One statement. Throws SqlError.
    Rows run(const std::string& sql, std::initializer_list<Param> params = {});
    // The first column of the only row.
    std::string value(const std::string& sql, std::initializer_list<Param> params = {});

    // "ads on 127.0.0.1:5432 as alice". Never with a password.
    std::string shown() const;
    bool local() const noexcept;  // by a unix socket or the loopback interface
    bool socket() const noexcept;
    std::string tls() const;  // its version; empty: no TLS
    int version() const noexcept { return PQserverVersion(connection_.get()); }

    // The server process, as the server itself reports it. A pooler invents one for its clients, so
    // a difference reveals a pooler.
    std::string backend();
    std::optional<std::string> backend_within(std::chrono::milliseconds time);
    bool pooled();

private:
    Rows answer(PGresult* result);

    struct Finish {
        void operator()(PGconn* connection) const noexcept { PQfinish(connection); }
    };
    std::unique_ptr<PGconn, Finish> connection_;
};

// Rolls back unless committed, also after an exception.
class Transaction {
public:
    explicit Transaction(Database& database) : database_(database) { database_.run("BEGIN"); }
    ~Transaction();
    Transaction(const Transaction&) = delete;
    Transaction& operator=(const Transaction&) = delete;

    void commit();
    void roll_back();

private:
    Database& database_;
    bool open_ = true;
};

// The same, with a remedy if one is known.
Failure explained(const SqlError& error);

// How a pooler assigns server connections, as far as it can be detected.
enum class Pooling {
    none,
    session,      // a pooler, but each client seems to keep its server process
    transaction,  // another server process for each transaction
};
// Opens a second connection if there is a pooler.
Pooling pooling_of(Database& database, const std::string& conninfo);

// The oldest PostgreSQL version that the schema supports, as of PQserverVersion().
inline constexpr int kLeastServer = 140000;
// "15.4"
std::string version_text(int version);

// The option of every command that uses a database.
inline constexpr const char* kDatabaseHelp =
    "Conninfo or URI (default $ADS_DATABASE, nginx-ads.conf, PG* variables)";

}  // namespace ads::admin
