#include "lib/base/database.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include "lib/base/config_file.hpp"
#include "lib/base/conninfo.hpp"
#include "lib/base/text.hpp"

namespace ads::admin {

namespace {

constexpr const char* kConnectTimeout = "10";  // seconds, unless the user says another
constexpr std::chrono::milliseconds kPatience(3000);
constexpr int kPoolerTries = 5;  // others may use the pooler meanwhile

// In one line and without control characters: it comes from the network.
std::string one_line(std::string_view text) {
    std::string line;
    for (const char c : text) {
        if (c != '\n' && c != '\t') {
            line += c;
        } else if (!line.empty() && line.back() != ' ') {
            line += ' ';
        }
    }
    while (line.ends_with(' ')) {
        line.pop_back();
    }
    return printable(line);
}

std::string field(const PGresult* result, int code) {
    const char* text = PQresultErrorField(result, code);
    return text == nullptr ? std::string() : one_line(text);
}

std::string ended(std::string text) {
    if (!text.empty() && text.back() != '.' && text.back() != '?' && text.back() != '!') {
        text += '.';
    }
    return text;
}

std::string sentence(const PGconn* connection, const PGresult* result) {
    std::string text = ended(field(result, PG_DIAG_MESSAGE_PRIMARY));
    if (text.empty()) {
        return ended(one_line(PQerrorMessage(connection)));
    }
    for (const int code : {PG_DIAG_MESSAGE_DETAIL, PG_DIAG_MESSAGE_HINT}) {
        if (const std::string more = field(result, code); !more.empty()) {
            text += ' ' + ended(more);
        }
    }
    return text;
}

size_t number_of(std::string_view text) {
    size_t number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
}

WarningSink warning_sink = nullptr;

void notice(void*, const PGresult* result) {
    const char* severity = PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);
    if (warning_sink != nullptr && severity != nullptr && std::strcmp(severity, "WARNING") == 0) {
        warning_sink(sentence(nullptr, result));
    }
}

// A wrong string is a wrong command line; a wrong variable or file is not.
void check_conninfo(const std::string& text, const std::string& from, Exit exit) {
    char* error = nullptr;
    PQconninfoOption* options = PQconninfoParse(text.c_str(), &error);
    const bool good = options != nullptr;
    const std::string message = error == nullptr ? "out of memory" : one_line(error);
    PQconninfoFree(options);
    PQfreemem(error);
    if (!good) {
        throw Failure(exit, fmt::format("{} is not a conninfo such as \"host=db dbname=ads\": {}",
                                        from, ended(message)));
    }
}

constexpr const char* kVariables[] = {"ADS_DATABASE", "ADS_DATABASE_URL"};

}  // namespace

std::string chosen_conninfo(const std::string& option) {
    if (!option.empty()) {
        check_conninfo(option, "--database", Exit::usage);
        return option;
    }
    for (const char* name : kVariables) {
        if (const char* value = std::getenv(name); value != nullptr && *value != '\0') {
            check_conninfo(value, name, Exit::bad_input);
            return value;
        }
    }
    const Configured setting = configured("database");
    if (!setting.value.empty()) {
        check_conninfo(setting.value, "\"database\" in " + setting.file, Exit::bad_input);
    }
    return setting.value;
}

namespace {

PGconn* connect(const std::string& conninfo, const std::string& application) {
    const char* timeout = std::getenv("PGCONNECT_TIMEOUT");
    // Later settings win: these are defaults.
    const std::array names = {"connect_timeout", "fallback_application_name", "dbname",
                              "client_encoding", static_cast<const char*>(nullptr)};
    const std::array values = {timeout == nullptr ? kConnectTimeout : timeout, application.c_str(),
                               conninfo.empty() ? nullptr : conninfo.c_str(), "UTF8",
                               static_cast<const char*>(nullptr)};
    return PQconnectdbParams(names.data(), values.data(), 1);
}

}  // namespace

void send_warnings_to(WarningSink sink) noexcept {
    warning_sink = sink;
}

// ---- errors and rows ----

