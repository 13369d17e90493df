// A file that is memory: mapped by every worker of every generation, the old binary's
// during an upgrade included.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>

#include "io/file.hpp"

namespace ads {

class MappedFile {
public:
    // What is in it.
    struct Contents {
        std::string what;  // starts anew where the file is no good, as a message says it
        size_t head = 0;   // the least that a file has
        size_t size = 0;   // of a new one
        std::function<void(std::span<std::byte>)> format;        // makes a new one
        std::function<const char*(std::span<std::byte>)> check;  // nullptr, or what is wrong
        // How much is mapped of a good one; pages past its end become usable when it
        // grows, without mapping anew.
        std::function<size_t(std::span<std::byte>)> reach;
        // For a file of an older layout: the size that it needs now (0: it is not one), and
        // what makes a new one of it.
        std::function<size_t(std::span<const std::byte>)> converted_size;
        std::function<void(std::span<const std::byte>, std::span<std::byte>)> convert;
    };

    MappedFile() noexcept = default;
    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;
    ~MappedFile() { unmap(); }

    // Opens or makes FOLDER/NAME. A file that is not ours or damaged, or a link, is set aside
    // under another name and said in `notice`. False with a sentence in `error`.
    bool open(const std::string& folder, const std::string& name, const Contents& contents,
              std::string& error, std::string& notice);

    // The same without a file: memory that the workers of one configuration share and
    // that ends with them.
    bool without_file(size_t size) noexcept;

    // A longer file. Space is taken now: a full disk must not kill a worker in a write
    // to memory.
    bool grow(size_t size) noexcept;

    void unmap() noexcept;

    int fd() const noexcept { return fd_.get(); }
    std::byte* memory() const noexcept { return memory_; }

    // Whether open() has made it.
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
