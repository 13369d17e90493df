#include "io/recall.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "io/file.hpp"
#include "io/pg.hpp"
#include "io/spool.hpp"

namespace ads {

namespace {

constexpr size_t kBatch = 10'000;  // ids asked for at once
constexpr char kDone = 'k';        // the last byte of what the child tells

// ---- the child ---------------------------------------------------------------------

class Asker {
public:
    explicit Asker(const RecallConf& conf) : conf_(conf), pg_(alarm_) {}

    bool ask(StoredTotals& totals) {
        // One snapshot: events stored meanwhile are in neither part.
        return pg_.connect(conf_.conninfo) &&
               done("BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY") &&
               ask_rows(totals) && ask_stored(totals) && (!conf_.catalog || ask_catalog(totals));
    }

    const std::string& error() const noexcept { return pg_.error(); }

private:
    bool done(const char* sql) { return pg_.query(sql, conf_.longest) != nullptr; }

    static uint64_t number(const PgResult& result, int row, int column) noexcept {
        const char* text = PQgetvalue(result.get(), row, column);
        uint64_t value = 0;
        std::from_chars(text, text + std::strlen(text), value);
        return value;
    }

    bool ask_rows(StoredTotals& totals) {
        const std::string sql =
            "SELECT campaign_id, ad_group_id, day, serves, impressions, viewables, clicks, "
            "conversions, spend_micro FROM ads.stored_totals((to_timestamp(" +
            std::to_string(conf_.now) + ") AT TIME ZONE 'UTC')::date - 2)";
        const PgResult found = pg_.query(sql.c_str(), conf_.longest);
        if (found == nullptr) {
            return false;
        }
        for (int i = 0; i < PQntuples(found.get()); i++) {
            const auto at = [&](int column) { return number(found, i, column); };
            totals.rows.push_back({static_cast<Id>(at(0)), static_cast<Id>(at(1)),
                                   static_cast<Day>(at(2)), at(3), at(4), at(5), at(6), at(7),
                                   at(8)});
        }
        return true;
    }

    bool ask_stored(StoredTotals& totals) {
        std::vector<EventId> some;
        bool ok = true;
        for (const auto& path : spool_segments(conf_.spool)) {
            std::string text;
            if (read_own_file(path, text) != 0) {
                continue;
            }
            each_event(text, [&](const Event& event) {
                some.push_back(event_id(event));
                if (some.size() == kBatch) {
                    ok = ok && ask_stored(some, totals);
                    some.clear();
                }
            });
        }
        return ok && (some.empty() || ask_stored(some, totals));
    }

    bool ask_stored(const std::vector<EventId>& some, StoredTotals& totals) {
        std::string sql = "SELECT n FROM ads.stored('{";
        for (const auto& id : some) {
            char uuid[kUuidChars];
            write_uuid(id, uuid);
            sql.append(uuid, sizeof uuid).push_back(',');
        }
        sql.back() = '}';
        sql += "') AS n";
        const PgResult found = pg_.query(sql.c_str(), conf_.longest);
        if (found == nullptr) {
            return false;
        }
        for (int i = 0; i < PQntuples(found.get()); i++) {
            if (const uint64_t place = number(found, i, 0); place >= 1 && place <= some.size()) {
                totals.stored.push_back(some[place - 1]);
            }
        }
        return true;
    }

    bool ask_catalog(StoredTotals& totals) {
        const PgResult found = pg_.query("SELECT ads.catalog()", conf_.longest);
        if (found == nullptr) {
            return false;
        }
        totals.catalog.assign(PQgetvalue(found.get(), 0, 0),
                              static_cast<size_t>(PQgetlength(found.get(), 0, 0)));
        return true;
    }

    const RecallConf& conf_;
    Alarm alarm_;
    Pg pg_;
};

void put(std::string& to, const void* from, size_t size) {
    to.append(static_cast<const char*>(from), size);
}

template <class List>
void put_list(std::string& to, const List& list) {
    const uint64_t size = list.size();
    put(to, &size, sizeof size);
    put(to, list.data(), size * sizeof list[0]);
}

// Never returns: no code of the parent process may run in the child.
[[noreturn]] void tell(const RecallConf& conf, int fd) noexcept {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGPIPE, SIG_DFL);
    std::string said;
    StoredTotals totals;
    Asker asker(conf);
    if (asker.ask(totals)) {
        put_list(said, totals.rows);
        put_list(said, totals.stored);
        put_list(said, totals.catalog);
        said.push_back(kDone);
    } else {
        said = asker.error();
    }
    write_all(fd, said);
    _exit(0);
}

// ---- the parent --------------------------------------------------------------------

// The output of the child until it ends; false after `longest`.
bool listen_to(int fd, Millis longest, std::string& said) {
    const Millis deadline = monotonic() + longest;
    for (;;) {
        pollfd ready{fd, POLLIN, 0};
        const Millis left = deadline - monotonic();
        if (left <= 0) {
            return false;
        }
        if (poll(&ready, 1, static_cast<int>(left)) <= 0) {
            continue;
        }
        char some[65536];
        const ssize_t n = read(fd, some, sizeof some);
        if (n > 0) {
            said.append(some, static_cast<size_t>(n));
        } else if (n == 0 || errno != EINTR) {
            return true;
        }
    }
}

class Reader {
public:
    explicit Reader(std::string_view text) noexcept : text_(text) {}

    template <class List>
    bool list(List& to) {
        uint64_t size = 0;
        if (text_.size() < sizeof size) {
            return false;
        }
        std::memcpy(&size, text_.data(), sizeof size);
        text_.remove_prefix(sizeof size);
        if (text_.size() / sizeof to[0] < size) {
            return false;
        }
        to.resize(size);
        std::memcpy(to.data(), text_.data(), size * sizeof to[0]);
        text_.remove_prefix(size * sizeof to[0]);
        return true;
    }

    bool ends() const noexcept { return text_.size() == 1 && text_[0] == kDone; }

private:
    std::string_view text_;
};

}  // namespace

bool StoredTotals::has(const EventId& id) const noexcept {
    return std::binary_search(stored.begin(), stored.end(), id);
}

bool recall(const RecallConf& conf, StoredTotals& totals, std::string& error) {
    int ends[2];
    if (pipe(ends) != 0) {
        error = std::strerror(errno);
        return false;
    }
    const Fd in(ends[0]);
    Fd out(ends[1]);
    const pid_t child = fork();
    if (child < 0) {
        error = std::strerror(errno);
        return false;
    }
    if (child == 0) {
        tell(conf, out.get());
    }
    out.reset();
    std::string said;
    const bool ended = listen_to(in.get(), conf.longest, said);
    if (!ended) {
        kill(child, SIGKILL);
    }
    while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
    }
    Reader reader(said);
    if (ended && reader.list(totals.rows) && reader.list(totals.stored) &&
        reader.list(totals.catalog) && reader.ends()) {
        std::sort(totals.stored.begin(), totals.stored.end());
        return true;
    }
    totals = {};
    error = !ended         ? "timed out after " + std::to_string(conf.longest) + " ms"
            : said.empty() ? "the child process exited without an answer"
                           : std::move(said);
    return false;
}

}  // namespace ads
