#include "io/mapped_file.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <ctime>

namespace ads {

namespace {

bool fail(std::string& error, const std::string& what, const std::string& path) {
    error = what + " \"" + path + "\": " + std::strerror(errno);
    return false;
}

// A name that nothing has yet.
std::string bad_name(const std::string& path) {
    const std::string name = path + ".bad-" + std::to_string(std::time(nullptr));
    std::string free = name;
    for (int i = 1; access(free.c_str(), F_OK) == 0; i++) {
        free = name + "-" + std::to_string(i);
    }
    return free;
}

}  // namespace

bool MappedFile::map(size_t size) noexcept {
    unmap();
    const int flags = fd_ ? MAP_SHARED : MAP_SHARED | MAP_ANONYMOUS;
    void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, flags, fd_.get(), 0);
    if (memory == MAP_FAILED) {
        return false;
    }
    memory_ = static_cast<std::byte*>(memory);
    mapped_ = size;
    return true;
}

void MappedFile::unmap() noexcept {
    if (memory_ != nullptr) {
        munmap(memory_, mapped_);
        memory_ = nullptr;
    }
}

bool MappedFile::without_file(size_t size) noexcept {
    fd_.reset();
    return map(size);
}

bool MappedFile::grow(size_t size) noexcept {
    // On some file systems a signal would make it fail.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int error = posix_fallocate(fd_.get(), 0, static_cast<off_t>(size));
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    errno = error;
    return error == 0;
}

bool MappedFile::open(const std::string& folder, const std::string& name, const Contents& contents,
                      std::string& error, std::string& notice) {
    unmap();
    fresh_ = false;
    if (mkdir(folder.c_str(), 0750) != 0 && errno != EEXIST) {
        return fail(error, "cannot make the folder", folder);
    }
    const std::string path = folder + "/" + name;
    fd_ = Fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    if (!fd_ && errno != ENOENT) {
        return fail(error, "cannot open", path);
    }
    if (fd_ && !open_old(path, contents, error, notice)) {
        return false;
    }
    return fd_ || create(path, contents, error);
}

// With a file that is no good there is none afterwards.
bool MappedFile::open_old(const std::string& path, const Contents& contents, std::string& error,
                          std::string& notice) {
    struct stat info;
    if (fstat(fd_.get(), &info) != 0) {
        return fail(error, "cannot look at", path);
    }
    const auto size = static_cast<size_t>(info.st_size);
    if (size < contents.head) {
        return set_aside(path, "it is too short", contents, error, notice);
    }
    if (!map(size)) {
        return fail(error, "cannot map", path);
    }
    if (const char* why = contents.check({memory_, size}); why != nullptr) {
        return set_aside(path, why, contents, error, notice);
    }
    if (!map(contents.reach({memory_, size}))) {
        return fail(error, "cannot map", path);
    }
    return true;
}

bool MappedFile::set_aside(const std::string& path, const std::string& why,
                           const Contents& contents, std::string& error, std::string& notice) {
    unmap();
    const std::string aside = bad_name(path);
    if (rename(path.c_str(), aside.c_str()) != 0) {
        return fail(error, "cannot set aside", path);
    }
    notice = "\"" + path + "\" cannot be used: " + why + "; it is now \"" + aside + "\" and " +
             contents.what + " anew";
    fd_.reset();
    return true;
}

// Made under another name and then moved: a file of that name is whole.
bool MappedFile::create(const std::string& path, const Contents& contents, std::string& error) {
    const std::string draft = path + ".new";
    unlink(draft.c_str());
    fd_ = Fd(::open(draft.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!fd_) {
        return fail(error, "cannot create", draft);
    }
    if (!grow(contents.size)) {
        fail(error, "cannot reserve " + std::to_string(contents.size) + " bytes for", draft);
        unlink(draft.c_str());
        return false;
    }
    if (!map(contents.size)) {
        return fail(error, "cannot map", draft);
    }
    contents.format({memory_, contents.size});
    if (!map(contents.reach({memory_, contents.size}))) {
        return fail(error, "cannot map", draft);
    }
    if (rename(draft.c_str(), path.c_str()) != 0) {
        return fail(error, "cannot name", path);
    }
    fresh_ = true;
    return true;
}

}  // namespace ads
