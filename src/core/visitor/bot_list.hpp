// A list of texts; a known bot has at least one of them in its user agent. A text file, one text
// per line, case ignored:
//
//   # a comment, also behind a blank
//   headlesschrome
//   !cubot            a user agent with this text never matches
//
// All texts are searched at once (Aho-Corasick), so the length of the list does not matter to a
// request.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ads {

class BotList {
public:
    static constexpr size_t kMaxFile = 64 << 10;
    static constexpr size_t kShortest = 3;  // a shorter text would be in most user agents
    static constexpr size_t kLongest = 128;
    static constexpr size_t kLooked = 2048;  // bytes of a user agent that are examined

    // Parses the list; sets `error` to a sentence that names the line.
    static std::optional<BotList> parse(std::string_view text, std::string& error);

    // An empty user agent is a bot.
    bool names_bot(std::string_view user_agent) const noexcept;

    size_t size() const noexcept { return size_; }

private:
    void add(std::string_view text);
    void build();
    uint32_t& next(uint32_t state, uint8_t letter) noexcept {
        return next_[size_t{state} * classes_ + letter];
    }

    std::array<uint8_t, 256> letters_{};  // the class of a byte; 0: in no text
    uint32_t classes_ = 1;
    std::vector<uint32_t> next_ = {0};  // by state and class; the state 0 is the beginning
    std::vector<bool> ends_ = {false};  // a text ends in this state
    std::vector<std::string> exceptions_;
    size_t size_ = 0;
};

// The most recent user agents, as in DeviceCache.
class BotCache {
public:
    bool find(const BotList& list, uint64_t hash, std::string_view user_agent) noexcept {
        Entry& entry = entries_[hash % entries_.size()];
        if (entry.hash != hash || !entry.known) {
            entry = {hash, true, list.names_bot(user_agent)};
        }
        return entry.bot;
    }
    void clear() noexcept { entries_.fill({}); }

private:
    struct Entry {
        uint64_t hash = 0;
        bool known = false;
        bool bot = false;
    };
    std::array<Entry, 1024> entries_{};
};

}  // namespace ads
