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

// What PostgreSQL has against a statement. As a sentence it is PostgreSQL's
// own message, with detail and hint.
class SqlError : public Failure {
public:
    SqlError(const PGconn* connection, const PGresult* result);

    // Five characters; empty if the connection was lost.
    const std::string& state() const noexcept { return state_; }
    bool is(std::string_view state) const noexcept { return state_ == state; }
    bool lost() const noexcept { return state_.empty(); }

    // Where in the statement, in characters from 1; 0 if it was not said.
    size_t position() const noexcept { return position_; }

private:
    std::string state_;
    size_t position_ = 0;
};

// Gets the warnings that PostgreSQL sends with its answers: nullptr drops them. Set it before the
// first connection.
using WarningSink = void (*)(std::string_view warning);
void send_warnings_to(WarningSink sink) noexcept;

// The rows of an answer. Values are text; they live as long as the rows.
class Rows {
public:
    explicit Rows(PGresult* result) noexcept : result_(result) {}

    size_t size() const noexcept { return static_cast<size_t>(PQntuples(result_.get())); }
    bool empty() const noexcept { return size() == 0; }
    bool null(size_t row, int column) const noexcept {
        return PQgetisnull(result_.get(), static_cast<int>(row), column) != 0;
    }
    // NULL is an empty text.
    std::string_view at(size_t row, int column) const noexcept;
    bool flag(size_t row, int column) const noexcept { return at(row, column) == "t"; }
    int64_t number(size_t row, int column) const noexcept;
    double real(size_t row, int column) const noexcept;

    // How many rows a statement changed.
    uint64_t affected() const noexcept;

private:
    struct Clear {
        void operator()(PGresult* result) const noexcept { PQclear(result); }
    };
    std::unique_ptr<PGresult, Clear> result_;
};

// A parameter of a statement; without a value it is NULL.
using Param = std::optional<std::string_view>;

// Whether a variable or a configuration file names one.
bool database_configured();

class Database {
public:
    // `conninfo` is what --database says: a conninfo string or a URI. Without
    // it ADS_DATABASE decides, then ADS_DATABASE_URL, then a configuration file,
    // then libpq's own PG* variables.
    // `application` is the name that others see in pg_stat_activity.
    Database(const std::string& conninfo, const std::string& application);

    // One statement. Throws SqlError.
    Rows run(const std::string& sql, std::initializer_list<Param> params = {});
    // The first column of the only row.
    std::string value(const std::string& sql, std::initializer_list<Param> params = {});

    // "ads on 127.0.0.1:5432 as alice". Never with a password.
    std::string shown() const;
    bool local() const noexcept;  // by a socket, or on this machine's own network
    bool socket() const noexcept;
    std::string tls() const;  // its version, empty without
    int version() const noexcept { return PQserverVersion(connection_.get()); }

    // The process that the server itself names. A pooler makes one up for its
    // clients, so where the two differ one stands between.
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

// Rolls back what was not committed, also when the way out is an exception.
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

// The same with what to do about it, where that is known.
Failure explained(const SqlError& error);

// How a pooler deals out connections to the server, as far as it shows.
enum class Pooling {
    none,
    session,      // a pooler, but each client seems to keep its server process
    transaction,  // another server process for each transaction
};
// Opens a second connection if there is a pooler.
Pooling pooling_of(Database& database, const std::string& conninfo);

// The least version that the schema works with, as PQserverVersion() has it.
inline constexpr int kLeastServer = 140000;
// "15.4"
std::string version_text(int version);

// The option that every command with a database has.
inline constexpr const char* kDatabaseHelp =
    "Conninfo or URI (default $ADS_DATABASE, nginx-ads.conf, PG* variables)";

}  // namespace ads::admin
