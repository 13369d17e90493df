#include "core/catalog/reader.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <utility>

#include "core/base/edit_distance.hpp"
#include "core/catalog/limits.hpp"

namespace ads::catalog {
namespace {

bool plain_key(std::string_view key) {
    return !key.empty() && key.size() <= 64 && std::all_of(key.begin(), key.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '_';
    });
}

template <class T>
std::optional<T> as(Json value) {
    T out;
    return value.get(out) == simdjson::SUCCESS ? std::optional(out) : std::nullopt;
}

std::string in_words(double value) {
    char text[40];
    std::snprintf(text, sizeof(text), "%.15g", value);
    return text;
}

std::string unknown_key(std::string_view key, const std::string_view* known, size_t count) {
    std::string message = "unknown key " + quoted(key);
    std::string_view best;
    size_t best_distance = 3;
    for (size_t i = 0; i < count && key.size() <= 32; i++) {
        const size_t d = edit_distance(key, known[i]);
        if (d < best_distance && d * 2 < known[i].size() + 1) {
            best_distance = d;
            best = known[i];
        }
    }
    if (!best.empty()) {
        return message + "; did you mean " + quoted(best) + "?";
    }
    return message + "; known here: " + joined(known, count);
}

}  // namespace

std::string text_of(const Path& path) {
    if (path.parent == nullptr) {
        return "$";
    }
    std::string text = text_of(*path.parent);
    if (path.key.data() == nullptr) {
        return text + "[" + std::to_string(path.index) + "]";
    }
    if (plain_key(path.key)) {
        return text.append(".").append(path.key);
    }
    return text + "[" + quoted(path.key) + "]";
}

void Errors::add(const Path& path, std::string message) {
    if (list_.size() < limit_) {
        list_.push_back({text_of(path), std::move(message)});
    } else {
        more_++;
    }
}

Faults Errors::take() {
    return {std::move(list_), more_};
}

std::string quoted(std::string_view text) {
    constexpr size_t kShown = 60;
    size_t end = text.size();
    if (end > kShown) {
        end = kShown;
        while (end > 0 && (static_cast<uint8_t>(text[end]) & 0xc0) == 0x80) {
            end--;  // not in the middle of a character
        }
    }
    std::string out = "\"";
    for (const char c : text.substr(0, end)) {
        if (c == '"' || c == '\\') {
            out.append({'\\', c});
        } else if (static_cast<uint8_t>(c) < 0x20 || c == 0x7f) {
            char escape[8];
            std::snprintf(escape, sizeof(escape), "\\u%04x", static_cast<uint8_t>(c));
            out += escape;
        } else {
            out += c;
        }
    }
    return out + (end < text.size() ? "…\"" : "\"");
}

std::string described(Json value) {
    using Type = simdjson::dom::element_type;
    switch (value.type()) {
        case Type::OBJECT:
            return "an object";
        case Type::ARRAY:
            return "an array";
        case Type::STRING:
            return quoted(*as<std::string_view>(value));
        case Type::INT64:
            return std::to_string(*as<int64_t>(value));
        case Type::UINT64:
            return std::to_string(*as<uint64_t>(value));
        case Type::DOUBLE:
            return in_words(*as<double>(value));
        case Type::BOOL:
            return *as<bool>(value) ? "true" : "false";
        case Type::NULL_VALUE:
            return "null";
    }
    return "?";
}

std::string joined(const std::string_view* names, size_t count) {
    std::string out;
    for (size_t i = 0; i < count; i++) {
        out.append(i == 0 ? "" : ", ").append(names[i]);
    }
    return out;
}

std::optional<std::string_view> Node::text() const {
    return json ? as<std::string_view>(*json) : std::nullopt;
}

std::optional<int64_t> Node::integer() const {
    return json ? as<int64_t>(*json) : std::nullopt;
}

std::optional<double> Node::number() const {
    return json ? as<double>(*json) : std::nullopt;
}

void Node::expected(std::string_view what) const {
    fail(std::string("must be ").append(what).append(", not ") + described(*json));
}

