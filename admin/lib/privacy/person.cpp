#include "lib/privacy/person.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/token/pseudonym.hpp"
#include "io/file.hpp"
#include "io/process.hpp"
#include "io/spool.hpp"
#include "ledger/state.hpp"
#include "lib/base/failure.hpp"

namespace ads::admin {

namespace {

constexpr std::string_view kOpen = ".open";
constexpr std::string_view kSegment = ".seg";

[[noreturn]] void cannot(const char* what, const std::string& path, int error) {
    throw Failure(Exit::failed, fmt::format("cannot {} {}: {}.", what, path, std::strerror(error)));
}

// Opens a file in a folder of the worker user, one in a folder inside it as well.
Fd open_in(const std::string& folder, const std::string& path, int flags) {
    return open_inside(folder, std::string_view(path).substr(folder.size() + 1), flags);
}

std::vector<std::string> files_in(const std::string& folder, bool must_be, int flags = 0) {
    Fd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | flags));
    DIR* dir = fd ? fdopendir(fd.release()) : nullptr;
    if (dir == nullptr) {
        if (!must_be && errno == ENOENT) {
            return {};
        }
        cannot("read", folder, errno);
    }
    std::vector<std::string> files;
    while (const dirent* entry = readdir(dir)) {
        if (entry->d_name[0] != '.') {
            files.push_back(folder + "/" + entry->d_name);
        }
    }
    closedir(dir);
    std::sort(files.begin(), files.end());
    return files;
}

// Segments, and what was put into quarantine. A worker may rename its own meanwhile, so
// that a name may come to nothing: the file is then in the list of the next look.
std::vector<std::string> spool_files(const std::string& folder) {
    std::vector<std::string> files;
    for (const auto& path : files_in(folder, true)) {
        if (path.ends_with(kOpen) || path.ends_with(kSegment)) {
            files.push_back(path);
        }
    }
    for (auto& path : files_in(folder + "/quarantine", false, O_NOFOLLOW)) {
        files.push_back(std::move(path));
    }
    return files;
}

// ---- one file ----

class Rewriter {
public:
    Rewriter(const std::string& folder, const std::string& path, const Person& person,
             SpoolErased& erased)
        : folder_(folder), path_(path), person_(person), erased_(erased) {}

    void run() {
        fd_ = open_in(folder_, path_, O_RDWR);
        if (!fd_ && errno == ENOENT && path_.ends_with(kOpen)) {
            fd_ = open_in(folder_, closed_path(path_), O_RDWR);
        }
        if (!fd_) {
            if (errno == ENOENT) {
                return;  // shipped meanwhile
            }
            cannot("open", path_, errno);
        }
        read();
        records();
        if (changed_ && fdatasync(fd_.get()) != 0) {
            cannot("write", path_, errno);
        }
    }

private:
    bool growing() const {
        return path_.ends_with(kOpen) && process_alive(segment_name(path_).writer);
    }

    // By the descriptor: the name may change at any time.
    void read() {
        struct stat info;
        if (fstat(fd_.get(), &info) != 0) {
            cannot("stat", path_, errno);
        }
        text_.resize(static_cast<size_t>(info.st_size));
        size_t size = 0;
        while (size < text_.size()) {
            const ssize_t got = pread(fd_.get(), text_.data() + size, text_.size() - size,
                                      static_cast<off_t>(size));
            if (got < 0) {
                cannot("read", path_, errno);
            }
            if (got == 0) {
                break;
            }
            size += static_cast<size_t>(got);
        }
        text_.resize(size);
    }

    // Those of the person are changed in place: their sizes stay, so that whoever reads
    // the segment at this moment finds its way.
    void records() {
        std::vector<std::pair<size_t, size_t>> found;
        size_t end = 0;  // of what a worker does not write any more
        each_piece(
            text_,
            [&](const Event& event, size_t at, size_t size) {
                end = at + size;
                if (person_.is(event)) {
                    found.emplace_back(at, size);
                }
            },
            [&](size_t at, size_t size) { raw(at, size); });
        for (const auto& [at, size] : found) {
            erase_person({text_.data() + at, size});
            write(at, size);
            erased_.events++;
        }
        // Behind the last whole record a living worker is about to write.
        if (!growing()) {
            raw(end, text_.size() - end);
        }
    }

    // What nobody can read as records may still be read by people. Behind a session
    // stands its user.
    void raw(size_t from, size_t size) {
        auto names = person_.sessions();
        names.insert(names.end(), person_.users.begin(), person_.users.end());
        for (const auto& name : names) {
            for (size_t at = from; (at = text_.find(name, at)) < from + size;) {
                const bool user = is_session(std::string_view(text_).substr(
                    std::min(at + name.size(), text_.size()), kPseudonymChars));
                const size_t length =
                    std::min(name.size() + (user ? kPseudonymChars : 0), from + size - at);
                std::fill_n(text_.begin() + static_cast<ptrdiff_t>(at), length, '0');
                write(at, length);
                erased_.places++;
                at += length;
            }
        }
    }

