#include "io/frequency_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <ctime>

namespace ads {

namespace {

std::string sentence(const std::string& what, const std::string& path) {
    return what + " \"" + path + "\": " + std::strerror(errno);
}

}  // namespace

bool FrequencyFile::map(size_t size) noexcept {
    void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0);
    if (memory == MAP_FAILED) {
        return false;
    }
    memory_ = static_cast<std::byte*>(memory);
    mapped_ = size;
    return true;
}

void FrequencyFile::unmap() noexcept {
    if (memory_ != nullptr) {
        munmap(memory_, mapped_);
        memory_ = nullptr;
    }
    frequency_ = Frequency();
}

// Made under another name and then moved: a file named `frequency` is whole.
bool FrequencyFile::create(const std::string& path, uint64_t bytes, std::string& error) {
    const std::string draft = path + ".new";
    unlink(draft.c_str());
    fd_ = Fd(::open(draft.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!fd_) {
        error = sentence("cannot create", draft);
        return false;
    }
    const size_t size = Frequency::size(bytes);
    // Space is taken now: a full disk must not kill a worker in a write to memory.
    errno = posix_fallocate(fd_.get(), 0, static_cast<off_t>(size));
    if (errno != 0) {
        error = sentence("cannot reserve " + std::to_string(size) + " bytes for", draft);
        unlink(draft.c_str());
        return false;
    }
    if (!map(size)) {
        error = sentence("cannot map", draft);
        return false;
    }
    Frequency::format({memory_, size}, bytes);
    if (rename(draft.c_str(), path.c_str()) != 0) {
        error = sentence("cannot name", path);
        return false;
    }
    return true;
}

bool FrequencyFile::open(const std::string& folder, uint64_t bytes, std::string& error,
                         std::string& notice) {
    unmap();
    if (mkdir(folder.c_str(), 0750) != 0 && errno != EEXIST) {
        error = sentence("cannot make the folder", folder);
        return false;
    }
    const std::string path = folder + "/frequency";
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
        if (size >= sizeof(FrequencyHead)) {
            if (!map(size)) {
                error = sentence("cannot map", path);
                return false;
            }
            why = Frequency::check({memory_, size});
        }
        if (why == nullptr) {
            const uint64_t had = reinterpret_cast<FrequencyHead*>(memory_)->bytes;
            if (had != bytes) {
                notice = "\"" + path + "\" keeps its " + std::to_string(had) +
                         " bytes for frequency caps: to resize, stop nginx and move the file away";
            }
        } else {
            unmap();
            const std::string aside = path + ".bad-" + std::to_string(std::time(nullptr));
            if (rename(path.c_str(), aside.c_str()) != 0) {
                error = sentence("cannot set aside", path);
                return false;
            }
            notice = "\"" + path + "\" cannot be used: " + why + "; it is now \"" + aside +
                     "\" and frequency caps start anew";
            fd_.reset();
        }
    }
    if (!fd_ && !create(path, bytes, error)) {
        return false;
    }
    frequency_ = Frequency::attach(memory_);
    return true;
}

bool FrequencyFile::without_file(uint64_t bytes) noexcept {
    const size_t size = Frequency::size(bytes);
    void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        return false;
    }
    memory_ = static_cast<std::byte*>(memory);
    mapped_ = size;
    Frequency::format({memory_, size}, bytes);
    frequency_ = Frequency::attach(memory_);
    return true;
}

}  // namespace ads
