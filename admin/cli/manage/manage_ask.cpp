// campaign create on a terminal: asks, explains, and takes only what is right.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>

#include "cli/common/table.hpp"
#include "cli/manage/manage_fields.hpp"
#include "core/catalog/model.hpp"
#include "lib/manage/dates.hpp"
#include "lib/manage/edits.hpp"

namespace ads::cli {

namespace {

struct Question {
    const char* flag;
    const char* asks;
    const char* explains;
    const char* otherwise;  // what an empty answer means; null: there must be one
};

constexpr auto kQuestions = std::to_array<Question>({
    {"--name", "Name", "A name for people.", nullptr},
    {"--advertiser", "Advertiser", "The paying advertiser. Empty: a house campaign.", ""},
    {"--timezone", "Time zone",
     "Days of budgets and schedules begin at midnight there; such as America/New_York.", "UTC"},
    {"--start", "Start",
     "Its first day there, such as 2026-11-18, or a time such as 2026-11-18 18:30. Empty: now.",
     "none"},
    {"--end", "End", "Its last day, included, or a time; after the start. Empty: never.", "none"},
    {"--budget", "Budget",
     "An amount per day or in total, such as 50.00/day or 5000/total. Empty: unlimited.", "none"},
    {"--status", "Status",
     "draft: not served until you resume it; scheduled: from its start on; active: now.", "draft"},
});

void say(const std::string& text) {
    out().flush();
    std::fwrite(text.data(), 1, text.size(), stderr);
    std::fflush(stderr);
}

std::string answer(const Question& question) {
    const std::string otherwise = question.otherwise == nullptr || *question.otherwise == '\0'
                                      ? ""
                                      : fmt::format(" [{}]", question.otherwise);
    say(fmt::format("{}{}: ", painted(STDERR_FILENO, Colour::bold, question.asks), otherwise));
    std::string line;
    if (!std::getline(std::cin, line)) {
        say("\n");
        throw Failure(Exit::bad_input, "the input ended; nothing was written.");
    }
    line.erase(line.find_last_not_of(" \t\r") + 1);
    line.erase(0, std::min(line.find_first_not_of(" \t"), line.size()));
    return line;
}

// The first error of the campaign so far, or an empty string.
std::string fault_of(const json_t* campaign) {
    const Json copy(json_copy(const_cast<json_t*>(campaign)));
    json_object_set_new(copy.get(), "id", json_integer(1));
    const Json whole(json_pack("{s:[O]}", "campaigns", copy.get()));
    const auto parsed = catalog::parse(dumped(whole.get()), 1);
    return parsed.errors.empty() ? std::string() : parsed.errors.front().message;
}

const Field& field_of(const char* flag) {
    const auto fields = fields_of(Kind::campaign);
    return *std::find_if(fields.begin(), fields.end(),
                         [&](const Field& field) { return std::string_view(field.flag) == flag; });
}

void ask(const Question& question, json_t* campaign) {
    say(wrapped(question.explains, 0, terminal_width()));
    for (;;) {
        std::string text = answer(question);
        if (text.empty() && question.otherwise == nullptr) {
            say("  A value is required.\n");
            continue;
        }
        const Json attempt(json_deep_copy(campaign));
        try {
            set_field(attempt.get(), field_of(question.flag),
                      {text.empty() ? question.otherwise : text});
            resolve_dates(attempt.get(), zone_of(attempt.get()));
        } catch (const Failure& e) {
            say(fmt::format("  {}\n", e.what()));
            continue;
        }
        if (const std::string fault = fault_of(attempt.get()); !fault.empty()) {
            say(fmt::format("  It {}.\n", printable(fault)));
            continue;
        }
        json_object_update(campaign, attempt.get());
        return;
    }
}

}  // namespace

void ask_for_campaign(json_t* campaign) {
    say("A new campaign. Ctrl-C quits without writing anything.\n\n");
    for (const auto& question : kQuestions) {
        ask(question, campaign);
    }
    say("\nNext: \"nginx-ads ad-group create --campaign ID\".\n");
}

}  // namespace ads::cli
