#include "core/visitor/bot_list.hpp"

#include <algorithm>
#include <cstring>

#include "core/base/list_lines.hpp"

namespace ads {

namespace {

constexpr char lower(char c) noexcept {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 32) : c;
}

std::string lowered(std::string_view text) {
    std::string out(text);
    std::transform(out.begin(), out.end(), out.begin(), lower);
    return out;
}

}  // namespace

std::optional<BotList> BotList::parse(std::string_view text, std::string& error) {
    if (text.size() > kMaxFile) {
        error = "it is larger than " + std::to_string(kMaxFile >> 10) + " kB";
        return std::nullopt;
    }
    BotList list;
    std::vector<std::string> texts;
    error = each_line(text, [&](std::string_view line) -> std::string {
        const bool exception = line.starts_with('!');
        const std::string_view one = line.substr(exception ? 1 : 0);
        if (one.size() < kShortest || one.size() > kLongest) {
            return quoted_line(line) + " must have " + std::to_string(kShortest) + " to " +
                   std::to_string(kLongest) + " characters";
        }
        if (std::any_of(one.begin(), one.end(), [](char c) { return c < ' ' || c > '~'; })) {
            return quoted_line(line) + " must consist of printable ASCII characters";
        }
        (exception ? list.exceptions_ : texts).push_back(lowered(one));
        return {};
    });
    if (!error.empty()) {
        return std::nullopt;
    }
    for (const auto& one : texts) {
        for (const char c : one) {
            uint8_t& letter = list.letters_[static_cast<uint8_t>(c)];
            if (letter == 0) {
                letter = static_cast<uint8_t>(list.classes_++);
            }
        }
    }
    list.next_.assign(list.classes_, 0);
    for (const auto& one : texts) {
        list.add(one);
    }
    list.build();
    list.size_ = texts.size();
    return list;
}

// As a tree first: 0 where no branch goes on.
void BotList::add(std::string_view text) {
    uint32_t state = 0;
    for (const char c : text) {
        const uint8_t letter = letters_[static_cast<uint8_t>(c)];
        if (next(state, letter) == 0) {
            next(state, letter) = static_cast<uint32_t>(ends_.size());
            ends_.push_back(false);
            next_.resize(next_.size() + classes_);
        }
        state = next(state, letter);
    }
    ends_[state] = true;
}

// Then, level by level, each missing branch goes where the longest end of what
// was read so far goes.
void BotList::build() {
    std::vector<uint32_t> falls(ends_.size());  // that end's state
    std::vector<uint32_t> queue;
    queue.reserve(ends_.size());
    for (uint32_t letter = 0; letter < classes_; letter++) {
        if (next_[letter] != 0) {
            queue.push_back(next_[letter]);
        }
    }
    for (size_t i = 0; i < queue.size(); i++) {
        const uint32_t state = queue[i];
        ends_[state] = ends_[state] || ends_[falls[state]];
        for (uint32_t letter = 0; letter < classes_; letter++) {
            uint32_t& to = next(state, static_cast<uint8_t>(letter));
            const uint32_t other = next(falls[state], static_cast<uint8_t>(letter));
            if (to == 0) {
                to = other;
            } else {
                falls[to] = other;
                queue.push_back(to);
            }
        }
    }
}

bool BotList::names_bot(std::string_view user_agent) const noexcept {
    if (user_agent.empty()) {
        return true;
    }
    std::array<char, kLooked> buffer;
    const size_t size = std::min(user_agent.size(), buffer.size());
    std::transform(user_agent.begin(), user_agent.begin() + static_cast<ptrdiff_t>(size),
                   buffer.begin(), lower);
    const std::string_view text(buffer.data(), size);
    for (const auto& exception : exceptions_) {
        for (size_t at = text.find(exception); at != text.npos; at = text.find(exception, at)) {
            std::memset(buffer.data() + at, 0, exception.size());
        }
    }
    uint32_t state = 0;
    for (const char c : text) {
        state = next_[size_t{state} * classes_ + letters_[static_cast<uint8_t>(c)]];
        if (ends_[state]) {
            return true;
        }
    }
    return false;
}

}  // namespace ads