SqlError::SqlError(const PGconn* connection, const PGresult* result)
    : Failure(Exit::failed, sentence(connection, result)),
      state_(field(result, PG_DIAG_SQLSTATE)),
      position_(number_of(field(result, PG_DIAG_STATEMENT_POSITION))) {}

std::string_view Rows::at(size_t row, int column) const noexcept {
    return {PQgetvalue(result_.get(), static_cast<int>(row), column),
            static_cast<size_t>(PQgetlength(result_.get(), static_cast<int>(row), column))};
}

int64_t Rows::number(size_t row, int column) const noexcept {
    const std::string_view text = at(row, column);
    int64_t number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
}

double Rows::real(size_t row, int column) const noexcept {
    return std::strtod(PQgetvalue(result_.get(), static_cast<int>(row), column), nullptr);
}

uint64_t Rows::affected() const noexcept {
    return number_of(PQcmdTuples(result_.get()));
}

Failure explained(const SqlError& error) {
    struct Remedy {
        std::string_view state;
        std::string_view what;
    };
    constexpr auto kRemedies = std::to_array<Remedy>({
        {"3F000", "Run \"nginx-ads migrate\" first."},  // no such schema
        {"42P01", "Run \"nginx-ads migrate\" first."},  // no such table
        {"42883", "Run \"nginx-ads migrate\" first."},  // no such function
        {"42501", "The role needs the privileges of ads_admin: run \"GRANT ads_admin TO …\"."},
        {"25006", "Connect to the primary: add target_session_attrs=read-write."},
        {"55P03", "Another session is editing the catalog: try again."},
        {"40P01", "Another session is editing the catalog: try again."},
        {"40001", "Another session is editing the catalog: try again."},
    });
    for (const auto& remedy : kRemedies) {
        if (error.is(remedy.state)) {
            return {error.exit(), fmt::format("{} {}", error.what(), remedy.what)};
        }
    }
    return error.lost() ? Failure(error.exit(), fmt::format("the connection to PostgreSQL was "
                                                            "lost, and nothing was changed: {}",
                                                            error.what()))
                        : Failure(error.exit(), error.what());
}

// ---- the connection ----

bool database_configured() {
    const auto is_set = [](const char* name) {
        const char* value = std::getenv(name);
        return value != nullptr && *value != '\0';
    };
    return std::any_of(std::begin(kVariables), std::end(kVariables), is_set) || is_set("PGHOST") ||
           is_set("PGDATABASE") || is_set("PGSERVICE") || !configured("database").value.empty();
}

Database::Database(const std::string& conninfo, const std::string& application)
    : connection_(connect(chosen_conninfo(conninfo), application)) {
    if (connection_ == nullptr) {
        throw std::bad_alloc();
    }
    if (PQstatus(connection_.get()) != CONNECTION_OK) {
        throw Failure(
            Exit::failed,
            fmt::format("cannot reach PostgreSQL: {} It is named by --database, ADS_DATABASE, "
                        "nginx-ads.conf or the PG* variables.",
                        ended(one_line(PQerrorMessage(connection_.get())))));
    }
    // No SET here: behind a pooler other clients would get it with the connection.
    PQsetNoticeReceiver(connection_.get(), notice, nullptr);
}

Rows Database::answer(PGresult* result) {
    Rows rows(result);
    const ExecStatusType status = PQresultStatus(result);
    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK && status != PGRES_EMPTY_QUERY) {
        throw SqlError(connection_.get(), result);
    }
    return rows;
}

namespace {

// libpq takes an array of zero-terminated texts.
class Texts {
public:
    explicit Texts(std::initializer_list<Param> params) {
        texts_.reserve(params.size());
        for (const auto& param : params) {
            texts_.emplace_back(param.value_or(""));
            pointers_.push_back(param ? texts_.back().c_str() : nullptr);
        }
    }
    int size() const noexcept { return static_cast<int>(pointers_.size()); }
    const char* const* data() const noexcept { return pointers_.data(); }

private:
    std::vector<std::string> texts_;
    std::vector<const char*> pointers_;
};

}  // namespace

