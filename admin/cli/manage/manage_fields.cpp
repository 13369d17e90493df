#include "cli/manage/manage_fields.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "cli/common/table.hpp"
#include "cli/creative/upload.hpp"
#include "cli/manage/manage_values.hpp"
#include "core/base/types.hpp"
#include "lib/base/files.hpp"
#include "lib/base/local_time.hpp"
#include "lib/catalog/catalog_list.hpp"
#include "lib/manage/dates.hpp"

namespace ads::cli {

namespace {

constexpr std::string_view kNoValue = "none";

constexpr auto kAdvertiser = std::to_array<Field>({
    {"--name", "name", As::text, "TEXT", "Name"},
});

constexpr auto kCampaign = std::to_array<Field>({
    {"--name", "name", As::text, "TEXT", "Name"},
    {"--advertiser", "advertiser", As::name, "NAME",
     "Advertiser; created if new; none: a house campaign"},
    {"--status", "status", As::text, "STATUS", "draft, scheduled, active, paused"},
    {"--timezone", "timezone", As::text, "ZONE", "Time zone (UTC); dates keep their local time"},
    {"--start", "start", As::moment, "DATE", "First day, or a time such as \"2026-11-18 18:30\""},
    {"--end", "end", As::moment, "DATE", "Last day, included, or a time; none: no end"},
    {"--budget", "budget", As::budget, "AMOUNT", "Budget: 50.00/day, 5000/total or none"},
    {"--hard-cap", "budget.hard_cap", As::number, "N",
     "Maximum as a multiple of the daily budget, 1 to 10 (1.2)"},
});

constexpr auto kAdGroup = std::to_array<Field>({
    {"--name", "name", As::text, "TEXT", "Name"},
    {"--status", "status", As::text, "STATUS", "draft, scheduled, active, paused"},
    {"--start", "start", As::moment, "DATE", "First day, or a time; within the campaign's flight"},
    {"--end", "end", As::moment, "DATE", "Last day, included, or a time"},
    {"--priority", "priority", As::text, "NAME", "sponsorship, standard, remnant or house"},
    {"--weight", "weight", As::number, "N", "Share of the draw"},
    {"--cpm", "cpm", As::price, "AMOUNT", "Price of 1000 impressions, such as 2.50"},
    {"--vcpm", "vcpm", As::price, "AMOUNT", "Price of 1000 viewable impressions"},
    {"--cpc", "cpc", As::price, "AMOUNT", "Price of a click"},
    {"--cpa", "cpa", As::price, "AMOUNT", "Price of a conversion"},
    {"--flat", "flat", As::price, "AMOUNT", "Price of each impression and each click"},
    {"--goal", "pacing.goal", As::goal, "N", "Goal of the flight: 500000 impressions, 2000/clicks"},
    {"--strategy", "pacing.strategy", As::text, "NAME",
     "adaptive, even, asap, pid or probabilistic"},
    {"--cap-on", "pacing.cap_on", As::text, "NAME",
     "What caps count: serve, or impression (default with such a goal)"},
    {"--daily-impressions", "pacing.daily_impression_cap", As::number, "N", "Daily maximum"},
    {"--daily-clicks", "pacing.daily_click_cap", As::number, "N", "Daily maximum"},
    {"--cap", "frequency_caps", As::caps, "N/PERIOD",
     "Cap per visitor: 3/day, 10/7d, 1/lifetime/campaign; may be repeated"},
    {"--placements", "targeting.placements", As::list, "LIST",
     "Placements to serve in, separated by commas; none: all"},
    {"--devices", "targeting.devices", As::list, "LIST",
     "desktop, mobile, tablet, tv, bot; none: all"},
    {"--geos", "targeting.geos", As::list, "LIST", "US, US-CA; ! excludes; none: all"},
    {"--hours", "targeting.schedule", As::hours, "HOURS",
     "Local hours: mon-fri:9-17, 22-6; may be repeated"},
    {"--kv", "targeting.keys", As::keys, "KEY=LIST",
     "Key-values: section=sports,politics; may be repeated"},
    {"--languages", "targeting.languages", As::list, "LIST", "en, pt-br; none: all"},
    {"--include-url", "targeting.urls.include", As::texts, "REGEX",
     "Page URLs to serve on; may be repeated; none: all"},
    {"--exclude-url", "targeting.urls.exclude", As::texts, "REGEX",
     "Page URLs to exclude; may be repeated; none: none"},
    {"--category", "category", As::text, "TEXT", "Category of the product"},
    {"--exclusive", "exclusive", As::text, "NAME", "none, advertiser or category"},
    {"--together", "together", As::text, "NAME", "Set of ad groups that serve all or none"},
});

constexpr auto kCreative = std::to_array<Field>({
    {"--type", "type", As::text, "NAME", "image, html, native or tag"},
    {"--name", "name", As::text, "TEXT", "Name"},
    {"--status", "status", As::text, "STATUS", "draft, scheduled, active, paused"},
    {"--weight", "weight", As::number, "N", "Share of the draw"},
    {"--width", "width", As::number, "N", "Pixels; 0 fits any placement"},
    {"--height", "height", As::number, "N", "Pixels"},
    {"--image", "image", As::image, "FILE", "Image to upload; sets address and size"},
    {"--image-folder", "", As::option, "FOLDER",
     "Folder for --image (default /var/lib/nginx-ads/images)"},
    {"--image-base", "", As::option, "PREFIX", "URL prefix of that folder (default /img/)"},
    {"--src", "content.src", As::text, "URL", "Address of an image"},
    {"--alt", "content.alt", As::text, "TEXT", "Alternative text of an image"},
    {"--markup", "content.markup", As::text, "HTML", "Markup of an HTML creative; it is cleaned"},
    {"--markup-file", "content.markup", As::file, "FILE", "The markup from a file; - is stdin"},
    {"--title", "content.title", As::text, "TEXT", "Text of a native creative"},
    {"--body", "content.body", As::text, "TEXT", "Text of a native creative"},
    {"--image-url", "content.image", As::text, "URL", "Image of a native creative"},
    {"--click-url", "click_url", As::text, "URL", "Target of a click"},
    {"--impression-url", "impression_url", As::text, "URL", "A third party's pixel"},
});

constexpr auto kPlacement = std::to_array<Field>({
    {"--name", "name", As::text, "TEXT", "Name"},
    {"--status", "status", As::text, "STATUS", "active or paused"},
    {"--width", "width", As::number, "N", "Pixels; 0 takes any creative"},
    {"--height", "height", As::number, "N", "Pixels"},
    {"--types", "types", As::list, "LIST", "image, html, native, tag; none: all"},
    {"--select", "select", As::text, "NAME", "Selection among ad groups: weight or price"},
    {"--floor", "floor_cents", As::money, "AMOUNT", "Minimum eCPM, such as 0.50"},
    {"--viewable-share", "viewable.share", As::number, "N",
     "Share of an ad in view that makes it viewable, such as 0.6; none: by its size"},
    {"--viewable-seconds", "viewable.seconds", As::number, "N", "For how long, 1 to 60 (1)"},
});

constexpr auto kExperiment = std::to_array<Field>({
    {"--name", "name", As::text, "TEXT", "Name"},
    {"--status", "status", As::text, "STATUS", "draft or running"},
    {"--variants", "variants", As::variants, "LIST",
     "Creatives: 31,32 for equal shares, or 31:0.7,32:0.3"},
    {"--metric", "metric", As::text, "NAME", "ctr or conversion"},
    {"--alpha", "alpha", As::number, "N", "Probability of a false winner (0.05)"},
    {"--min-sample", "min_sample", As::number, "N", "Minimum trials per variant (1000)"},
    {"--mde", "mde", As::number, "N", "Smallest difference to detect (0.001)"},
});

Json parsed(std::string_view text) {
    return Json(
        json_loadb(text.data(), text.size(), JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, nullptr));
}

// It depends on the campaign's time zone: see resolve_dates().
json_t* moment_json(const Field& field, const std::string& text) {
    if (text.empty() || text == kNoValue) {
        return json_null();
    }
    if (!parse_local(text, "UTC", Edge::start)) {
        throw Failure(
            Exit::usage,
            fmt::format("{} must be a date such as 2026-11-18, a time such as \"2026-11-18 "
                        "18:30\", RFC 3339 or none, not \"{}\".",
                        field.flag, printable(text)));
    }
    return json_pack("{s:o}", kLocal, text_json(text));
}

json_t* texts_json(const std::vector<std::string>& texts) {
    json_t* list = json_array();
    for (const auto& text : texts) {
        if (!text.empty() && text != kNoValue) {
            json_array_append_new(list, text_json(text));
        }
    }
    return list;
}

[[noreturn]] void no_such_path(const std::string& path) {
    throw Failure(Exit::usage, fmt::format("--set {}: must be a path such as price.amount_cents or "
                                           "frequency_caps[0].count.",
                                           path));
}

// One step of a path: a key, and perhaps a place in the list there.
struct Step {
    std::string key;
    std::vector<size_t> places;
};

std::vector<Step> steps_of(const std::string& path) {
    std::vector<Step> steps;
    std::string_view rest = path;
    do {
        const size_t dot = std::min(rest.find('.'), rest.size());
        std::string_view part = rest.substr(0, dot);
        rest.remove_prefix(std::min(dot + 1, rest.size()));
        const size_t bracket = std::min(part.find('['), part.size());
        Step step{std::string(part.substr(0, bracket)), {}};
        part.remove_prefix(bracket);
        while (!part.empty()) {
            size_t place = 0;
            const size_t end = part.find(']');
            const char* last = part.data() + std::min(end, part.size());
            const auto read = std::from_chars(part.data() + 1, last, place);
            if (end == part.npos || read.ec != std::errc() || read.ptr != last) {
                no_such_path(path);
            }
            step.places.push_back(place);
            part.remove_prefix(end + 1);
            if (!part.empty() && part.front() != '[') {
                no_such_path(path);
            }
        }
        if (step.key.empty()) {
            no_such_path(path);
        }
        steps.push_back(std::move(step));
    } while (!rest.empty());
    return steps;
}

// An item of a list; one behind the last is a new one.
json_t* item_at(json_t* list, size_t place, const std::string& path) {
    if (!json_is_array(list) || place > json_array_size(list)) {
        no_such_path(path);
    }
    if (place == json_array_size(list)) {
        json_array_append_new(list, json_object());
    }
    return json_array_get(list, place);
}

void set_path(json_t* object, const std::string& path, json_t* given) {
    Json value(given);
    const auto steps = steps_of(path);
    json_t* at = object;
    for (size_t i = 0; i < steps.size(); i++) {
        const Step& step = steps[i];
        if (!json_is_object(at)) {
            no_such_path(path);
        }
        const bool last = i + 1 == steps.size();
        if (last && step.places.empty()) {
            json_object_set_new(at, step.key.c_str(), value.release());
            return;
        }
        json_t* next = json_object_get(at, step.key.c_str());
        if (next == nullptr || json_is_null(next)) {
            next = step.places.empty() ? json_object() : json_array();
            json_object_set_new(at, step.key.c_str(), next);
        }
        for (size_t p = 0; p < step.places.size(); p++) {
            json_t* item = item_at(next, step.places[p], path);
            if (last && p + 1 == step.places.size()) {
                json_array_set_new(next, step.places[p], value.release());
                return;
            }
            next = item;
        }
        at = next;
    }
}

void set_budget(json_t* object, const std::string& text) {
    const auto budget = budget_of(text);
    if (!budget) {
        json_object_set_new(object, "budget", json_null());
        return;
    }
    set_path(object, "budget.type", text_json(name_of(budget->type)));
    set_path(object, "budget.amount_cents", number_json(budget->cents));
}

void set_price(json_t* object, const Field& field, const std::string& text) {
    set_path(object, "price.amount_cents", number_json(money_of(field.flag, text)));
    set_path(object, "price.model", text_json(field.path));
}

// The first goal of impressions is paced by impressions: that is its default.
void set_goal(json_t* object, const std::string& text) {
    Json goal(goal_json(text));
    json_t* pacing = json_object_get(object, "pacing");
    if (json_object_get(goal.get(), "impressions") != nullptr &&
        !json_is_object(json_object_get(pacing, "goal"))) {
        json_object_del(pacing, "cap_on");
    }
    set_path(object, "pacing.goal", goal.release());
}

// The object at a path; made if it is not there.
json_t* object_at(json_t* object, const char* path) {
    json_t* at = object;
    for (const auto& step : steps_of(path)) {
        json_t* next = json_object_get(at, step.key.c_str());
        if (!json_is_object(next)) {
            next = json_object();
            json_object_set_new(at, step.key.c_str(), next);
        }
        at = next;
    }
    return at;
}

// A creative of digits becomes a number; all else is told by the catalog's own check.
json_t* variants_json(const std::string& text) {
    const Json items(list_json(text));
    json_t* list = json_array();
    size_t i = 0;
    json_t* item = nullptr;
    size_t shares = 0;
    json_array_foreach(items.get(), i, item) {
        const std::string variant = json_string_value(item);
        const size_t colon = variant.find(':');
        json_t* one = json_object();
        json_object_set_new(one, "creative", number_or_text(variant.substr(0, colon)));
        if (colon != variant.npos) {
            json_object_set_new(one, "share", number_or_text(variant.substr(colon + 1)));
            shares++;
        }
        json_array_append_new(list, one);
    }
    if (shares != 0 && shares != json_array_size(list)) {
        json_decref(list);
        throw Failure(Exit::usage,
                      fmt::format("--variants must have a share for each variant, such as "
                                  "31:0.7,32:0.3, or for none, not \"{}\".",
                                  text));
    }
    json_array_foreach(list, i, item) {
        if (shares == 0) {
            json_object_set_new(item, "share",
                                json_real(1.0 / static_cast<double>(json_array_size(list))));
        }
    }
    return list;
}

void apply_set(json_t* object, const std::string& text) {
    const size_t equals = text.find('=');
    if (equals == text.npos || equals == 0) {
        throw Failure(Exit::usage, fmt::format("--set must be PATH=VALUE, not \"{}\".", text));
    }
    const std::string value = text.substr(equals + 1);
    Json json = parsed(value);
    set_path(object, text.substr(0, equals), json ? json.release() : text_json(value));
}

}  // namespace

bool is_repeated(As as) {
    return as == As::texts || as == As::caps || as == As::hours || as == As::keys;
}

std::span<const Field> fields_of(Kind kind) {
    switch (kind) {
        case Kind::advertiser:
            return kAdvertiser;
        case Kind::campaign:
            return kCampaign;
        case Kind::ad_group:
            return kAdGroup;
        case Kind::creative:
            return kCreative;
        case Kind::placement:
            return kPlacement;
        case Kind::experiment:
            return kExperiment;
    }
    return {};
}

template <class E>
std::vector<std::string> all_but(size_t last = 0) {
    return {Names<E>::list.begin(), Names<E>::list.end() - last};
}

// For completion, the names that a member may have.
std::vector<std::string> names_of(Kind kind, std::string_view path) {
    if (path == "status") {
        return kind == Kind::experiment ? all_but<ExperimentStatus>(1) : all_but<Status>(2);
    }
    return path == "priority"            ? all_but<Priority>()
           : path == "price.model"       ? all_but<PriceModel>()
           : path == "pacing.strategy"   ? all_but<Strategy>()
           : path == "pacing.cap_on"     ? all_but<CapOn>()
           : path == "exclusive"         ? all_but<Exclusive>()
           : path == "type"              ? all_but<CreativeType>()
           : path == "select"            ? all_but<Select>()
           : path == "metric"            ? all_but<Metric>()
           : path == "targeting.devices" ? all_but<Device>()
                                         : std::vector<std::string>();
}

void add_fields(Arguments& app, Kind kind, Values& values) {
    for (const auto& field : fields_of(kind)) {
        auto* option = app.add_taker(
                              field.flag,
                              [&values, &field](const std::vector<std::string>& given) {
                                  values[field.flag] = given;
                                  return true;
                              },
                              field.help)
                           ->option_text(field.value)
                           ->allow_extra_args(false);
        option->offer(names_of(kind, field.path));
        if (is_repeated(field.as)) {
            option->take_all();
        }
    }
}

void set_field(json_t* object, const Field& field, const std::vector<std::string>& values) {
    const std::string& text = values.back();
    switch (field.as) {
        case As::text:
            return set_path(object, field.path, text_json(text));
        case As::name:
            return set_path(object, field.path, text_json(text == kNoValue ? "" : text));
        case As::number:
            return set_path(object, field.path, number_or_text(text));
        case As::moment:
            return set_path(object, field.path, moment_json(field, text));
        case As::money:
            return set_path(object, field.path, money_json(field.flag, text));
        case As::price:
            return set_price(object, field, text);
        case As::list:
            return set_path(object, field.path, text == kNoValue ? json_array() : list_json(text));
        case As::texts:
            return set_path(object, field.path, texts_json(values));
        case As::file:
            return set_path(object, field.path, text_json(read_input(text)));
        case As::budget:
            return set_budget(object, text);
        case As::caps:
            return set_path(object, field.path, caps_json(values));
        case As::hours:
            return set_path(object, field.path, hours_json(values));
        case As::goal:
            return set_goal(object, text);
        case As::keys:
            return set_keys(object_at(object, field.path), values);
        case As::image:
        case As::option:
            return;  // apply() knows what belongs together
        case As::variants:
            return set_path(object, field.path, variants_json(text));
    }
}

void check_one_price(const EditCommand& command) {
    const char* first = nullptr;
    for (const auto& field : fields_of(command.edit.kind)) {
        if (field.as != As::price || !command.values.contains(field.flag)) {
            continue;
        }
        if (first != nullptr) {
            throw Failure(Exit::usage,
                          fmt::format("{} and {} are mutually exclusive: an ad group has "
                                      "one price.",
                                      first, field.flag));
        }
        first = field.flag;
    }
}

// An image that is uploaded: of a native creative it is one of its texts, any other is all of
// the creative.
void set_image(const EditCommand& command, json_t* object) {
    const auto value = [&](const char* flag, const char* otherwise) {
        const auto found = command.values.find(flag);
        return found == command.values.end() ? std::string(otherwise) : found->second.back();
    };
    const std::string file = value("--image", "");
    if (file.empty()) {
        return;
    }
    const UploadedImage image =
        upload_image(file, value("--image-folder", kImageFolder), value("--image-base", kImageBase),
                     command.access.dry_run);
    const char* type = json_string_value(json_object_get(object, "type"));
    if (type != nullptr && std::string_view(type) == "native") {
        set_path(object, "content.image", text_json(image.url));
        return;
    }
    if (type == nullptr) {
        set_path(object, "type", text_json("image"));
    }
    set_path(object, "content.src", text_json(image.url));
    for (const auto& [flag, key, size] :
         {std::tuple("--width", "width", image.width), {"--height", "height", image.height}}) {
        if (!command.values.contains(flag)) {
            json_object_set_new(object, key, number_json(size));
        }
    }
}

void apply(const EditCommand& command, json_t* object) {
    check_one_price(command);
    if (!command.file.empty()) {
        merge(object, read_object(command.file).get());
    }
    for (const auto& field : fields_of(command.edit.kind)) {
        if (const auto found = command.values.find(field.flag); found != command.values.end()) {
            set_field(object, field, found->second);
        }
    }
    set_image(command, object);
    for (const auto& text : command.sets) {
        apply_set(object, text);
    }
    // An address that is taken away.
    if (json_string_length(json_object_get(object, "impression_url")) == 0) {
        json_object_del(object, "impression_url");
    }
}

Json read_object(const std::string& file) {
    const std::string text = read_input(file);
    json_error_t error;
    Json json(json_loadb(text.data(), text.size(), JSON_REJECT_DUPLICATES, &error));
    if (json == nullptr) {
        throw Failure(Exit::bad_input, fmt::format("{}: line {}, column {}: {}.", shown_name(file),
                                                   error.line, error.column, error.text));
    }
    if (!json_is_object(json.get())) {
        throw Failure(Exit::bad_input, fmt::format("{}: must be a JSON object.", shown_name(file)));
    }
    json_object_del(json.get(), kDelivery);  // show has it
    return json;
}

}  // namespace ads::cli
