// A file mapped as shared memory by every worker of every configuration, including the old binary's
// during an upgrade.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>

#include "io/file.hpp"

namespace ads {

class MappedFile {
public:
    // The content of the file.
    struct Contents {
        std::string what;  // for messages: what starts anew if the file is invalid
        size_t head = 0;   // the minimum size
        size_t size = 0;   // of a new file
        std::function<void(std::span<std::byte>)> format;        // formats a new file
        std::function<const char*(std::span<std::byte>)> check;  // nullptr, or an error
        // The bytes to map of a valid file; pages past its end become usable when it grows, without
        // mapping again.
        std::function<size_t(std::span<std::byte>)> reach;
        // For a file of an older layout: the size that it needs now (0: it is not one), and the
        // function that converts it.
        std::function<size_t(std::span<const std::byte>)> converted_size;
        std::function<void(std::span<const std::byte>, std::span<std::byte>)> convert;
    };

    MappedFile() noexcept = default;
    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;
    ~MappedFile() { unmap(); }

    // Opens or creates FOLDER/NAME. A foreign or damaged file, or a link, is renamed, which
    // `notice` reports. On failure returns false and sets `error` to a sentence.
    bool open(const std::string& folder, const std::string& name, const Contents& contents,
              std::string& error, std::string& notice);

    // The same without a file: memory that the workers of one configuration share and
    // that ends with them.
    bool without_file(size_t size) noexcept;

    // Extends the file. Disk space is allocated now: a full disk must not kill a worker that writes
    // to memory.
    bool grow(size_t size) noexcept;

    // Makes the first bytes durable, or all of the file.
    bool sync(size_t size) noexcept;
    bool sync_all() noexcept;

    void unmap() noexcept;

    int fd() const noexcept { return fd_.get(); }
    std::byte* memory() const noexcept { return memory_; }

    // Whether open() created it.
    bool fresh() const noexcept { return fresh_; }

private:
    std::string path(const std::string& name) const { return folder_path_ + "/" + name; }
    bool fail(std::string& error, const std::string& what, const std::string& name) const;
    bool open_old(const std::string& name, const Contents& contents, std::string& error,
                  std::string& notice);
    bool convert(const std::string& name, size_t size, const Contents& contents, std::string& error,
                 std::string& notice);
    bool set_aside(const std::string& name, const std::string& why, const Contents& contents,
                   std::string& error, std::string& notice);
    bool create(const std::string& name, size_t size,
                const std::function<void(std::span<std::byte>)>& fill, const Contents& contents,
                std::string& error);
    bool map(size_t size) noexcept;

    std::string folder_path_;
    Fd folder_;
    Fd fd_;
    std::byte* memory_ = nullptr;
    size_t mapped_ = 0;
    bool fresh_ = false;
};

}  // namespace ads
