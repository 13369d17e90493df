// Creatives: their content, and the addresses behind them.
#include <cstdlib>
#include <memory>
#include <new>

#include "core/catalog/parser.hpp"

namespace ads::catalog {
namespace {

constexpr size_t kMaxField = 65536;
constexpr size_t kMaxFields = 100;

struct Free {
    void operator()(char* text) const { std::free(text); }
};

// Compact JSON that can stand inside a <script> element as it is. The characters
// replaced occur only within strings, where an escape means the same.
std::string canonical(const json_t* json) {
    const std::unique_ptr<char, Free> dumped(json_dumps(json, JSON_COMPACT | JSON_PRESERVE_ORDER));
    if (dumped == nullptr) {
        throw std::bad_alloc();
    }
    const std::string_view text(dumped.get());
    std::string out;
    out.reserve(text.size());
    for (size_t i = 0; i < text.size(); i++) {
        const std::string_view three = text.substr(i, 3);
        if (text[i] == '<') {
            out += "\\u003c";
        } else if (text[i] == '>') {
            out += "\\u003e";
        } else if (text[i] == '&') {
            out += "\\u0026";
        } else if (three == "\u2028" || three == "\u2029") {
            out += three == "\u2028" ? "\\u2028" : "\\u2029";
            i += 2;
        } else {
            out += text[i];
        }
    }
    return out;
}

// The strings of a flat object. Returns whether all is well.
bool read_fields(const Node& node, Creative& creative) {
    const size_t before = node.errors->count();
    const size_t count = json_object_size(node.json);
    if (count < 1 || count > kMaxFields) {
        node.fail("must have 1 to " + std::to_string(kMaxFields) + " members, not " +
                  std::to_string(count));
        return false;
    }
    auto* json = const_cast<json_t*>(node.json);  // jansson's iterator only reads
    for (void* i = json_object_iter(json); i != nullptr; i = json_object_iter_next(json, i)) {
        const std::string_view key(json_object_iter_key(i), json_object_iter_key_len(i));
        const Node field{json_object_iter_value(i), {&node.path, key}, node.errors};
        const auto text = read_text(field);
        if (key.empty() || key.size() > kMaxLabel) {
            field.fail("must have a name of 1 to " + std::to_string(kMaxLabel) + " bytes");
        }
        if (text && text->size() > kMaxField) {
            field.fail("must be at most " + std::to_string(kMaxField) + " bytes, not " +
                       std::to_string(text->size()));
        } else if (text) {
            creative.fields.emplace_back(key, *text);
        }
    }
    return node.errors->count() == before;
}

void read_content(const Node& node, std::optional<CreativeType> type, Creative& creative) {
    if (!node.present()) {
        return;
    }
    Object object(node);
    if (!object.valid()) {
        return;
    }
    if (type == CreativeType::image) {
        const Node src = object.need("src");
        if (json_is_string(src.json)) {
            if (Fault fault = image_src_fault(json_string_value(src.json))) {
                src.fail(std::move(*fault));
            }
        }
    }
    if (type == CreativeType::html) {
        const Node markup = object.need("markup");
        if (json_is_string(markup.json) && json_string_length(markup.json) == 0) {
            markup.fail("must not be empty");
        }
    }
    // No object.done(): a creative may carry whatever else its template needs.
    if (read_fields(node, creative)) {
        creative.content = canonical(node.json);
    }
}

void read_url(const Node& node, Fault (*check)(std::string_view), std::string& out) {
    const auto text = read_text(node);
    if (!text) {
        return;
    }
    if (Fault fault = check(*text)) {
        node.fail(std::move(*fault));
    } else {
        out = *text;
    }
}

}  // namespace

void read_creative(const Node& node, Context& context, Place place, Creative& creative) {
    Object object(node);
    const Node id = object.need("id");
    creative.id = read_id(id);
    if (creative.id != 0) {
        const auto [first, fresh] = context.creatives.emplace(creative.id, place);
        if (!fresh) {
            const Place& at = first->second;
            already_used(id, creative.id,
                         "$.campaigns[" + std::to_string(at.campaign) + "].ad_groups[" +
                             std::to_string(at.group) + "].creatives[" +
                             std::to_string(at.creative) + "]");
        }
    }
    read_label(object.get("name"), kMaxName, creative.name);
    const auto type = read_enum<CreativeType>(object.need("type"));
    set(creative.type, type);
    set(creative.status, read_enum<Status>(object.get("status")));
    set(creative.weight, read_integer(object.get("weight"), 0, kMaxWeight));
    read_size(object, creative.width, creative.height);
    read_content(object.need("content"), type, creative);
    read_url(object.need("click_url"), click_url_fault, creative.click_url);
    read_url(object.get("impression_url"), impression_url_fault, creative.impression_url);
    object.done();
}

}  // namespace ads::catalog
