// The attributes of a start tag that was read as a whole.
#pragma once

#include <span>
#include <string_view>

namespace ads::html {

// The attributes of a tag, one after the other, as they are written.
class AttributeReader {
public:
    explicit AttributeReader(std::string_view tag) noexcept;

    // False at the end.
    bool next(std::string_view& name, std::string_view& value) noexcept;

private:
    std::string_view tag_;
    size_t at_;
};

// The value of the tag's first attribute of that name, which is in lower case, as it is written:
// with character references. False if there is none.
bool find_attribute(std::string_view tag, std::string_view name, std::string_view& value) noexcept;

// A value with its references to characters decoded: by number, and the few names that matter in
// markup. Others stay, as do those that do not fit. `to` is at least as large as the value.
std::string_view decode(std::string_view value, std::span<char> to) noexcept;

// Whether both are the same but for the case of ASCII letters; `lower` is in lower case.
bool same_name(std::string_view text, std::string_view lower) noexcept;

}  // namespace ads::html