    // In one write.
    void write(size_t at, size_t size) {
        if (pwrite(fd_.get(), text_.data() + at, size, static_cast<off_t>(at)) !=
            static_cast<ssize_t>(size)) {
            cannot("write", path_, errno);
        }
        changed_ = true;
    }

    const std::string& folder_;
    const std::string& path_;
    const Person& person_;
    SpoolErased& erased_;
    Fd fd_;
    std::string text_;
    bool changed_ = false;
};

// ---- mapped files ----

class Mapped {
public:
    // Not there: empty.
    Mapped(const std::string& folder, const std::string& path, bool writable) {
        const Fd fd = open_in(folder, path, writable ? O_RDWR : O_RDONLY);
        struct stat info;
        if (!fd) {
            if (errno == ENOENT) {
                return;
            }
            cannot("open", path, errno);
        }
        if (fstat(fd.get(), &info) != 0) {
            cannot("stat", path, errno);
        }
        size_ = static_cast<size_t>(info.st_size);
        if (size_ == 0) {
            return;
        }
        memory_ = mmap(nullptr, size_, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED,
                       fd.get(), 0);
        if (memory_ == MAP_FAILED) {
            memory_ = nullptr;
            cannot("map", path, errno);
        }
    }
    ~Mapped() {
        if (memory_ != nullptr) {
            munmap(memory_, size_);
        }
    }
    Mapped(const Mapped&) = delete;
    Mapped& operator=(const Mapped&) = delete;

    explicit operator bool() const noexcept { return memory_ != nullptr; }
    std::byte* data() const noexcept { return static_cast<std::byte*>(memory_); }
    size_t size() const noexcept { return size_; }
    int sync() const noexcept { return msync(memory_, size_, MS_SYNC); }

private:
    void* memory_ = nullptr;
    size_t size_ = 0;
};

}  // namespace

// ---- who ----

bool Person::is(const Event& event) const {
    if (!session.empty() && event.session == session) {
        return true;
    }
    return std::find(users.begin(), users.end(), event.user) != users.end() ||
           (event.user.empty() && linked.contains(std::string(event.session)));
}

std::vector<std::string> Person::sessions() const {
    std::vector<std::string> all(linked.begin(), linked.end());
    if (!session.empty()) {
        all.push_back(session);
    }
    return all;
}

void Person::link(const Event& event) {
    if (is_session(event.session) &&
        std::find(users.begin(), users.end(), event.user) != users.end()) {
        linked.emplace(event.session);
    }
}

// ---- the spool ----

void read_spool(const std::string& folder, const Person& person,
                const std::function<void(const Event&)>& see) {
    for (const auto& path : spool_files(folder)) {
        std::string text;
        int error = read_own_file(path, text);
        if (error == ENOENT && path.ends_with(kOpen)) {
            error = read_own_file(closed_path(path), text);
        }
        if (error != 0 && error != ENOENT) {
            cannot("read", path, error);
        }
        each_event(text, [&](const Event& event) {
            if (person.is(event)) {
                see(event);
            }
        });
    }
}

SpoolErased erase_in_spool(const std::string& folder, const Person& person) {
    SpoolErased erased;
    for (const auto& path : spool_files(folder)) {
        Rewriter(folder, path, person, erased).run();
    }
    return erased;
}

// ---- the state folder ----

void each_in_state(const std::string& folder, const Person& person,
                   const std::function<bool(const Frequency::Seen&)>& see) {
    const std::string path = folder + "/state";
    const Mapped state(folder, path, false);
    if (!state) {
        throw Failure(Exit::failed,
                      fmt::format("there is no {}: is {} the folder of ads_state?", path, folder));
    }
    if (const char* why = State::check({state.data(), state.size()}, state.size());
        why != nullptr) {
        throw Failure(Exit::bad_input, fmt::format("cannot use {}: {}.", path, why));
    }
    const std::string table = folder + "/frequency";
    const Mapped memory(folder, table, true);
    if (!memory) {
        return;
    }
    if (const char* why = Frequency::check({memory.data(), memory.size()}); why != nullptr) {
        throw Failure(Exit::bad_input, fmt::format("cannot use {}: {}.", table, why));
    }
    Frequency frequency = Frequency::attach(memory.data());
    const SipKey& key = reinterpret_cast<const StateHead*>(state.data())->session_key;
    for (const auto& session : person.sessions()) {
        auto* context = const_cast<std::function<bool(const Frequency::Seen&)>*>(&see);
        frequency.each_of(
            siphash(key, session), context, [](void* given, const Frequency::Seen& seen) {
                return (*static_cast<std::function<bool(const Frequency::Seen&)>*>(given))(seen);
            });
    }
    if (memory.sync() != 0) {
        cannot("write", table, errno);
    }
}

std::vector<std::string> set_aside(const std::string& folder) {
    std::vector<std::string> files;
    for (auto& path : files_in(folder, true)) {
        if (path.find(".bad-") != path.npos) {
            files.push_back(std::move(path));
        }
    }
    return files;
}

}  // namespace ads::admin
