#include "ngx/redis/notes.hpp"

#include "ngx/redis/worker_redis.hpp"

namespace ads::ngx {

namespace {

// A cluster takes up to some ten seconds to replace a master, in which nothing is noted.
constexpr ngx_msec_t kKept = 30'000;
constexpr size_t kMostKept = 8192;
// Decisions are not to wait for a thousand notes.
constexpr uint32_t kMostSent = 16;

}  // namespace

class RedisNotes::Call : public RedisCall {
public:
    Call(RedisNotes& notes, uint64_t number) noexcept
        : RedisCall(RedisCommand::release), notes_(notes), number_(number) {
        waits = false;
    }

    void reply(const RespReader& reply) noexcept override {
        if (reply.root().type == RespType::integer && number_ >= notes_.first_ &&
            number_ - notes_.first_ < notes_.entries_.size()) {
            notes_.entries_[number_ - notes_.first_].connection = connection();
        }
        notes_.sent_--;
        notes_.go_on();
        delete this;
    }

    // The next connection will write it.
    void fail() noexcept override {
        notes_.sent_--;
        delete this;
    }

private:
    RedisNotes& notes_;
    const uint64_t number_;
};

void RedisNotes::remove_old() noexcept {
    while (!entries_.empty() &&
           (entries_.size() > kMostKept || ngx_current_msec - entries_.front().added > kKept)) {
        entries_.pop_front();
        first_++;
    }
}

void RedisNotes::add(NotedServe serve, uint32_t connection) noexcept {
    entries_.push_back({std::move(serve), ngx_current_msec, connection});
    remove_old();
    // It was noted just now, also if the connection has gone since.
    if (next_ == first_ + entries_.size() - 1) {
        next_++;
    }
}

void RedisNotes::rewrite() noexcept {
    remove_old();
    next_ = first_;
    go_on();
}

void RedisNotes::go_on() noexcept {
    next_ = std::max(next_, first_);
    while (sent_ < kMostSent && next_ - first_ < entries_.size()) {
        const Entry& entry = entries_[next_ - first_];
        const uint64_t number = next_++;
        const uint32_t connection = client_.connection(entry.serve.slot);
        if (connection == 0 || connection == entry.connection) {
            continue;
        }
        auto* call = new Call(*this, number);
        call->slot = entry.serve.slot;
        append_note(call->bytes, entry.serve);
        sent_++;
        client_.send(call);
    }
}

}  // namespace ads::ngx
