#include "cli/why/why_show.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "cli/common/output.hpp"
#include "cli/common/table.hpp"
#include "lib/diagnosis/reasons.hpp"

namespace ads::cli {

using diagnosis::Cause;
using diagnosis::Counts;
using diagnosis::Diagnosis;
using diagnosis::Kind;
using diagnosis::Object;
using diagnosis::Verdict;

namespace {

std::string titled(std::string_view kind, const Object& object) {
    return object.name.empty()
               ? fmt::format("{} {}", kind, object.id)
               : fmt::format("{} {} \"{}\"", kind, object.id, printable(object.name));
}

// An ad group can wait for something else than what is wrong with it.
std::string_view words_of(const Diagnosis& d) {
    switch (d.verdict) {
        case Verdict::blocked:
            return "cannot be served";
        case Verdict::limited:
            return "is underdelivering";
        case Verdict::used_up:
            return "has exhausted its limits";
        case Verdict::off:
            return "is not due now";
        case Verdict::fine:
            return "no obstacle found";
    }
    return {};
}

Colour colour_of(Verdict verdict) {
    return verdict == Verdict::fine                                     ? Colour::green
           : verdict == Verdict::blocked || verdict == Verdict::limited ? Colour::red
                                                                        : Colour::yellow;
}

std::string sentence(std::string text) {
    if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') {
        text[0] = static_cast<char>(text[0] - 'a' + 'A');
    }
    return printable(text) + ".";
}

// A line, if there is something to tell.
std::string told(const std::optional<double>& share, fmt::format_string<double> line) {
    return share ? fmt::format(line, 100 * *share) + ".\n" : std::string();
}

void show_cause(const Cause& cause, size_t indent, size_t width) {
    const std::string likely = cause.extent == diagnosis::Extent::maybe ? "Perhaps: " : "";
    out().put(wrapped(likely.empty() ? sentence(cause.what) : likely + printable(cause.what) + ".",
                      indent, width));
    out().put(wrapped(sentence(cause.remedy), indent + 2, width));
}

// ---- the counts of a node ----

class Funnel {
public:
    explicit Funnel(const Counts& counts)
        : counts_(counts),
          width_(terminal_width()),
          bar_(std::clamp<size_t>(width_ - std::min<size_t>(width_, 54), 8, 40)) {}

    void show() const {
        const auto of = [](uint64_t part, uint64_t whole, std::string_view what) {
            return whole == 0
                       ? std::string()
                       : fmt::format("  {:.1f}% of {}",
                                     100.0 * static_cast<double>(part) / static_cast<double>(whole),
                                     what);
        };
        const uint64_t most = std::max({counts_.serves, counts_.impressions, counts_.clicks});
        row("served", counts_.serves, most, false, Colour::green, "");
        row("impressions", counts_.impressions, most, false, Colour::green,
            of(counts_.impressions, counts_.serves, "served"));
        row("clicks", counts_.clicks, most, false, Colour::green,
            of(counts_.clicks, counts_.impressions, "impressions"));
        out().put("\n");
        refusals();
    }

private:
    void row(std::string_view name, uint64_t count, uint64_t most, bool estimate, Colour colour,
             const std::string& note) const {
        const double share = most == 0 ? 0 : static_cast<double>(count) / static_cast<double>(most);
        const std::string number = (estimate ? "~" : "") + grouped(count);
        const std::string line = bar(share, bar_);
        out().put(fmt::format("  {:<12}{:>14}{}{}{}\n", name, number, line.empty() ? "" : "  ",
                              painted(STDOUT_FILENO, colour, line), note));
    }

    void refusals() const {
        if (counts_.refused.empty()) {
            out().put(
                wrapped(counts_.serves > 0 || !counts_.stopped.empty()
                            ? "Nothing was refused today."
                            : "Nothing was refused today either: its placements were not "
                              "requested, or other ad groups were drawn. Refusals by targeting "
                              "are sampled on one request in 64.",
                        0, width_));
            return;
        }
        const bool estimates = std::any_of(counts_.refused.begin(), counts_.refused.end(),
                                           [](const auto& r) { return r.estimate; });
        out().put(fmt::format("Not served, by reason{}\n",
                              estimates ? "; ~ is an estimate from a sample of the requests" : ""));
        for (const auto& refused : counts_.refused) {
            out().put("\n");
            row(printable(refused.name), refused.count, counts_.refused.front().count,
                refused.estimate, Colour::yellow, "");
            if (refused.reason == Reason::status && !counts_.stopped.empty()) {
                out().put(
                    wrapped("the emergency stop, or a status that is not active.", 4, width_));
            } else if (refused.reason) {
                const Words& words = admin::words_of(*refused.reason);
                out().put(wrapped(fmt::format("{}; {}.", words.what, words.hint), 4, width_));
            }
        }
    }

    const Counts& counts_;
    const size_t width_;
    const size_t bar_;  // columns of the longest
};

}  // namespace

void show_diagnosis(const Diagnosis& d, bool catalog_known) {
    const size_t width = terminal_width();
    const std::string day = d.counts ? ", " + printable(d.counts->day) : "";
    out().put(fmt::format("{} of {}{}\n\n",
                          painted(STDOUT_FILENO, Colour::bold, titled("Ad group", d.ad_group)),
                          titled("campaign", d.campaign), day));
    if (catalog_known) {
        std::string verdict = sentence(std::string(words_of(d)));
        verdict.back() = d.causes.empty() ? '.' : ':';
        out().put(fmt::format("{}\n", painted(STDOUT_FILENO, colour_of(d.verdict), verdict)));
    }
    for (const auto& cause : d.causes) {
        out().put("\n");
        show_cause(cause, 2, width);
    }
    if (!d.causes.empty() && d.counts) {
        out().put("\n");
    }
    if (d.delivery || d.flight_delivery) {
        out().put(fmt::format("{}{}{}{}", catalog_known && !d.counts ? "\n" : "",
                              told(d.delivery, "Today it has delivered {:.0f}% of its plan by now"),
                              told(d.flight_delivery,
                                   "Of its whole flight it has delivered "
                                   "{:.0f}% of the ideal by now"),
                              d.counts ? "\n" : ""));
    } else if (catalog_known && d.counts && d.causes.empty()) {
        out().put("\n");
    }
    if (d.counts) {
        Funnel(*d.counts).show();
    }
}

void show_diagnoses(const std::vector<Diagnosis>& list) {
    const size_t width = terminal_width();
    bool first = true;
    for (const auto& d : list) {
        const std::string delivery =
            d.flight_delivery ? fmt::format(" ({:.0f}% of its flight)", 100 * *d.flight_delivery)
            : d.delivery      ? fmt::format(" ({:.0f}% of today's plan)", 100 * *d.delivery)
                              : "";
        out().put(fmt::format("{}{} of {}: {}{}\n", first ? "" : "\n",
                              painted(STDOUT_FILENO, Colour::bold, titled("Ad group", d.ad_group)),
                              titled("campaign", d.campaign),
                              painted(STDOUT_FILENO, colour_of(d.verdict), words_of(d)), delivery));
        first = false;
        for (const auto& cause : d.causes) {
            show_cause(cause, 2, width);
        }
    }
}

}  // namespace ads::cli
