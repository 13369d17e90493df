// Reads JSON values with their path in the document. An error does not stop it: it is
// recorded with its path, and a default is returned.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "core/base/types.hpp"
#include "core/catalog/json.hpp"
#include "core/catalog/model.hpp"

namespace ads::catalog {

// A step of the path from the root. Steps live on the stack and become text only
// for an error.
struct Path {
    const Path* parent = nullptr;
    std::string_view key = {};  // of an object; without one, an index
    size_t index = 0;
};

std::string text_of(const Path& path);

// Collects errors: the first `limit` in full, the others counted.
class Errors {
public:
    explicit Errors(size_t limit) : limit_(limit) {}

    void add(const Path& path, std::string message);
    size_t count() const { return list_.size() + more_; }
    Faults take();

private:
    size_t limit_;
    std::vector<Error> list_;
    size_t more_ = 0;
};

// Text from the document for a message: quoted, escaped, and shortened.
std::string quoted(std::string_view text);

// A value, as a message names it: "text", 5, null, an object …
std::string described(Json value);

// "a, b, c"
std::string joined(const std::string_view* names, size_t count);

// A value with its path, or the path of an absent value.
struct Node {
    std::optional<Json> json;
    Path path;
    Errors* errors = nullptr;

    bool present() const { return json.has_value(); }
    // The value, if it has that type.
    std::optional<std::string_view> text() const;
    std::optional<int64_t> integer() const;
    std::optional<double> number() const;
    void fail(std::string message) const { errors->add(path, std::move(message)); }
    // "must be …, not …"
    void expected(std::string_view what) const;
};

// The members of a JSON object. Either each is requested by name once, and done() then
// reports unknown and duplicate members; or names are free, and all are iterated.
class Object {
public:
    // Reports a value that is not an object; then all members are absent.
    explicit Object(const Node& node);
    // Its members point back to it.
    Object(const Object&) = delete;
    Object& operator=(const Object&) = delete;

    // An optional member: null is the same as absent.
    Node get(std::string_view key);
    // A required member.
    Node need(std::string_view key);
    void done() const;

    // Calls f(name, member) for each, in order. Reports duplicate names.
    template <class F>
    void each(F f) const {
        std::unordered_set<std::string_view> names;
        for (auto at = begin_; at != end_; ++at) {
            const Node member{at.value(), {&node_.path, at.key()}, node_.errors};
            if (names.insert(at.key()).second) {
                f(at.key(), member);
            } else {
                member.fail("is a duplicate key");
            }
        }
    }

    const Node& node() const { return node_; }
    bool valid() const { return valid_; }
    size_t size() const { return size_; }

private:
    using Iterator = simdjson::dom::object::iterator;

    std::optional<Json> find(std::string_view key);

    // More than any object of the document has.
    static constexpr size_t kMaxKeys = 24;

    Node node_;
    bool valid_ = false;
    size_t size_ = 0;
    Iterator begin_;
    Iterator end_;
    Iterator next_;  // the likely position of the next one
    std::array<std::string_view, kMaxKeys> known_;
    size_t known_count_ = 0;
    size_t found_ = 0;
};

// The items of an array, as nodes; none when absent or (an error) not an array.
class Array {
public:
    explicit Array(const Node& node);
    // Its items point back to it.
    Array(const Array&) = delete;
    Array& operator=(const Array&) = delete;

    bool valid() const { return valid_; }
    size_t size() const { return size_; }

    class Iterator {
    public:
        Node operator*() const {
            return {*at_, {&array_->node_.path, {}, index_}, array_->node_.errors};
        }
        Iterator& operator++() {
            ++at_;
            index_++;
            return *this;
        }
        bool operator!=(const Iterator& other) const { return at_ != other.at_; }

    private:
        friend class Array;
        using At = simdjson::dom::array::iterator;
        Iterator(const Array& array, At at) : array_(&array), at_(at) {}

        const Array* array_;
        At at_;
        size_t index_ = 0;
    };
    Iterator begin() const { return {*this, begin_}; }
    Iterator end() const { return {*this, end_}; }

private:
    Node node_;
    bool valid_ = false;
    size_t size_ = 0;
    Iterator::At begin_;
    Iterator::At end_;
};

// Scalars: empty when absent or invalid; invalid ones are reported.
std::optional<std::string_view> read_text(const Node& node);
std::optional<int64_t> read_integer(const Node& node, int64_t low, int64_t high);
std::optional<double> read_number(const Node& node);
std::optional<MicroCents> read_money(const Node& node);
std::optional<size_t> read_choice(const Node& node, const std::string_view* names, size_t count);

template <class E>
std::optional<E> read_enum(const Node& node) {
    const auto index = read_choice(node, Names<E>::list.data(), Names<E>::list.size());
    return index ? std::optional(static_cast<E>(*index)) : std::nullopt;
}

// Overwrites `out`, which holds the default, if the value is present and valid.
template <class T, class U>
void set(T& out, const std::optional<U>& value) {
    if (value) {
        out = static_cast<T>(*value);
    }
}

}  // namespace ads::catalog
