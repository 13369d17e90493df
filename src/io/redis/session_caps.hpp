// The frequency caps of a fleet in Redis: a hash for each session, with a field for each capped
// object that it was shown. A field has the times of the last serves: four bytes each, Unix seconds
// with the highest byte first, and two that tell serves of one second apart.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/siphash.hpp"
#include "core/decide/plan.hpp"
#include "io/redis_script.hpp"
#include "ledger/ledger.hpp"

namespace ads {

// Notes a serve of the first candidate of each placement that is under all its caps, and answers
// with their numbers, from 1; 0: there is none.
const RedisScript& take_caps_script() noexcept;

// Takes notes back.
const RedisScript& release_caps_script() noexcept;

// A note of a serve, to be written again on a server that may not have it.
struct NotedServe {
    uint32_t time = 0;       // Unix seconds
    uint32_t arguments = 0;  // their number
    uint16_t slot = 0;       // of its key, in a cluster
    std::string text;        // of the arguments, as bytes of a command
};

// Appends the command that writes it, if it is not there.
void append_note(std::string& out, const NotedServe& serve);

// The key of a session: a keyed hash of its id, the same on all nodes with this key.
std::string session_key(std::string_view prefix, const SipKey& key, std::string_view session);

// What is asked for in one call, and what is needed to take it back.
class AskedCaps {
public:
    struct Candidate {
        uint32_t group;
        uint32_t creative;
        uint32_t first;  // of its fields
        uint32_t count;
    };

    AskedCaps(std::string key, uint32_t now, uint16_t tag) noexcept
        : key_(std::move(key)),
          now_(now),
          tag_{static_cast<char>(tag >> 8), static_cast<char>(tag)} {}

    // Adds the candidates of the plan; the ledger tells their caps.
    void add(const Plan& plan, const Ledger& ledger);

    const std::string& key() const noexcept { return key_; }

    // The number of placements, which is that of the numbers in the reply.
    size_t placements() const noexcept { return ends_.size(); }

    // The candidate that the reply names; nullptr if it names none of them.
    const Candidate* granted(size_t placement, int64_t number) const noexcept;

    // One that was asked for; its fields are those of all with the same creative.
    const Candidate* find(uint32_t group, uint32_t creative) const noexcept;

    // Appends the commands. With `whole` the script's text is sent, for a server that does not know
    // it.
    void append_take(std::string& out, bool whole) const;
    void append_release(std::string& out, const Candidate& candidate, bool whole) const;

    NotedServe note(const Candidate& candidate) const;

private:
    std::string_view field(uint32_t i) const noexcept {
        return std::string_view(text_).substr(fields_[i].begin, fields_[i].size);
    }

    struct Field {
        uint32_t begin;
        uint32_t size;
    };

    std::string key_;
    uint32_t now_;
    std::array<char, 2> tag_;
    uint32_t life_ = 0;  // seconds
    std::string text_;   // of the arguments
    std::vector<Field> arguments_;
    std::vector<Field> fields_;
    std::vector<Field> kept_;  // of each field: how many times
    std::vector<Candidate> candidates_;
    std::vector<uint32_t> ends_;  // of the candidates of each placement

    Field put(std::string_view text);
    void argument(uint64_t number);
};

}  // namespace ads
