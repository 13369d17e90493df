// Reading JSON values with their place in the document. Nothing here stops at a
// fault: it is noted with its path, a default is returned, and reading goes on.
#pragma once

#include <jansson.h>

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/catalog/model.hpp"
#include "core/types.hpp"

namespace ads::catalog {

// A step of the way from the root. Steps live on the stack and become text only
// when there is something to complain about.
struct Path {
    const Path* parent = nullptr;
    std::string_view key = {};  // of an object; without one, an index
    size_t index = 0;
};

std::string text_of(const Path& path);

// Where complaints end up: the first `limit` in full, the others counted.
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

// Text from the document for a message: quoted, escaped, and cut when long.
std::string quoted(std::string_view text);

// A value, as a message names it: "text", 5, null, an object …
std::string described(const json_t* value);

// "a, b, c"
std::string joined(const std::string_view* names, size_t count);

// A value and its place. An absent value has no json.
struct Node {
    const json_t* json = nullptr;
    Path path;
    Errors* errors = nullptr;

    bool present() const { return json != nullptr; }
    void fail(std::string message) const { errors->add(path, std::move(message)); }
    // "must be …, not …"
    void expected(std::string_view what) const;
};

// The members of a JSON object. Each member is asked for by name once; done()
// then complains about those that nobody asked for.
class Object {
public:
    // Complains if the value is there but is no object; then all members are absent.
    explicit Object(const Node& node);
    // Its members point back to it.
    Object(const Object&) = delete;
    Object& operator=(const Object&) = delete;

    // An optional member: null is the same as absent.
    Node get(std::string_view key);
    // A member that must be there.
    Node need(std::string_view key);
    void done();

    const Node& node() const { return node_; }
    bool valid() const { return object_ != nullptr; }

private:
    const json_t* find(std::string_view key);

    // More than any object of the document has.
    static constexpr size_t kMaxKeys = 24;

    Node node_;
    const json_t* object_ = nullptr;
    std::array<std::string_view, kMaxKeys> known_;
    size_t known_count_ = 0;
    size_t found_ = 0;
};

// The items of an array; none when absent or (a complaint) something else.
class Array {
public:
    explicit Array(const Node& node);
    Array(const Array&) = delete;
    Array& operator=(const Array&) = delete;

    size_t size() const { return size_; }
    Node at(size_t index) const;

private:
    Node node_;
    size_t size_ = 0;
};

// Scalars: nothing when absent or wrong; wrong ones are complained about.
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

// Overwrites `out`, which holds the default, if the value is there and right.
template <class T, class U>
void set(T& out, const std::optional<U>& value) {
    if (value) {
        out = static_cast<T>(*value);
    }
}

}  // namespace ads::catalog
