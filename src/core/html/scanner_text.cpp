// The states without markup: comments, and the text of scripts, styles and the like.
#include <algorithm>
#include <cstring>

#include "core/html/characters.hpp"
#include "core/html/scanner.hpp"

namespace ads::html {

namespace {

constexpr std::string_view kCdata = "[CDATA[";

}  // namespace

// Comments, document types and CDATA sections.
const Byte* Scanner::read_markup(const Byte* p, const Byte* end) noexcept {
    for (; p < end; p++) {
        const Byte c = *p;
        switch (state_) {
            case State::markup:
                if (c == '-') {
                    state_ = State::markup_dash;
                } else if (c == '[' && nesting_.in_foreign()) {
                    state_ = State::markup_cdata;
                    matched_ = 1;
                } else {
                    state_ = State::bogus_comment;
                    return p;
                }
                break;
            case State::markup_dash:
                if (c != '-') {
                    state_ = State::bogus_comment;
                    return p;
                }
                state_ = State::comment_start;
                break;
            case State::markup_cdata:
                if (c != static_cast<Byte>(kCdata[matched_])) {
                    state_ = State::bogus_comment;
                    return p;
                }
                if (++matched_ == kCdata.size()) {
                    state_ = State::cdata;
                }
                break;
            case State::comment_start:
                if (c == '>') {
                    state_ = State::data;
                    return p + 1;
                }
                state_ = c == '-' ? State::comment_start_dash : State::comment;
                break;
            case State::comment_start_dash:
                if (c == '>') {
                    state_ = State::data;
                    return p + 1;
                }
                state_ = c == '-' ? State::comment_end : State::comment;
                break;
            case State::comment:
                p = find_byte(p, end, '-');
                if (p == end) {
                    return p;
                }
                state_ = State::comment_end_dash;
                break;
            case State::comment_end_dash:
                state_ = c == '-' ? State::comment_end : State::comment;
                break;
            case State::comment_end:
                if (c == '>') {
                    state_ = State::data;
                    return p + 1;
                }
                state_ = c == '-'   ? State::comment_end
                         : c == '!' ? State::comment_end_bang
                                    : State::comment;
                break;
            case State::comment_end_bang:
                if (c == '>') {
                    state_ = State::data;
                    return p + 1;
                }
                state_ = c == '-' ? State::comment_end_dash : State::comment;
                break;
            case State::cdata:
                p = find_byte(p, end, ']');
                if (p == end) {
                    return p;
                }
                state_ = State::cdata_bracket;
                break;
            case State::cdata_bracket:
                state_ = c == ']' ? State::cdata_end : State::cdata;
                break;
            case State::cdata_end:
                if (c == '>') {
                    state_ = State::data;
                    return p + 1;
                }
                state_ = c == ']' ? State::cdata_end : State::cdata;
                break;
            default:
                return p;
        }
    }
    return p;
}

// Text without markup, up to the end tag of its element.
const Byte* Scanner::read_text(const Byte* p, const Byte* end) noexcept {
    while (p < end) {
        switch (state_) {
            case State::text:
                p = find_byte(p, end, '<');
                if (p < end) {
                    begin_tag(p, State::text_less);
                    text_state_ = State::text;
                    p++;
                }
                break;
            case State::text_less:
                if (*p == '/') {
                    state_ = State::text_end_open;
                    p++;
                } else {
                    state_ = text_state_;
                }
                break;
            case State::text_end_open:
                matched_ = 0;
                state_ = is_letter(*p) ? State::text_end_name : text_state_;
                break;
            case State::text_end_name: {
                const Byte c = kNameByte[*p];
                if (c == 0 && matched_ == text_name_size_) {
                    std::memcpy(name_, text_name_, text_name_size_);
                    name_size_ = text_name_size_;
                    is_end_tag_ = true;
                    state_ = State::before_attribute;
                    return p;
                }
                if (c != 0 && matched_ < text_name_size_ &&
                    c == static_cast<Byte>(text_name_[matched_])) {
                    matched_++;
                    p++;
                } else {
                    state_ = text_state_;
                }
                break;
            }
            default:
                if (!read_script(p, end)) {
                    return p;
                }
        }
    }
    return p;
}

// One step in a script; false outside of scripts.
bool Scanner::read_script(const Byte*& p, const Byte* end) noexcept {
    const Byte c = *p;
    const bool ends_name = kNameByte[c] == 0;
    switch (state_) {
        case State::script:
            p = find_byte(p, end, '<');
            if (p < end) {
                begin_tag(p, State::script_less);
                text_state_ = State::script;
                p++;
            }
            return true;
        case State::script_less:
            if (c != '!') {
                state_ = State::text_less;
                return true;
            }
            state_ = State::escape_start;
            break;
        case State::escape_start:
            if (c != '-') {
                state_ = State::script;
                return true;
            }
            state_ = State::escape_start_dash;
            break;
        case State::escape_start_dash:
            if (c != '-') {
                state_ = State::script;
                return true;
            }
            state_ = State::escaped_dash_dash;
            break;
        case State::escaped:
        case State::escaped_dash:
        case State::escaped_dash_dash:
            if (c == '<') {
                begin_tag(p, State::escaped_less);
                text_state_ = State::escaped;
            } else if (c == '-') {
                state_ = state_ == State::escaped ? State::escaped_dash : State::escaped_dash_dash;
            } else {
                state_ =
                    c == '>' && state_ == State::escaped_dash_dash ? State::script : State::escaped;
            }
            break;
        case State::escaped_less:
            if (!is_letter(c)) {
                state_ = State::text_less;
                return true;
            }
            matched_ = 0;
            state_ = State::double_escape_start;
            return true;
        // The name of the tag, which is "script" or another.
        case State::double_escape_start:
        case State::double_escape_end: {
            constexpr std::string_view kScript = "script";
            const bool starts = state_ == State::double_escape_start;
            if (ends_name) {
                const bool is_script = matched_ == kScript.size();
                state_ = is_script == starts ? State::double_escaped : State::escaped;
            } else if (!is_letter(c)) {
                state_ = starts ? State::escaped : State::double_escaped;
                return true;
            } else {
                const bool fits =
                    matched_ < kScript.size() && lower(c) == static_cast<Byte>(kScript[matched_]);
                matched_ = fits ? matched_ + 1 : kLongestName;
            }
            break;
        }
        case State::double_escaped:
        case State::double_escaped_dash:
        case State::double_escaped_dash_dash:
            if (c == '<') {
                state_ = State::double_escaped_less;
            } else if (c == '-') {
                state_ = state_ == State::double_escaped ? State::double_escaped_dash
                                                         : State::double_escaped_dash_dash;
            } else {
                state_ = c == '>' && state_ == State::double_escaped_dash_dash
                             ? State::script
                             : State::double_escaped;
            }
            break;
        case State::double_escaped_less:
            if (c != '/') {
                state_ = State::double_escaped;
                return true;
            }
            matched_ = 0;
            state_ = State::double_escape_end;
            break;
        default:
            return false;
    }
    p++;
    return true;
}

}  // namespace ads::html
