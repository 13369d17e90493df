// Which calls PostgreSQL accepts from a node of a fleet. A state can be copied, restored from an
// older copy, or lost: two machines must not spend the same rights, and a forgotten node must not
// come back.
//
// A state names an instance. It is sealed when a master starts on it, and unsealed by a swap of the
// instance for a new random one, in which only one of several copies succeeds. A call carries the
// next sequence number, stored before it is sent, and a nonce that no copy can have.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

namespace ads::rights {

// What PostgreSQL has of a node.
struct NodeRecord {
    uint64_t instance = 0;  // 0: never heard of
    uint64_t sequence = 0;
    uint64_t nonce = 0;
    bool fenced = false;  // forgotten, or succeeded by another one

    bool operator==(const NodeRecord&) const = default;
};

enum class Admission : uint8_t {
    accepted,
    stale,    // an older call that arrives late, or an older copy of the state: ignored
    refused,  // another instance, a copy, or a forgotten node: it needs a new identity
};

// A call. One that arrives twice is accepted twice: its registers say the same.
inline Admission admit(NodeRecord& node, uint64_t instance, uint64_t sequence,
                       uint64_t nonce) noexcept {
    if (node.fenced || node.instance == 0 || node.instance != instance) {
        return Admission::refused;
    }
    if (sequence < node.sequence) {
        return Admission::stale;
    }
    if (sequence == node.sequence && nonce != node.nonce) {
        return Admission::refused;
    }
    node.sequence = sequence;
    node.nonce = nonce;
    return Admission::accepted;
}

// A swap of the instance, for a state that a master has found.
struct Swap {
    // The instances that PostgreSQL may have: the one of the last answer, and those that processes
    // of this node have asked for without an answer.
    std::span<const uint64_t> known;
    uint64_t next = 0;      // of this process alone, stored before it asks
    uint64_t sequence = 0;  // of the last call in this state
};

// A swap does not increase the sequence: if PostgreSQL has a later one, another copy of the state
// has called since, and this one lacks what was used. Asking again does not change that.
inline Admission unseal(NodeRecord& node, const Swap& swap) noexcept {
    const bool known =
        node.instance == 0 || node.instance == swap.next ||
        std::find(swap.known.begin(), swap.known.end(), node.instance) != swap.known.end();
    if (node.fenced || !known || node.sequence > swap.sequence) {
        return Admission::refused;
    }
    node.instance = swap.next;
    return Admission::accepted;
}

}  // namespace ads::rights
