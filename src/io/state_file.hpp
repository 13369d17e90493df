// The state file: ledger/state on disk.
#pragma once

#include <cstddef>
#include <string>

#include "io/mapped_file.hpp"
#include "ledger/state.hpp"

namespace ads {

class StateFile {
public:
    // Opens or makes FOLDER/state with room for `dedupe_bytes` of dedupe entries.
    // False with a sentence in `error`; what else is worth telling is in `notice`.
    bool open(const std::string& folder, size_t dedupe_bytes, std::string& error,
              std::string& notice);

    // Makes room for so many slots; the mapping stays where it is.
    bool reserve(uint64_t slots) noexcept;

    // Held while slots are given out. It keeps out who opened the file apart:
    // another master, as in a binary upgrade; within one, the zone does.
    void lock() noexcept;
    void unlock() noexcept;

    State state() const noexcept { return state_; }

    // Whether open() has made it: it knows nothing of what was before.
    bool fresh() const noexcept { return file_.fresh(); }

private:
    int locking_fd() const noexcept { return locked_ ? locked_.get() : file_.fd(); }

    MappedFile file_;
    State state_;
    Fd locked_;                  // another description of the file, of
    pid_t locking_process_ = 0;  // this process
};

}  // namespace ads
