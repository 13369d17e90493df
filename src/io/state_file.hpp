// The state file: shm/state on disk, mapped by every worker of every
// generation, the old binary's during an upgrade included.
#pragma once

#include <cstddef>
#include <string>

#include "io/file.hpp"
#include "shm/state.hpp"

namespace ads {

class StateFile {
public:
    StateFile() noexcept = default;
    StateFile(const StateFile&) = delete;
    StateFile& operator=(const StateFile&) = delete;
    ~StateFile() { unmap(); }

    // Opens or makes FOLDER/state with room for `dedupe_bytes` of dedupe
    // entries. A file that is not ours, or damaged, is set aside under another
    // name and said in `notice`. False with a sentence in `error`.
    bool open(const std::string& folder, size_t dedupe_bytes, std::string& error,
              std::string& notice);

    // Makes room for so many group slots; the mapping stays where it is.
    bool reserve(uint32_t slots) noexcept;

    // Held while slots are given out. It keeps out who opened the file apart:
    // another master, as in a binary upgrade; within one, the zone does.
    void lock() noexcept;
    void unlock() noexcept;

    State state() const noexcept { return state_; }

    // Whether open() has made it: it knows nothing of what was before.
    bool fresh() const noexcept { return fresh_; }

private:
    bool create(const std::string& path, size_t dedupe_bytes, std::string& error);
    bool map(size_t size) noexcept;
    void unmap() noexcept;

    bool fresh_ = false;
    Fd fd_;
    std::byte* memory_ = nullptr;
    size_t mapped_ = 0;
    State state_;
};

}  // namespace ads
