// URL patterns of a worker: compiled when first needed, kept by their text
// across catalogs, run at most once per request.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/image/image.hpp"

namespace ads {

enum class Match : uint8_t {
    no,
    yes,
    limit,  // a limit was reached: the result is unknown
};

class Patterns {
public:
    Patterns();
    ~Patterns();
    Patterns(Patterns&&) noexcept;
    Patterns& operator=(Patterns&&) noexcept;

    // Uses the patterns of this image; patterns that no image has used for a while are freed.
    void bind(const Image& image);

    // A new request. The URL must be valid UTF-8 and outlive it.
    void start(std::string_view url) noexcept {
        url_ = url;
        request_++;
    }

    Match match(uint32_t pattern) noexcept;

    uint64_t limits_hit() const noexcept { return limits_hit_; }

private:
    struct Engine;
    struct Code;
    struct Entry {
        Code* code = nullptr;
        uint64_t request = 0;  // for which `result` is valid
        Match result = Match::no;
    };

    Match run(Code& code) noexcept;

    std::unique_ptr<Engine> engine_;
    Image image_;
    std::unordered_map<std::string, std::unique_ptr<Code>> codes_;
    std::vector<Entry> entries_;
    std::string_view url_;
    uint64_t request_ = 0;
    uint64_t binds_ = 0;
    uint64_t limits_hit_ = 0;
};

}  // namespace ads
