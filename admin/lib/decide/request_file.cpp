#include "lib/decide/request_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/base/query.hpp"
#include "core/catalog/formats.hpp"
#include "core/decide/page.hpp"
#include "core/visitor/user_agent.hpp"
#include "lib/base/failure.hpp"
#include "lib/base/files.hpp"
#include "lib/base/json.hpp"
#include "lib/base/nearest.hpp"
#include "lib/base/text.hpp"

namespace ads::admin {

namespace {

const std::vector<std::string> kMembers = {"placements", "device", "user_agent", "geo",
                                           "language",   "url",    "keys",       "session"};

class Reader {
public:
    Reader(std::string_view text, const std::string& name) : name_(name) {
        json_error_t error;
        root_.reset(json_loadb(text.data(), text.size(), JSON_REJECT_DUPLICATES, &error));
        if (root_ == nullptr) {
            throw InvalidInput(fmt::format("{}: line {}: {}.", name_, error.line, error.text),
                               {{"", "$", error.text}});
        }
        if (!json_is_object(root_.get())) {
            fail("$", "must be an object such as {\"placements\": [\"home-top\"]}");
        }
    }

    RequestFile read() {
        check_members();
        RequestFile request;
        request.placements = texts(json_object_get(root_.get(), "placements"), "$.placements");
        if (request.placements.empty() || request.placements.size() > kMaxPage) {
            fail("$.placements", fmt::format("must name 1 to {} placements, not {}", kMaxPage,
                                             request.placements.size()));
        }
        request.device = device();
        request.geo = geo();
        request.language = language();
        request.url = text("url");
        request.session = text("session");
        read_keys(request);
        return request;
    }

private:
    [[noreturn]] void fail(std::string_view path, std::string_view what) const {
        throw InvalidInput(fmt::format("{}: {}: {}.", name_, path, what),
                           {{"", std::string(path), std::string(what)}});
    }

    void check_members() const {
        const char* key = nullptr;
        json_t* value = nullptr;
        json_object_foreach(root_.get(), key, value) {
            if (std::find(kMembers.begin(), kMembers.end(), key) != kMembers.end()) {
                continue;
            }
            const std::string best = nearest(key, kMembers);
            const std::string advice =
                best.empty() ? fmt::format("known keys: {}", fmt::join(kMembers, ", "))
                             : fmt::format("did you mean \"{}\"?", best);
            const std::string fault = fmt::format("unknown key \"{}\": {}{}", printable(key),
                                                  advice, best.empty() ? "." : "");
            throw InvalidInput(fmt::format("{}: $: {}", name_, fault), {{"", "$", fault}});
        }
    }

    std::string one_text(const json_t* json, const std::string& path) const {
        if (!json_is_string(json)) {
            fail(path, "must be a string");
        }
        return {json_string_value(json), json_string_length(json)};
    }

    // A string, or a list of them.
    std::vector<std::string> texts(const json_t* json, const std::string& path) const {
        if (json == nullptr) {
            return {};
        }
        if (!json_is_array(json)) {
            if (!json_is_string(json)) {
                fail(path, "must be a string or a list of strings");
            }
            return {one_text(json, path)};
        }
        std::vector<std::string> list;
        for (size_t i = 0; i < json_array_size(json); i++) {
            list.push_back(one_text(json_array_get(json, i), fmt::format("{}[{}]", path, i)));
        }
        return list;
    }

    // Of a member that may be missing or null.
    std::string text(const char* member) const {
        const json_t* json = json_object_get(root_.get(), member);
        return json == nullptr || json_is_null(json) ? std::string()
                                                     : one_text(json, fmt::format("$.{}", member));
    }

    Device device() const {
        const std::string name = text("device");
        if (name.empty()) {
            return device_of(text("user_agent"));
        }
        text("user_agent");
        const auto device = named<Device>(name);
        if (!device) {
            fail("$.device", fmt::format("must be one of {}, not \"{}\"",
                                         fmt::join(Names<Device>::list, ", "), printable(name)));
        }
        return *device;
    }

    std::string geo() const {
        const std::string said = text("geo");
        const auto geo = catalog::parse_geo(said);
        if (!said.empty() && !geo) {
            fail("$.geo",
                 fmt::format("must be a code such as US or US-CA, not \"{}\"", printable(said)));
        }
        return geo.value_or("");
    }

    std::string language() const {
        const std::string said = text("language");
        const auto language = catalog::parse_language(said);
        if (!said.empty() && !language) {
            fail("$.language",
                 fmt::format("must be a tag such as en or en-US, not \"{}\"", printable(said)));
        }
        return language.value_or("");
    }

    void read_keys(RequestFile& request) const {
        json_t* keys = json_object_get(root_.get(), "keys");
        if (keys == nullptr) {
            return;
        }
        if (!json_is_object(keys)) {
            fail("$.keys", "must be an object such as {\"section\": [\"sports\"]}");
        }
        const char* name = nullptr;
        json_t* values = nullptr;
        json_object_foreach(keys, name, values) {
            for (const auto& value : texts(values, fmt::format("$.keys.{}", printable(name)))) {
                request.keys.emplace_back(name, value);
            }
        }
        if (request.keys.size() > kMaxKeys) {
            fail("$.keys",
                 fmt::format("must have at most {} values, not {}", kMaxKeys, request.keys.size()));
        }
    }

    std::string name_;
    Json root_;
};

}  // namespace

RequestFile parse_request(std::string_view text, const std::string& name) {
    return Reader(text, name).read();
}

RequestFile read_request(const std::string& path) {
    return parse_request(read_input(path), shown_name(path));
}

}  // namespace ads::admin