Object::Object(const Node& node) : node_(node) {
    if (const auto object = node.json ? as<simdjson::dom::object>(*node.json) : std::nullopt) {
        valid_ = true;
        size_ = object->size();
        begin_ = next_ = object->begin();
        end_ = object->end();
    } else if (node.present()) {
        node.expected("an object");
    }
}

std::optional<Json> Object::find(std::string_view key) {
    assert(known_count_ < kMaxKeys);
    known_[known_count_++] = key;
    const auto look = [&](Iterator at, Iterator end) -> std::optional<Json> {
        for (; at != end; ++at) {
            if (at.key_equals(key)) {
                found_++;
                next_ = at;
                ++next_;
                return at.value();
            }
        }
        return std::nullopt;
    };
    const Iterator next = next_;
    const auto found = look(next, end_);
    return found ? found : look(begin_, next);
}

Node Object::get(std::string_view key) {
    const auto value = find(key);
    return {value && value->is_null() ? std::nullopt : value, {&node_.path, key}, node_.errors};
}

Node Object::need(std::string_view key) {
    Node member = get(key);
    if (valid_ && !member.present()) {
        member.fail("is required");
    }
    return member;
}

void Object::done() const {
    if (found_ == size_) {
        return;
    }
    const auto known_end = known_.begin() + known_count_;
    each([&](std::string_view key, const Node&) {
        if (std::find(known_.begin(), known_end, key) == known_end) {
            node_.fail(unknown_key(key, known_.data(), known_count_));
        }
    });
}

Array::Array(const Node& node) : node_(node) {
    if (const auto array = node.json ? as<simdjson::dom::array>(*node.json) : std::nullopt) {
        valid_ = true;
        size_ = array->size();
        begin_ = array->begin();
        end_ = array->end();
    } else if (node.present()) {
        node.expected("an array");
    }
}

std::optional<std::string_view> read_text(const Node& node) {
    if (!node.present()) {
        return std::nullopt;
    }
    const auto text = node.text();
    if (!text) {
        node.expected("a string");
        return std::nullopt;
    }
    if (text->find('\0') != std::string_view::npos) {
        node.fail("must not contain the character \\u0000");
        return std::nullopt;
    }
    return text;
}

std::optional<int64_t> read_integer(const Node& node, int64_t low, int64_t high) {
    if (!node.present()) {
        return std::nullopt;
    }
    const auto value = node.integer();
    if (!value || *value < low || *value > high) {
        node.expected("an integer from " + std::to_string(low) + " to " + std::to_string(high));
        return std::nullopt;
    }
    return value;
}

std::optional<double> read_number(const Node& node) {
    if (!node.present()) {
        return std::nullopt;
    }
    const auto value = node.number();
    if (!value) {
        node.expected("a number");
    }
    return value;
}

std::optional<MicroCents> read_money(const Node& node) {
    if (!node.present()) {
        return std::nullopt;
    }
    const double cents = node.number().value_or(-1);
    if (!(cents >= 0 && cents <= kMaxCents)) {
        node.expected("an amount of cents from 0 to " + std::to_string(kMaxCents));
        return std::nullopt;
    }
    if (const auto whole = node.integer()) {
        return *whole * kMicroPerCent;
    }
    // A double is the nearest one to what was written. It was written with at
    // most six decimals if the nearest double to the rounded amount is the same.
    // Beyond 2^53 micro-cents doubles are farther apart than that, and all pass.
    const auto micro = static_cast<MicroCents>(std::llround(cents * 1e6));
    if (micro < (MicroCents{1} << 53) && static_cast<double>(micro) / 1e6 != cents) {
        node.expected("an amount of cents with at most 6 decimals");
        return std::nullopt;
    }
    return micro;
}

std::optional<size_t> read_choice(const Node& node, const std::string_view* names, size_t count) {
    if (!node.present()) {
        return std::nullopt;
    }
    if (const auto text = node.text()) {
        const auto* found = std::find(names, names + count, *text);
        if (found != names + count) {
            return static_cast<size_t>(found - names);
        }
    }
    node.expected("one of " + joined(names, count));
    return std::nullopt;
}

}  // namespace ads::catalog
