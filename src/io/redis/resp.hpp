// The protocol of Redis: commands into bytes, and bytes into replies, of any server: what is read
// is bounded, whatever it claims to be.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

struct redisReader;

namespace ads {

// Appends the command to the bytes to be sent. Its arguments may be appended one after the other
// instead.
void append_count(std::string& out, size_t arguments);
void append_argument(std::string& out, std::string_view argument);
void append_command(std::string& out, std::span<const std::string_view> arguments);

enum class RespType : uint8_t { text, status, error, integer, array, nil };

// A part of a reply. The elements of an array follow it.
struct RespNode {
    RespType type = RespType::nil;
    int64_t integer = 0;  // of an array: the number of its elements
    size_t text = 0;      // where its text begins
    size_t size = 0;
};

class RespReader {
public:
    enum class Result : uint8_t {
        reply,   // there is one
        more,    // it has not all come
        broken,  // this is no reply, or it is larger than it may be
    };

    // A reply has at most so many bytes and parts.
    RespReader(size_t most_bytes, size_t most_nodes) noexcept;
    ~RespReader();
    RespReader(const RespReader&) = delete;

    // False if a reply is longer than it may be.
    bool feed(std::string_view bytes) noexcept;

    // The next reply, until the next call.
    Result next() noexcept;

    std::span<const RespNode> nodes() const noexcept { return nodes_; }
    std::string_view text(const RespNode& node) const noexcept {
        return std::string_view(texts_).substr(node.text, node.size);
    }
    const RespNode& root() const noexcept { return nodes_[0]; }

private:
    struct Functions;

    bool add(RespType type, int64_t integer, std::string_view text) noexcept;

    const size_t most_bytes_;
    const size_t most_nodes_;
    std::unique_ptr<redisReader, void (*)(redisReader*)> reader_;
    std::vector<RespNode> nodes_;
    std::string texts_;
    bool broken_ = false;
};

}  // namespace ads
