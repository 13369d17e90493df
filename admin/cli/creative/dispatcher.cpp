#include "cli/creative/dispatcher.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <mutex>

#include "cli/common/table.hpp"
#include "core/base/bytes.hpp"
#include "core/base/hash.hpp"
#include "core/decide/render.hpp"

namespace ads::cli {

namespace {

using std::chrono::milliseconds;

constexpr int kFailuresToTrip = 5;
constexpr std::chrono::seconds kFirstRest(30);
constexpr std::chrono::seconds kLongestRest(600);
constexpr size_t kMostHosts = 10000;
constexpr double kLongestBackoff = 6 * 3600;
constexpr size_t kLongestError = 300;

Resolver resolver_of(const std::vector<std::string>& entries) {
    if (entries.empty()) {
        return ask_dns;
    }
    Given given;
    for (const auto& entry : entries) {
        given.add_next(entry);
    }
    // Threads ask it.
    auto shared = std::make_shared<std::pair<std::mutex, Given>>();
    shared->second = std::move(given);
    return [shared](const std::string& host) {
        const std::lock_guard lock(shared->first);
        return shared->second(host);
    };
}

// A list of PostgreSQL's, {"a","b"}.
class List {
public:
    void add(std::string_view text) {
        next();
        text_ += '"';
        for (const char c : text) {
            if (c == '"' || c == '\\') {
                text_ += '\\';
            }
            text_ += c;
        }
        text_ += '"';
    }
    void add_null() {
        next();
        text_ += "NULL";
    }
    std::string text() const { return text_ + "}"; }

private:
    void next() { text_ += text_.size() == 1 ? "" : ","; }
    std::string text_ = "{";
};

// The macros of a pixel are those of a click, but that nobody has clicked: {click_id}
// stays empty. All tries of a pixel have the same {cachebuster}, so that whoever
// counts can tell a second one.
std::string with_macros(const Rows& rows, size_t row) {
    const std::string_view url = rows.at(row, 8);
    std::string text(url.size() * (1 + kLongestMacro / 10) + 1, '\0');
    Out out(text.data(), text.size());
    render_click_url(out, url,
                     {.click_id = {},
                      .campaign = static_cast<Id>(rows.number(row, 3)),
                      .ad_group = static_cast<Id>(rows.number(row, 4)),
                      .creative = static_cast<Id>(rows.number(row, 5)),
                      .placement = rows.at(row, 6),
                      .timestamp = rows.number(row, 7),
                      .cachebuster = mix13(fnv1a64(rows.at(row, 2)))});
    text.resize(out.size());
    return text;
}

}  // namespace

// ---- hosts ----

milliseconds Breaker::closed_for(const std::string& host, Clock::time_point now) {
    const auto at = records_.find(host);
    if (at == records_.end() || at->second.failures < kFailuresToTrip) {
        return milliseconds(0);
    }
    Record& record = at->second;
    if (now >= record.until) {
        record.probing = true;
        record.until = now + record.wait;  // for all but this one
        return milliseconds(0);
    }
    return std::chrono::duration_cast<milliseconds>(record.until - now) + milliseconds(1);
}

bool Breaker::note(const std::string& host, bool good, Clock::time_point now) {
    if (good) {
        records_.erase(host);
        return false;
    }
    if (records_.size() >= kMostHosts) {
        records_.clear();
    }
    Record& record = records_[host];
    const bool tripped = record.failures >= kFailuresToTrip;
    // Requests in progress when it tripped are not counted again.
    if (++record.failures < kFailuresToTrip || (tripped && !record.probing)) {
        return false;
    }
    record.probing = false;
    record.wait = tripped ? std::min(kLongestRest, record.wait * 2) : kFirstRest;
    record.until = now + record.wait;
    return !tripped;
}

// ---- pixels ----

Dispatcher::Dispatcher(const DispatchOptions& options)
    : options_(options),
      instance_(options.instance.empty() ? host_and_process() : options.instance),
      fetcher_(options.limits, resolver_of(options.resolve)) {}

size_t Dispatcher::take() {
    if (!database_) {
        database_ = std::make_unique<Database>(options_.database, "nginx-ads dispatch");
    }
    const size_t room = options_.parallel - std::min(options_.parallel, fetcher_.in_flight());
    if (room == 0) {
        return 0;
    }
    const Rows rows = database_->run(
        "SELECT id, tries, event_id, campaign_id, ad_group_id, creative_id, placement, "
        "floor(extract(epoch FROM happened_at))::bigint, url "
        "FROM ads.take_pixels($1, $2, make_interval(secs => $3))",
        {instance_, std::to_string(room),
         fmt::format("{:.3f}", std::chrono::duration<double>(options_.lease).count())});
    for (size_t i = 0; i < rows.size(); i++) {
        begin(static_cast<uint64_t>(rows.number(i, 0)), {static_cast<int>(rows.number(i, 1)),
                                                         std::string(rows.at(i, 5)),
                                                         {},
                                                         with_macros(rows, i)});
    }
    return rows.size();
}

void Dispatcher::begin(uint64_t id, Pixel pixel) {
    if (pixel.tries > options_.tries) {
        return bury(id, pixel,
                    fmt::format("its dispatcher died, {}",
                                counted(static_cast<uint64_t>(pixel.tries) - 1, "time")));
    }
    pixel.host = parse_pixel_url(pixel.url).host;
    if (const auto wait = breaker_.closed_for(pixel.host, Clock::now()); wait.count() > 0) {
        return put_back(id, pixel, wait);
    }
    // Before it starts: it may be over at once.
    const auto& kept = pixels_[id] = std::move(pixel);
    fetcher_.start(id, kept.url);
}

double Dispatcher::backoff_seconds(int tries) {
    const double plain =
        std::chrono::duration<double>(options_.backoff).count() * std::pow(4.0, tries - 1);
    // Apart from each other: they may have failed together.
    return std::min(plain, kLongestBackoff) *
           std::uniform_real_distribution<double>(0.75, 1.25)(random_);
}

void Dispatcher::end(const Fetched& fetched) {
    const auto at = pixels_.find(fetched.ticket);
    const Pixel pixel = std::move(at->second);
    pixels_.erase(at);
    if (fetched.host != Host::untried &&
        breaker_.note(pixel.host, fetched.host == Host::well, Clock::now())) {
        log_line("dispatch", fmt::format("{} is suspended for {} s: {}", pixel.host,
                                         kFirstRest.count(), printable(fetched.error)));
    }
    if (fetched.verdict == Verdict::sent) {
        outcomes_.push_back({fetched.ticket, pixel.tries, "sent", 0, {}});
        totals_.sent++;
    } else if (fetched.verdict == Verdict::dead) {
        bury(fetched.ticket, pixel, fetched.error);
    } else if (pixel.tries >= options_.tries) {
        bury(fetched.ticket, pixel,
             fmt::format("{}, after {}", fetched.error,
                         pixel.tries == 1 ? "1 try" : fmt::format("{} tries", pixel.tries)));
    } else {
        const double seconds = backoff_seconds(pixel.tries);
        outcomes_.push_back({fetched.ticket, pixel.tries, "retry", seconds, fetched.error});
        totals_.retried++;
        if (options_.verbose) {
            log_line("dispatch",
                     fmt::format("creative {}: {}: {}; retry in {:.0f} s", pixel.creative,
                                 printable(pixel.url), printable(fetched.error), seconds));
        }
    }
}

void Dispatcher::put_back(uint64_t id, const Pixel& pixel, milliseconds wait) {
    const double seconds = std::chrono::duration<double>(wait).count() *
                           std::uniform_real_distribution<double>(1.0, 1.25)(random_);
    outcomes_.push_back({id, pixel.tries, "later", seconds, {}});
}

void Dispatcher::bury(uint64_t id, const Pixel& pixel, const std::string& error) {
    outcomes_.push_back({id, pixel.tries, "dead", 0, error});
    totals_.dead++;
    log_line("dispatch", fmt::format("creative {}: {} is given up: {}", pixel.creative,
                                     printable(pixel.url), printable(error)));
}

// One transaction. If it is lost on the way nobody knows whether it was done: what was
// done is not done again, since the rows are gone or another try's.
void Dispatcher::report_outcomes() {
    if (outcomes_.empty()) {
        return;
    }
    if (!database_) {
        database_ = std::make_unique<Database>(options_.database, "nginx-ads dispatch");
    }
    List ids, tries, whats, seconds, errors;
    for (const auto& outcome : outcomes_) {
        ids.add(std::to_string(outcome.id));
        tries.add(std::to_string(outcome.tries));
        whats.add(outcome.what);
        seconds.add(fmt::format("{:.3f}", outcome.seconds));
        outcome.error.empty() ? errors.add_null()
                              : errors.add(fitted(printable(outcome.error), kLongestError));
    }
    const std::string stored = database_->value(
        "SELECT ads.finish_pixels($1, $2, $3, $4, $5, $6)",
        {instance_, ids.text(), tries.text(), whats.text(), seconds.text(), errors.text()});
    totals_.lost += outcomes_.size() - std::stoull(stored);
    outcomes_.clear();
}

bool Dispatcher::step(milliseconds time, bool take) {
    const size_t taken = take ? this->take() : 0;
    const auto ended = fetcher_.wait(time);
    for (const auto& fetched : ended) {
        end(fetched);
    }
    report_outcomes();
    // What ended leaves room for others.
    return taken > 0 || !ended.empty() || busy();
}

}  // namespace ads::cli
