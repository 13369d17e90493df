#include "io/state_file.hpp"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

#include "core/base/hash.hpp"
#include "io/process.hpp"
#include "io/thread.hpp"
#include "ledger/old_state.hpp"

namespace ads {

namespace {

constexpr uint32_t kFirstSlots = 4096;
// So many can be used without mapping anew.
constexpr uint32_t kMaxSlots = 1u << 21;

SipKey random_key() noexcept {
    SipKey key;
    if (getrandom(&key, sizeof key, 0) != static_cast<ssize_t>(sizeof key)) {
        key = {static_cast<uint64_t>(getpid()), static_cast<uint64_t>(std::time(nullptr))};
    }
    return key;
}

}  // namespace

uint32_t random_node() noexcept {
    uint32_t node = 0;
    while (node == 0) {
        if (getrandom(&node, sizeof node, 0) < 0) {
            node = static_cast<uint32_t>(getpid());
        }
    }
    return node;
}

bool StateFile::open(const std::string& folder, size_t dedupe_bytes, std::string& error,
                     std::string& notice) {
    const uint64_t entries = State::dedupe_entries_in(dedupe_bytes);
    const auto has = [](std::span<std::byte> memory) {
        return reinterpret_cast<StateHead*>(memory.data())->dedupe_entries;
    };
    MappedFile::Contents contents;
    contents.what = "counting starts";
    contents.head = sizeof(StateHead);
    contents.size = State::size(entries, kFirstSlots);
    contents.format = [&](std::span<std::byte> memory) {
        State::format(memory, entries, kFirstSlots, random_node(), random_key());
    };
    contents.check = [](std::span<std::byte> memory) {
        return State::check(memory, memory.size());
    };
    contents.reach = [&](std::span<std::byte> memory) {
        return State::size(has(memory), kMaxSlots);
    };
    contents.converted_size = converted_size;
    contents.convert = convert_state;
    if (!file_.open(folder, "state", contents, error, notice)) {
        return false;
    }
    state_ = State::attach(file_.memory());
    if (const uint64_t had = state_.head().dedupe_entries; had != entries) {
        notice = "\"" + folder + "/state\" keeps its " + std::to_string(had * sizeof(DedupeEntry)) +
                 " bytes for dedupe: to resize, stop nginx and move the file away";
    }
    return true;
}

uint64_t StateFile::location() const noexcept {
    struct stat info {};
    if (fstat(file_.fd(), &info) != 0) {
        return 0;
    }
    return fnv1a64(boot_id() + " " + std::to_string(info.st_dev) + " " +
                   std::to_string(info.st_ino));
}

bool StateFile::in_use() const noexcept {
    const uint64_t noted = state_.head().location.load();
    return (noted == 0 || noted == location()) &&
           state_.in_use(static_cast<uint64_t>(monotonic()), process_alive);
}

void StateFile::settle() noexcept {
    auto& noted = state_.head().location;
    const uint64_t here = location();
    if (noted.load() != 0 && noted.load() != here) {
        state_.disown_processes();
    }
    noted.store(here);
}

// Not flock(): processes that were forked share the description of the file.
uint32_t StateFile::lock() noexcept {
    constexpr int kTries = 100;
    constexpr timespec kPause{0, 10'000'000};
    uint32_t holder = 0;
    for (int i = 0; i < kTries; i++) {
        struct flock whole {};
        whole.l_type = F_WRLCK;
        if (fcntl(file_.fd(), F_SETLK, &whole) == 0) {
            return 0;
        }
        if (fcntl(file_.fd(), F_GETLK, &whole) == 0 && whole.l_type != F_UNLCK) {
            holder = static_cast<uint32_t>(whole.l_pid);
        }
        nanosleep(&kPause, nullptr);
    }
    return holder;
}

void StateFile::unlock() noexcept {
    struct flock whole {};
    whole.l_type = F_UNLCK;
    fcntl(file_.fd(), F_SETLK, &whole);
}

bool StateFile::reserve(uint64_t slots) noexcept {
    const uint32_t have = state_.slots();
    if (slots <= have) {
        return true;
    }
    // A tenth to spare, and doubled at least: growing is rare.
    uint64_t wanted = std::max<uint64_t>(slots + slots / 10, uint64_t{have} * 2);
    wanted = std::min<uint64_t>(wanted, kMaxSlots);
    const auto grow = [&](uint64_t to) {
        return file_.grow(State::size(state_.head().dedupe_entries, static_cast<uint32_t>(to)));
    };
    if (wanted < slots) {
        return false;
    }
    if (!grow(wanted)) {
        wanted = slots;  // a disk that is nearly full
        if (!grow(wanted)) {
            return false;
        }
    }
    state_.head().slots.store(static_cast<uint32_t>(wanted), std::memory_order_release);
    return true;
}

}  // namespace ads
