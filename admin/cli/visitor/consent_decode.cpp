// nginx-ads consent decode: the contents of a GPP string, and the vote of each section.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/common/options.hpp"
#include "cli/common/output.hpp"
#include "cli/common/table.hpp"
#include "cli/main/commands.hpp"
#include "core/visitor/consent.hpp"
#include "lib/base/json.hpp"
#include "lib/base/moment.hpp"

namespace ads::cli {

namespace {

struct Options {
    std::string text;
    unsigned vendor = 0;
    std::string now;
    bool json = false;
};

std::string_view word(Vote vote) {
    return vote == Vote::yes ? "yes" : vote == Vote::no ? "no" : "absent";
}

// f(name, values) for each field of a section of US law.
template <class F>
void each_field(const UsSection& us, F f) {
    const auto one = [&](const char* name, uint8_t value) { f(name, std::span(&value, 1)); };
    f("notices", std::span<const uint8_t>(us.notices));
    one("sale", us.sale);
    one("sharing", us.sharing);
    one("targeted", us.targeted);
    f("sensitive", std::span<const uint8_t>(us.sensitive));
    f("children", std::span<const uint8_t>(us.children));
    one("processing", us.processing);
    one("covered", us.covered);
    one("opt_out_mode", us.opt_out_mode);
    one("service_provider", us.service_provider);
    one("gpc", us.gpc ? 1 : 0);
}

json_t* values_json(std::span<const uint8_t> values) {
    if (values.size() == 1) {
        return json_integer(values[0]);
    }
    json_t* list = json_array();
    for (const uint8_t value : values) {
        json_array_append_new(list, json_integer(value));
    }
    return list;
}

json_t* section_json(const GppSection& section, const Ballot& ballot) {
    json_t* object = json_object();
    const std::string_view name = gpp_section_name(section.id);
    json_object_set_new(object, "id", json_integer(section.id));
    json_object_set_new(object, "name", name.empty() ? json_null() : text_json(name));
    json_object_set_new(object, "identifiers", text_json(word(ballot.identifiers)));
    json_object_set_new(object, "personalize", text_json(word(ballot.personalize)));
    json_object_set_new(object, "reason", text_json(name_of(ballot.reason)));
    if (UsSection us; read_us_section(section, us)) {
        json_t* fields = json_object();
        each_field(us, [&](const char* field, std::span<const uint8_t> values) {
            json_object_set_new(fields, field, values_json(values));
        });
        json_object_set_new(object, "fields", fields);
    }
    return object;
}

void print_section(const GppSection& section, const Ballot& ballot) {
    const std::string_view name = gpp_section_name(section.id);
    out().put(fmt::format(
        "{} {}: identifiers {}, personalize {}{}\n", section.id, name.empty() ? "(not read)" : name,
        word(ballot.identifiers), word(ballot.personalize),
        ballot.reason == ConsentReason::ok ? std::string()
                                           : fmt::format(" ({})", name_of(ballot.reason))));
    if (UsSection us; read_us_section(section, us)) {
        each_field(us, [](const char* field, std::span<const uint8_t> values) {
            out().put(fmt::format("    {:<17}{}\n", field, fmt::join(values, " ")));
        });
    }
}

Exit decode(const Options& options) {
    GppString gpp;
    if (!read_gpp(options.text, gpp)) {
        throw Failure(Exit::bad_input, "invalid GPP string.");
    }
    const Millis now = moment_or_now(options.now);
    const Json root(json_object());
    json_t* list = json_array();
    json_object_set_new(root.get(), "sections", list);
    for (const auto& section : gpp.sections()) {
        Ballot ballot = gpp_ballot(section, static_cast<VendorId>(options.vendor), now);
        if (ballot.identifiers != Vote::no && ballot.personalize != Vote::no) {
            ballot.reason = ConsentReason::ok;
        }
        if (options.json) {
            json_array_append_new(list, section_json(section, ballot));
        } else {
            print_section(section, ballot);
        }
    }
    if (options.json) {
        print_json(root);
    }
    return Exit::ok;
}

}  // namespace

void add_consent_decode(Arguments& consent, Command& chosen) {
    auto options = std::make_shared<Options>();
    auto* app = consent.add_subcommand("decode", "Decode a GPP string");
    app->add_option("STRING", options->text, "The GPP string")->required();
    app->add_option("--vendor", options->vendor, "Id in the Global Vendor List")
        ->check(whole_number(1, 65'535))
        ->option_text("ID");
    add_decision_time(*app, options->now);
    app->add_flag("--json", options->json, "Print JSON");
    app->footer("Example:\n  nginx-ads consent decode DBABLA~BVVVkkkkkpFY.YA");
    app->callback([options, &chosen] { chosen = [options] { return decode(*options); }; });
}

}  // namespace ads::cli
