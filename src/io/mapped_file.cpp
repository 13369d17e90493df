#include "io/mapped_file.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "io/process.hpp"

namespace ads {

namespace {

// The folder belongs to the worker user and root opens the file: no link in it is followed.
constexpr int kOpen = O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;

// A name that nothing has yet.
std::string bad_name(int folder, const std::string& name) {
    const std::string bad = name + ".bad-" + std::to_string(std::time(nullptr));
    std::string free = bad;
    struct stat info;
    for (int i = 1; fstatat(folder, free.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0; i++) {
        free = bad + "-" + std::to_string(i);
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

bool MappedFile::sync(size_t size) noexcept {
    return msync(memory_, size, MS_SYNC) == 0;
}

// What is mapped may reach beyond the file's end.
bool MappedFile::sync_all() noexcept {
    struct stat info;
    return fstat(fd_.get(), &info) == 0 &&
           msync(memory_, std::min(mapped_, static_cast<size_t>(info.st_size)), MS_SYNC) == 0 &&
           fsync(fd_.get()) == 0;
}

bool MappedFile::fail(std::string& error, const std::string& what, const std::string& name) const {
    error = what + " \"" + path(name) + "\": " + std::strerror(errno);
    return false;
}

bool MappedFile::open(const std::string& folder, const std::string& name, const Contents& contents,
                      std::string& error, std::string& notice) {
    unmap();
    fresh_ = false;
    folder_path_ = folder;
    if (mkdir(folder.c_str(), 0750) != 0 && errno != EEXIST) {
        error = "cannot create the folder \"" + folder + "\": " + std::strerror(errno);
        return false;
    }
    folder_ = Fd(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!folder_) {
        return fail(error, "cannot open", name);
    }
    fd_ = Fd(openat(folder_.get(), name.c_str(), kOpen));
    if (!fd_ && errno == ELOOP) {
        if (!set_aside(name, "it is a symbolic link", contents, error, notice)) {
            return false;
        }
    } else if (!fd_ && errno != ENOENT) {
        return fail(error, "cannot open", name);
    }
    if (fd_ && !open_old(name, contents, error, notice)) {
        return false;
    }
    if (fd_) {
        return true;
    }
    fresh_ = create(name, contents.size, contents.format, contents, error);
    return fresh_;
}

// With a file that is no good there is none afterwards.
bool MappedFile::open_old(const std::string& name, const Contents& contents, std::string& error,
                          std::string& notice) {
    struct stat info;
    if (fstat(fd_.get(), &info) != 0) {
        return fail(error, "cannot stat", name);
    }
    // A second name may be one of another file that root would then change.
    if (!S_ISREG(info.st_mode) || info.st_nlink != 1) {
        return set_aside(name, "it is not a regular file, or it has hard links", contents, error,
                         notice);
    }
    const auto size = static_cast<size_t>(info.st_size);
    if (size < contents.head) {
        return set_aside(name, "it is too short", contents, error, notice);
    }
    if (!map(size)) {
        return fail(error, "cannot map", name);
    }
    if (const char* why = contents.check({memory_, size}); why != nullptr) {
        if (contents.converted_size && contents.converted_size({memory_, size}) > 0) {
            return convert(name, size, contents, error, notice);
        }
        return set_aside(name, why, contents, error, notice);
    }
    if (!map(contents.reach({memory_, size}))) {
        return fail(error, "cannot map", name);
    }
    return true;
}

// The old file stays as it is until the new one takes its name.
bool MappedFile::convert(const std::string& name, size_t size, const Contents& contents,
                         std::string& error, std::string& notice) {
    if (const uint32_t pid = other_process_with(fd_.get()); pid != 0) {
        error = "\"" + path(name) +
                "\" has the layout of an older version and is in use by process " +
                std::to_string(pid) + ": restart nginx instead of upgrading the binary";
        return false;
    }
    const std::span<const std::byte> old(memory_, size);
    const size_t mapped = mapped_;
    const Fd old_fd = std::move(fd_);
    memory_ = nullptr;
    const bool done = create(
        name, contents.converted_size(old),
        [&](std::span<std::byte> memory) { contents.convert(old, memory); }, contents, error);
    munmap(const_cast<std::byte*>(old.data()), mapped);
    if (done) {
        notice = "\"" + path(name) + "\" was converted to the layout of this version";
    }
    return done;
}

bool MappedFile::set_aside(const std::string& name, const std::string& why,
                           const Contents& contents, std::string& error, std::string& notice) {
    unmap();
    const std::string aside = bad_name(folder_.get(), name);
    if (renameat(folder_.get(), name.c_str(), folder_.get(), aside.c_str()) != 0) {
        return fail(error, "cannot rename", name);
    }
    notice = "\"" + path(name) + "\" cannot be used: " + why + "; it was moved to \"" +
             path(aside) + "\" and " + contents.what + " anew";
    fd_.reset();
    return true;
}

// Made under another name and then moved: a file of that name is whole.
bool MappedFile::create(const std::string& name, size_t size,
                        const std::function<void(std::span<std::byte>)>& fill,
                        const Contents& contents, std::string& error) {
    const std::string draft = name + ".new";
    unlinkat(folder_.get(), draft.c_str(), 0);
    fd_ = Fd(openat(folder_.get(), draft.c_str(), kOpen | O_CREAT | O_EXCL, 0600));
    if (!fd_) {
        return fail(error, "cannot create", draft);
    }
    if (!grow(size)) {
        fail(error, "cannot reserve " + std::to_string(size) + " bytes for", draft);
        unlinkat(folder_.get(), draft.c_str(), 0);
        return false;
    }
    if (!map(size)) {
        return fail(error, "cannot map", draft);
    }
    fill({memory_, size});
    if (!map(contents.reach({memory_, size}))) {
        return fail(error, "cannot map", draft);
    }
    if (renameat(folder_.get(), draft.c_str(), folder_.get(), name.c_str()) != 0) {
        return fail(error, "cannot name", name);
    }
    return true;
}

}  // namespace ads