Rows Database::run(const std::string& sql, std::initializer_list<Param> params) {
    if (params.size() == 0) {
        return answer(PQexec(connection_.get(), sql.c_str()));
    }
    const Texts texts(params);
    return answer(PQexecParams(connection_.get(), sql.c_str(), texts.size(), nullptr, texts.data(),
                               nullptr, nullptr, 0));
}

std::string Database::value(const std::string& sql, std::initializer_list<Param> params) {
    const Rows rows = run(sql, params);
    return rows.empty() ? std::string() : std::string(rows.at(0, 0));
}

bool Database::socket() const noexcept {
    const char* host = PQhost(connection_.get());
    return host != nullptr && (*host == '/' || *host == '@');
}

bool Database::local() const noexcept {
    const char* address = PQhostaddr(connection_.get());
    const std::string_view text(address == nullptr ? "" : address);
    return socket() || text.starts_with("127.") || text == "::1";
}

std::string Database::shown() const {
    const auto text = [](const char* value) { return printable(value == nullptr ? "" : value); };
    const std::string host = text(PQhost(connection_.get()));
    const std::string port = text(PQport(connection_.get()));
    return fmt::format(
        "{} on {} as {}", text(PQdb(connection_.get())),
        socket() ? fmt::format("{}/.s.PGSQL.{}", host, port) : fmt::format("{}:{}", host, port),
        text(PQuser(connection_.get())));
}

std::string Database::tls() const {
    if (PQsslInUse(connection_.get()) == 0) {
        return {};
    }
    const char* protocol = PQsslAttribute(connection_.get(), "protocol");
    return protocol == nullptr ? "TLS" : printable(protocol);
}

std::string Database::backend() {
    return value("SELECT pg_backend_pid()");
}

bool Database::pooled() {
    return backend() != std::to_string(PQbackendPID(connection_.get()));
}

// ---- transactions ----

Transaction::~Transaction() {
    try {
        roll_back();
    } catch (const SqlError&) {
        // The connection is gone, and the transaction with it.
    }
}

void Transaction::commit() {
    open_ = false;
    database_.run("COMMIT");
}

void Transaction::roll_back() {
    if (open_) {
        open_ = false;
        database_.run("ROLLBACK");
    }
}

// ---- poolers ----

// The same as backend(), but gives up: a pooler lets its clients wait for minutes.
std::optional<std::string> Database::backend_within(std::chrono::milliseconds time) {
    const auto end = std::chrono::steady_clock::now() + time;
    if (PQsendQuery(connection_.get(), "SELECT pg_backend_pid()") != 1) {
        return std::nullopt;
    }
    while (PQisBusy(connection_.get()) != 0) {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
            end - std::chrono::steady_clock::now());
        pollfd wanted{PQsocket(connection_.get()), POLLIN, 0};
        if (left.count() <= 0 || poll(&wanted, 1, static_cast<int>(left.count())) == 0 ||
            PQconsumeInput(connection_.get()) != 1) {
            return std::nullopt;
        }
    }
    const Rows rows = answer(PQgetResult(connection_.get()));
    while (PGresult* more = PQgetResult(connection_.get())) {
        PQclear(more);
    }
    return std::string(rows.at(0, 0));
}

Pooling pooling_of(Database& database, const std::string& conninfo) {
    if (!database.pooled()) {
        return Pooling::none;
    }
    try {
        Database other(conninfo, "nginx-ads");
        const std::string first = database.backend();
        for (int i = 0; i < kPoolerTries; i++) {
            const auto theirs = other.backend_within(kPatience);
            if (!theirs) {
                break;
            }
            // A server process that two clients see while both are connected, or
            // one that changes, belongs to no client.
            if (*theirs == first || database.backend() != first) {
                return Pooling::transaction;
            }
        }
    } catch (const Failure&) {
        // It has no room for a second client.
    }
    return Pooling::session;
}

std::string version_text(int version) {
    return fmt::format("{}.{}", version / 10000, version % 10000);
}

}  // namespace ads::admin
