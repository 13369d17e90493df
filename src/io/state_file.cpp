#include "io/state_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <ctime>

namespace ads {

namespace {

constexpr uint32_t kFirstSlots = 4096;
// The mapping is this long from the start: pages past the end of the file
// become usable when the file grows, without mapping anew.
constexpr uint32_t kMaxSlots = 1u << 21;

std::string sentence(const std::string& what, const std::string& path) {
    return what + " \"" + path + "\": " + std::strerror(errno);
}

SipKey random_key() noexcept {
    SipKey key;
    if (getrandom(&key, sizeof key, 0) != static_cast<ssize_t>(sizeof key)) {
        key = {static_cast<uint64_t>(getpid()), static_cast<uint64_t>(std::time(nullptr))};
    }
    return key;
}

uint32_t random_node() noexcept {
    uint32_t node = 0;
    while (node == 0) {
        if (getrandom(&node, sizeof node, 0) < 0) {
            node = static_cast<uint32_t>(getpid());
        }
    }
    return node;
}

}  // namespace

bool StateFile::map(size_t size) noexcept {
    void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0);
    if (memory == MAP_FAILED) {
        return false;
    }
    memory_ = static_cast<std::byte*>(memory);
    mapped_ = size;
    return true;
}

void StateFile::unmap() noexcept {
    if (memory_ != nullptr) {
        munmap(memory_, mapped_);
        memory_ = nullptr;
    }
}

// Made under another name and then moved: a file named `state` is whole.
bool StateFile::create(const std::string& path, size_t dedupe_bytes, std::string& error) {
    const std::string draft = path + ".new";
    unlink(draft.c_str());
    fd_ = Fd(::open(draft.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!fd_) {
        error = sentence("cannot create", draft);
        return false;
    }
    const uint64_t entries = State::dedupe_entries_in(dedupe_bytes);
    const size_t size = State::size(entries, kFirstSlots);
    // Space is taken now: a full disk must not kill a worker in a write to memory.
    errno = posix_fallocate(fd_.get(), 0, static_cast<off_t>(size));
    if (errno != 0) {
        error = sentence("cannot reserve " + std::to_string(size) + " bytes for", draft);
        unlink(draft.c_str());
        return false;
    }
    if (!map(State::size(entries, kMaxSlots))) {
        error = sentence("cannot map", draft);
        return false;
    }
    fresh_ = true;
    State::format({memory_, size}, entries, kFirstSlots, random_node(), random_key());
    if (rename(draft.c_str(), path.c_str()) != 0) {
        error = sentence("cannot name", path);
        return false;
    }
    return true;
}

bool StateFile::open(const std::string& folder, size_t dedupe_bytes, std::string& error,
                     std::string& notice) {
    if (mkdir(folder.c_str(), 0750) != 0 && errno != EEXIST) {
        error = sentence("cannot make the folder", folder);
        return false;
    }
    const std::string path = folder + "/state";
    fd_ = Fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    if (!fd_ && errno != ENOENT) {
        error = sentence("cannot open", path);
        return false;
    }
    if (fd_) {
        struct stat info;
        if (fstat(fd_.get(), &info) != 0) {
            error = sentence("cannot look at", path);
            return false;
        }
        const auto size = static_cast<size_t>(info.st_size);
        const char* why = "it is too short";
        if (size >= sizeof(StateHead)) {
            if (!map(size)) {
                error = sentence("cannot map", path);
                return false;
            }
            why = State::check({memory_, size}, size);
        }
        if (why == nullptr) {
            const uint64_t entries = reinterpret_cast<StateHead*>(memory_)->dedupe_entries;
            if (entries != State::dedupe_entries_in(dedupe_bytes)) {
                notice = "\"" + path + "\" keeps its " +
                         std::to_string(entries * sizeof(DedupeEntry)) +
                         " bytes for dedupe: to resize, stop nginx and move the file away";
            }
            unmap();
            if (!map(State::size(entries, kMaxSlots))) {
                error = sentence("cannot map", path);
                return false;
            }
        } else {
            unmap();
            std::string aside = path + ".bad-" + std::to_string(std::time(nullptr));
            for (int i = 1; access(aside.c_str(), F_OK) == 0; i++) {
                aside =
                    path + ".bad-" + std::to_string(std::time(nullptr)) + "-" + std::to_string(i);
            }
            if (rename(path.c_str(), aside.c_str()) != 0) {
                error = sentence("cannot set aside", path);
                return false;
            }
            notice = "\"" + path + "\" cannot be used: " + why + "; it is now \"" + aside +
                     "\" and counting starts anew";
            fd_.reset();
        }
    }
    if (!fd_ && !create(path, dedupe_bytes, error)) {
        return false;
    }
    state_ = State::attach(memory_);
    return true;
}

void StateFile::lock() noexcept {
    flock(fd_.get(), LOCK_EX);
}

void StateFile::unlock() noexcept {
    flock(fd_.get(), LOCK_UN);
}

bool StateFile::reserve(uint32_t slots) noexcept {
    const uint32_t have = state_.slots();
    if (slots <= have) {
        return true;
    }
    // A tenth to spare, and doubled at least: growing is rare.
    uint64_t wanted = std::max<uint64_t>(uint64_t{slots} + slots / 10, uint64_t{have} * 2);
    wanted = std::min<uint64_t>(wanted, kMaxSlots);
    const size_t size = State::size(state_.head().dedupe_entries, static_cast<uint32_t>(wanted));
    if (wanted < slots || posix_fallocate(fd_.get(), 0, static_cast<off_t>(size)) != 0) {
        return false;
    }
    state_.head().slots.store(static_cast<uint32_t>(wanted), std::memory_order_release);
    return true;
}

}  // namespace ads
