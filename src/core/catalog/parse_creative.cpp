// Creatives: their content, and the addresses behind them.
#include "core/base/bytes.hpp"
#include "core/catalog/parser.hpp"

namespace ads::catalog {
namespace {

// Compact JSON that is safe inside a <script> element.
std::string canonical(const std::vector<std::pair<std::string, std::string>>& fields) {
    size_t most = 2;
    for (const auto& [key, value] : fields) {
        most += 6 * (key.size() + value.size()) + 6;  // the longest escape has six characters
    }
    std::string text(most, '\0');
    Out out(text.data(), text.size());
    char before = '{';
    for (const auto& [key, value] : fields) {
        out.put(before);
        out.put('"');
        out.json(key);
        out.put("\":\"");
        out.json(value);
        out.put('"');
        before = ',';
    }
    out.put('}');
    text.resize(out.size());
    return text;
}

// The strings of a flat object; false on an error.
bool read_fields(const Object& object, Creative& creative) {
    const Node& node = object.node();
    const size_t before = node.errors->count();
    if (object.size() < 1 || object.size() > kMaxFields) {
        node.fail("must have 1 to " + std::to_string(kMaxFields) + " members, not " +
                  std::to_string(object.size()));
        return false;
    }
    object.each([&](std::string_view key, const Node& field) {
        const auto text = read_text(field);
        if (key.empty() || key.size() > kMaxLabel || key.find('\0') != key.npos) {
            field.fail("must have a name of 1 to " + std::to_string(kMaxLabel) +
                       " bytes, without zero bytes");
        }
        if (text && text->size() > kMaxField) {
            field.fail("must be at most " + std::to_string(kMaxField) + " bytes, not " +
                       std::to_string(text->size()));
        } else if (text) {
            creative.fields.emplace_back(key, *text);
        }
    });
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
        if (const auto text = src.text()) {
            if (Fault fault = image_src_fault(*text)) {
                src.fail(std::move(*fault));
            }
        }
    }
    if (type == CreativeType::html || type == CreativeType::tag) {
        const Node markup = object.need("markup");
        if (markup.text() == "") {
            markup.fail("must not be empty");
        }
    }
    // No object.done(): a creative may have other members for its template.
    if (read_fields(object, creative)) {
        creative.content = canonical(creative.fields);
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
        if (const Place* first = context.creatives.put(creative.id, place)) {
            already_used(id, creative.id,
                         "$.campaigns[" + std::to_string(first->campaign) + "].ad_groups[" +
                             std::to_string(first->group) + "].creatives[" +
                             std::to_string(first->creative) + "]");
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
