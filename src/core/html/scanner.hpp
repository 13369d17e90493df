// Finds the slots of a page while it streams: a tokenizer with the states of the HTML standard, and
// as much of tree construction as decides what a tag means. Where that is in doubt, nothing more
// is found.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/html/nesting.hpp"
#include "core/html/tags.hpp"

namespace ads::html {

// A slot with all that it contains is not larger: the beginning of one is kept in memory.
inline constexpr size_t kMostHeld = 16 << 10;

inline constexpr uint64_t kNowhere = ~uint64_t{0};

// Where a slot is in the page.
struct SlotRange {
    uint64_t begin = 0;
    uint64_t content = 0;      // behind the start tag
    uint64_t content_end = 0;  // before the end tag
    uint64_t end = 0;
};

class Scanner {
public:
    enum class Found : uint8_t {
        nothing,  // all of the input is read
        slot,     // one ends here
        meta,     // a <meta> ends here
        doubt,    // from here on nothing is reported
    };

    // The name of the elements is in lower case and at most kLongestName long.
    explicit Scanner(std::string_view element) noexcept : element_(element) {}

    // Reads on at `at`, and leaves it where it stops.
    Found next(const char*& at, const char* end) noexcept;

    // Where in the page the next byte is.
    uint64_t position() const noexcept { return position_; }

    // From where the page must be kept, since a slot or a <meta> may have begun there;
    // kNowhere: all that was read can be sent.
    uint64_t held_from() const noexcept { return held_from_; }

    // The last match; of a <meta> its begin and end.
    const SlotRange& range() const noexcept { return range_; }

private:
    enum class State : uint8_t {
        data,
        tag_open,
        end_tag_open,
        tag_name,
        before_attribute,
        attribute_name,
        after_attribute_name,
        before_value,
        value_double_quoted,
        value_single_quoted,
        value_unquoted,
        after_value,
        self_closing,
        bogus_comment,
        markup,
        markup_dash,
        markup_cdata,
        comment_start,
        comment_start_dash,
        comment,
        comment_end_dash,
        comment_end,
        comment_end_bang,
        cdata,
        cdata_bracket,
        cdata_end,
        text,
        text_less,
        text_end_open,
        text_end_name,
        script,
        script_less,
        escape_start,
        escape_start_dash,
        escaped,
        escaped_dash,
        escaped_dash_dash,
        escaped_less,
        double_escape_start,
        double_escaped,
        double_escaped_dash,
        double_escaped_dash_dash,
        double_escaped_less,
        double_escape_end,
        stopped,
    };
    using Byte = unsigned char;

    const Byte* read(const Byte* p, const Byte* end, Found& found) noexcept;
    const Byte* read_markup(const Byte* p, const Byte* end) noexcept;
    const Byte* read_text(const Byte* p, const Byte* end) noexcept;
    bool read_script(const Byte*& p, const Byte* end) noexcept;
    // Behind the tag, if it is there as a whole and means nothing; otherwise where it begins.
    const Byte* skip_tag(const Byte* less, const Byte* end) noexcept;
    // An <a> begins or ends, in HTML and outside of templates.
    void begin_link() noexcept { in_link_ = true; }
    void end_link() noexcept { in_link_ = in_link_ && tables_in_link_ > 0; }
    // Whether tags mean what they do at the beginning of a page.
    bool nothing_open() const noexcept {
        return !in_slot_ && !in_select_ && templates_ == 0 && nesting_.empty();
    }
    void begin_tag(const Byte* less, State next) noexcept;
    Found finish_tag(const Byte* behind) noexcept;
    Found start_tag(const Byte* behind) noexcept;
    Found start_text(std::string_view name, State state) noexcept;
    Found start_foreign(std::string_view name) noexcept;
    Found open(std::string_view name) noexcept;
    Found end_tag(const Byte* behind) noexcept;
    Found stop() noexcept;
    void leave_slot() noexcept;
    bool insertable() const noexcept { return nothing_open() && !in_link_; }
    bool is_slot_name(std::string_view name) const noexcept { return name == element_; }
    uint64_t offset(const Byte* p) const noexcept {
        return position_ + static_cast<uint64_t>(p - begin_);
    }
    std::string_view name() const noexcept {
        return {name_, name_size_ < kLongestName ? name_size_ : kLongestName};
    }
    bool may_matter() const noexcept;
    void find_held() noexcept;

    std::string_view element_;
    State state_ = State::data;
    State text_state_ = State::data;  // to go back to if no end tag follows
    bool is_end_tag_ = false;
    bool self_closing_ = false;
    bool in_slot_ = false;
    bool in_select_ = false;
    bool in_link_ = false;  // an ad there would end the link, and leave its slot
    uint32_t tables_in_link_ = 0;
    uint8_t matched_ = 0;  // of "[CDATA[" or of a name
    uint32_t templates_ = 0;
    uint32_t select_templates_ = 0;
    const Byte* begin_ = nullptr;  // of the input
    uint64_t position_ = 0;
    uint64_t tag_begin_ = 0;
    uint64_t held_from_ = kNowhere;
    SlotRange range_;
    Nesting nesting_;
    size_t name_size_ = 0;
    size_t text_name_size_ = 0;
    char name_[kLongestName + 1];
    char text_name_[kLongestName + 1];  // of the element whose text is read
};

}  // namespace ads::html
