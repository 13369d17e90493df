// The frequency file: the caps of ledger/visitor/frequency.hpp on disk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "io/mapped_file.hpp"
#include "ledger/visitor/frequency.hpp"

namespace ads {

class FrequencyFile {
public:
    // Opens or makes FOLDER/frequency with about `bytes` of entries; one of another size
    // is kept. False with a sentence in `error`; what else is worth telling is in `notice`.
    bool open(const std::string& folder, uint64_t bytes, std::string& error, std::string& notice);

    // The same without a file.
    bool without_file(uint64_t bytes) noexcept;

    Frequency frequency() const noexcept { return frequency_; }

private:
    MappedFile file_;
    Frequency frequency_;
};

}  // namespace ads
