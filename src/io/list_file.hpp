// A list in a file that may be edited while it is used. An unreadable file never replaces a list
// that was read.
#pragma once

#include <cstring>
#include <string>

#include "io/file.hpp"

namespace ads {

template <class List>
class ListFile {
public:
    explicit ListFile(std::string path) : path_(std::move(path)) {}

    const std::string& path() const noexcept { return path_; }
    const List& list() const noexcept { return list_; }

    // Increases with each list that is read; data derived from an older one is outdated.
    uint64_t version() const noexcept { return version_; }

    // Reads the file; false with a sentence in `error`.
    bool read(std::string& error) {
        std::string text;
        seen_ = mark_of(path_.c_str());
        if (const int rc = read_file(path_.c_str(), text, &seen_); rc != 0) {
            error = std::string("cannot read it: ") + std::strerror(rc);
            return false;
        }
        auto list = List::parse(text, error);
        if (!list) {
            return false;
        }
        list_ = std::move(*list);
        version_++;
        return true;
    }

    bool gone() const noexcept { return seen_ == FileMark(); }

    // Whether the file has changed since it was last examined.
    bool changed() const noexcept { return mark_of(path_.c_str()) != seen_; }

private:
    std::string path_;
    FileMark seen_;
    List list_;
    uint64_t version_ = 0;
};

}  // namespace ads
