#include "lib/catalog/clean.hpp"

#include <fmt/format.h>
#include <jansson.h>

#include <charconv>
#include <cstdlib>

#include "creative/sanitize.hpp"
#include "lib/base/failure.hpp"
#include "lib/base/json.hpp"
#include "lib/base/json_text.hpp"
#include "lib/base/url_policy.hpp"

namespace ads::admin {

namespace {

std::string text_of(std::string_view json) {
    const Json value(json_loadb(json.data(), json.size(), JSON_DECODE_ANY, nullptr));
    return json_is_string(value.get())
               ? std::string(json_string_value(value.get()), json_string_length(value.get()))
               : std::string();
}

std::string quoted(const std::string& text) {
    struct Free {
        void operator()(char* text) const noexcept { std::free(text); }
    };
    const Json value(text_json(text));
    const std::unique_ptr<char, Free> json(json_dumps(value.get(), JSON_ENCODE_ANY));
    return json.get();
}

uint64_t number_of(std::string_view text) {
    uint64_t number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
}

// Copies a document, with other texts in place of some of its parts.
class Copy {
public:
    explicit Copy(std::string_view from) : from_(from) {}

    // `part` is a view into the document, behind those before.
    void replace(std::string_view part, const std::string& text) {
        const auto at = static_cast<size_t>(part.data() - from_.data());
        copy_ += from_.substr(done_, at - done_);
        copy_ += text;
        done_ = at + part.size();
    }
    std::string end() && { return std::move(copy_) + std::string(from_.substr(done_)); }

private:
    std::string_view from_;
    std::string copy_;
    size_t done_ = 0;
};

void clean_creative(std::string_view creative, Copy& copy, std::vector<Removed>& removed) {
    const uint64_t id = number_of(member_of(creative, "id"));
    if (const std::string url = text_of(member_of(creative, "impression_url")); !url.empty()) {
        check_pixel(id, url);
    }
    if (text_of(member_of(creative, "type")) != "html") {
        return;
    }
    const std::string_view markup = member_of(member_of(creative, "content"), "markup");
    const std::string text = text_of(markup);
    if (const std::string clean = clean_markup(id, text, removed); clean != text) {
        copy.replace(markup, quoted(clean));
    }
}

}  // namespace

std::string clean_markup(uint64_t creative, std::string_view markup,
                         std::vector<Removed>& removed) {
    auto result = creative::sanitize(markup);
    if (result.ok() && result.html.empty()) {
        result.refusal = "nothing remains of it after cleaning";
    }
    if (!result.ok()) {
        throw Failure(Exit::bad_input, fmt::format("creative {}: the markup is refused: {}.",
                                                   creative, result.refusal));
    }
    if (!result.removed.empty()) {
        removed.push_back({creative, std::move(result.removed)});
    }
    return std::move(result.html);
}

void check_pixel(uint64_t creative, std::string_view url) {
    if (const auto checked = parse_pixel_url(url); !checked.fault.empty()) {
        throw Failure(Exit::bad_input,
                      fmt::format("creative {}: impression_url {}.", creative, checked.fault));
    }
}

std::string clean_document(std::string_view document, std::vector<Removed>& removed) {
    Copy copy(document);
    for (const auto& [c, campaign] : parts_of(member_of(document, "campaigns"))) {
        for (const auto& [g, group] : parts_of(member_of(campaign, "ad_groups"))) {
            for (const auto& [k, creative] : parts_of(member_of(group, "creatives"))) {
                clean_creative(creative, copy, removed);
            }
        }
    }
    return std::move(copy).end();
}

}  // namespace ads::admin
