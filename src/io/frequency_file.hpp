// The frequency file: shm/frequency on disk, mapped by every worker of every
// generation, the old binary's during an upgrade included.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "io/file.hpp"
#include "shm/frequency.hpp"

namespace ads {

class FrequencyFile {
public:
    FrequencyFile() noexcept = default;
    FrequencyFile(const FrequencyFile&) = delete;
    FrequencyFile& operator=(const FrequencyFile&) = delete;
    ~FrequencyFile() { unmap(); }

    // Opens or makes FOLDER/frequency with about `bytes` of entries. A file
    // that is not ours, or damaged, is set aside under another name and said
    // in `notice`; one of another size is kept, and said too. False with a
    // sentence in `error`.
    bool open(const std::string& folder, uint64_t bytes, std::string& error, std::string& notice);

    // The same without a file: memory that the workers of one configuration
    // share and that ends with them.
    bool without_file(uint64_t bytes) noexcept;

    Frequency frequency() const noexcept { return frequency_; }

private:
    bool create(const std::string& path, uint64_t bytes, std::string& error);
    bool map(size_t size) noexcept;
    void unmap() noexcept;

    Fd fd_;
    std::byte* memory_ = nullptr;
    size_t mapped_ = 0;
    Frequency frequency_;
};

}  // namespace ads
