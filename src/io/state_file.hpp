// The state file: ledger/state on disk.
#pragma once

#include <cstddef>
#include <string>

#include "io/mapped_file.hpp"
#include "ledger/state.hpp"

namespace ads {

// Names a node, never 0.
uint32_t random_node() noexcept;

class StateFile {
public:
    // Opens or makes FOLDER/state with room for `dedupe_bytes` of dedupe entries.
    // False with a sentence in `error`; what else is worth telling is in `notice`.
    bool open(const std::string& folder, size_t dedupe_bytes, std::string& error,
              std::string& notice);

    // Makes room for `count` slots; the mapping does not move.
    bool reserve(uint64_t slots) noexcept;

    // Makes the head of the state durable, or all of it.
    bool sync_head() noexcept { return file_.sync(kHeadBytes); }
    bool sync_all() noexcept { return file_.sync_all(); }

    // The lock for assigning slots: during a binary upgrade the keepers of two masters do. Waits
    // for at most a second; returns the pid of the process that holds it, 0: this one.
    uint32_t lock() noexcept;
    void unlock() noexcept;

    State state() const noexcept { return state_; }

    // Whether a process uses it. The processes that a copied or restored state names may be alive
    // as well: they use another file, or belong to an earlier boot.
    bool in_use() const noexcept;
    // Only while it is not in use: notes which file it is.
    void settle() noexcept;

    // Whether open() created it, without earlier counts.
    bool fresh() const noexcept { return file_.fresh(); }

private:
    uint64_t location() const noexcept;

    MappedFile file_;
    State state_;
};

}  // namespace ads
