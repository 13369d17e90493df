#include "io/redis/resp.hpp"

#include <hiredis/read.h>

#include <algorithm>
#include <charconv>

namespace ads {

namespace {

void append_number(std::string& out, char kind, size_t number) {
    char digits[24];
    digits[0] = kind;
    char* end = std::to_chars(digits + 1, digits + sizeof digits - 2, number).ptr;
    *end++ = '\r';
    *end++ = '\n';
    out.append(digits, end);
}

}  // namespace

void append_command(std::string& out, std::span<const std::string_view> arguments) {
    append_count(out, arguments.size());
    for (const auto argument : arguments) {
        append_argument(out, argument);
    }
}

void append_count(std::string& out, size_t arguments) {
    append_number(out, '*', arguments);
}

void append_argument(std::string& out, std::string_view argument) {
    append_number(out, '$', argument.size());
    out.append(argument);
    out.append("\r\n");
}

// hiredis calls these in the order in which the parts come. What they return is only compared with
// nullptr, which ends the reader.
struct RespReader::Functions {
    static void* added(const redisReadTask* task, RespType type, int64_t integer,
                       std::string_view text) {
        auto* reader = static_cast<RespReader*>(task->privdata);
        return reader->add(type, integer, text) ? reader : nullptr;
    }
    static void* string(const redisReadTask* task, char* text, size_t size) {
        const RespType type = task->type == REDIS_REPLY_ERROR    ? RespType::error
                              : task->type == REDIS_REPLY_STATUS ? RespType::status
                                                                 : RespType::text;
        return added(task, type, 0, {text, size});
    }
    static void* array(const redisReadTask* task, int elements) {
        return added(task, RespType::array, elements, {});
    }
    static void* integer(const redisReadTask* task, long long value) {
        return added(task, RespType::integer, value, {});
    }
    static void* nil(const redisReadTask* task) { return added(task, RespType::nil, 0, {}); }
    static void free(void*) {}

    static inline redisReplyObjectFunctions all{string, array, integer, nil, free};
};

RespReader::RespReader(size_t most_bytes, size_t most_nodes) noexcept
    : most_bytes_(most_bytes),
      most_nodes_(most_nodes),
      reader_(redisReaderCreateWithFunctions(&Functions::all), redisReaderFree) {
    if (reader_ != nullptr) {
        reader_->privdata = this;
    }
}

RespReader::~RespReader() = default;

bool RespReader::add(RespType type, int64_t integer, std::string_view text) noexcept {
    const bool too_large = nodes_.size() == most_nodes_ ||
                           text.size() > most_bytes_ - texts_.size() ||
                           (type == RespType::array && integer > static_cast<int64_t>(most_nodes_));
    if (too_large) {
        return false;
    }
    nodes_.push_back({type, integer, texts_.size(), text.size()});
    texts_.append(text);
    return true;
}

bool RespReader::feed(std::string_view bytes) noexcept {
    broken_ = broken_ || reader_ == nullptr ||
              bytes.size() > most_bytes_ - std::min(most_bytes_, reader_->len - reader_->pos) ||
              redisReaderFeed(reader_.get(), bytes.data(), bytes.size()) != 0;
    return !broken_;
}

RespReader::Result RespReader::next() noexcept {
    if (broken_) {
        return Result::broken;
    }
    // A reply that has begun goes on where it was.
    if (reader_->ridx == -1) {
        nodes_.clear();
        texts_.clear();
    }
    void* reply = nullptr;
    if (redisReaderGetReply(reader_.get(), &reply) != 0) {
        broken_ = true;
        return Result::broken;
    }
    return reply == nullptr ? Result::more : Result::reply;
}

}  // namespace ads
