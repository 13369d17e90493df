#include "core/html/scanner.hpp"

#include <algorithm>
#include <cstring>

#include "core/html/characters.hpp"

namespace ads::html {

Scanner::Found Scanner::next(const char*& at, const char* end) noexcept {
    begin_ = reinterpret_cast<const Byte*>(at);
    Found found = Found::nothing;
    const Byte* stopped = read(begin_, reinterpret_cast<const Byte*>(end), found);
    position_ += static_cast<uint64_t>(stopped - begin_);
    at = reinterpret_cast<const char*>(stopped);
    if (found == Found::nothing) {
        find_held();
    }
    return found;
}

// Whether a tag that has begun may turn out to be one that must be kept.
bool Scanner::may_matter() const noexcept {
    constexpr std::string_view kMeta = "meta";
    switch (state_) {
        case State::tag_open:
            return true;
        case State::tag_name:
            return !is_end_tag_ && (element_.starts_with(name()) || kMeta.starts_with(name()));
        default:
            return state_ > State::tag_name && state_ <= State::self_closing && !is_end_tag_ &&
                   (is_slot_name(name()) || name() == kMeta);
    }
}

// Between two parts of the page.
void Scanner::find_held() noexcept {
    held_from_ = kNowhere;
    // In a slot that is too long, what begins behind its bound may be one.
    const bool too_long = in_slot_ && tag_begin_ - range_.begin > kMostHeld;
    if (in_slot_ && !too_long) {
        held_from_ = range_.begin;
    } else if ((too_long || insertable()) && may_matter()) {
        held_from_ = tag_begin_;
    }
    if (held_from_ != kNowhere && position_ - held_from_ > kMostHeld) {
        held_from_ = kNowhere;
    }
}

Scanner::Found Scanner::stop() noexcept {
    state_ = State::stopped;
    leave_slot();
    return Found::doubt;
}

void Scanner::leave_slot() noexcept {
    in_slot_ = false;
    nesting_.clear();
}

void Scanner::begin_tag(const Byte* less, State next) noexcept {
    tag_begin_ = offset(less);
    is_end_tag_ = false;
    self_closing_ = false;
    name_size_ = 0;
    state_ = next;
}

const Byte* Scanner::read(const Byte* p, const Byte* end, Found& found) noexcept {
    while (p < end) {
        switch (state_) {
            case State::data:
                p = find_byte(p, end, '<');
                if (p == end) {
                    return p;
                }
                if (nothing_open()) {
                    if (const Byte* behind = skip_tag(p, end); behind != p) {
                        p = behind;
                        continue;
                    }
                }
                begin_tag(p, State::tag_open);
                if (++p == end) {
                    return p;
                }
                [[fallthrough]];
            case State::tag_open:
                if (!is_letter(*p)) {
                    if (*p == '/') {
                        state_ = State::end_tag_open;
                        p++;
                    } else if (*p == '!') {
                        state_ = State::markup;
                        p++;
                    } else {
                        state_ = *p == '?' ? State::bogus_comment : State::data;
                    }
                    continue;
                }
                state_ = State::tag_name;
                [[fallthrough]];
            case State::tag_name: {
            read_name:
                Byte c = 0;
                size_t size = name_size_;
                while (p < end && (c = kNameByte[*p]) != 0) {
                    name_[std::min(size, kLongestName)] = static_cast<char>(c);
                    size++;
                    p++;
                }
                name_size_ = size;
                if (p == end) {
                    return p;
                }
                state_ = State::before_attribute;
                [[fallthrough]];
            }
            case State::before_attribute:
                while (p < end && is_space(*p)) {
                    p++;
                }
                if (p == end) {
                    return p;
                }
                if (*p == '/') {
                    state_ = State::self_closing;
                    p++;
                    continue;
                }
                if (*p == '>') {
                    p++;
                    found = finish_tag(p);
                    if (found != Found::nothing) {
                        return p;
                    }
                    continue;
                }
                state_ = State::attribute_name;
                p++;  // a "=" here is part of the name
                [[fallthrough]];
            case State::attribute_name:
                while (p < end && !kEndsAttribute[*p]) {
                    p++;
                }
                if (p == end) {
                    return p;
                }
                if (*p != '=') {
                    state_ = State::after_attribute_name;
                    continue;
                }
                state_ = State::before_value;
                p++;
                [[fallthrough]];
            case State::before_value:
                while (p < end && is_space(*p)) {
                    p++;
                }
                if (p == end) {
                    return p;
                }
                if (*p != '"') {
                    if (*p == '\'') {
                        state_ = State::value_single_quoted;
                        p++;
                    } else {
                        state_ = State::value_unquoted;
                    }
                    continue;
                }
                state_ = State::value_double_quoted;
                p++;
                [[fallthrough]];
            case State::value_double_quoted:
                p = find_byte(p, end, '"');
                if (p == end) {
                    return p;
                }
                p++;
                state_ = State::before_attribute;  // what follows needs no space
                continue;
            case State::value_single_quoted:
                p = find_byte(p, end, '\'');
                if (p == end) {
                    return p;
                }
                p++;
                state_ = State::before_attribute;
                continue;
            case State::value_unquoted:
                while (p < end && !is_space(*p) && *p != '>') {
                    p++;
                }
                state_ = p == end ? State::value_unquoted : State::before_attribute;
                continue;
            case State::after_attribute_name:
                while (p < end && is_space(*p)) {
                    p++;
                }
                if (p < end) {
                    if (*p == '=') {
                        p++;
                        state_ = State::before_value;
                    } else {
                        state_ = State::before_attribute;
                    }
                }
                continue;
            case State::self_closing:
                if (*p == '>') {
                    self_closing_ = true;
                }
                state_ = State::before_attribute;
                continue;
            case State::end_tag_open:
                if (is_letter(*p)) {
                    is_end_tag_ = true;
                    state_ = State::tag_name;
                    goto read_name;
                }
                state_ = *p == '>' ? State::data : State::bogus_comment;
                p += *p == '>' ? 1 : 0;
                continue;
            case State::bogus_comment:
                p = find_byte(p, end, '>');
                if (p < end) {
                    p++;
                    state_ = State::data;
                }
                continue;
            case State::stopped:
                return end;
            default:
                p = state_ < State::text ? read_markup(p, end) : read_text(p, end);
                continue;
        }
    }
    return p;
}

Scanner::Found Scanner::finish_tag(const Byte* behind) noexcept {
    state_ = State::data;
    // A slot that is too long was none.
    if (in_slot_ && tag_begin_ - range_.begin > kMostHeld) {
        if (nesting_.has_foreign()) {
            return stop();
        }
        leave_slot();
    }
    return is_end_tag_ ? end_tag(behind) : start_tag(behind);
}

Scanner::Found Scanner::start_text(std::string_view name, State state) noexcept {
    std::memcpy(text_name_, name.data(), name.size());
    text_name_size_ = name.size();
    state_ = state;
    return open(name);
}

// An element that may matter for what follows is open.
Scanner::Found Scanner::open(std::string_view name) noexcept {
    if ((!in_slot_ && nesting_.empty()) || is_void(name)) {
        return Found::nothing;
    }
    return name_size_ <= kLongestName && nesting_.push(name, false, false) ? Found::nothing
                                                                           : stop();
}

Scanner::Found Scanner::start_foreign(std::string_view name) noexcept {
    if (leaves_foreign(name) || name == "annotation-xml") {
        return stop();
    }
    if (self_closing_) {
        return Found::nothing;
    }
    return name_size_ <= kLongestName && nesting_.push(name, true, contains_html(name))
               ? Found::nothing
               : stop();
}

Scanner::Found Scanner::start_tag(const Byte* behind) noexcept {
    const std::string_view name = this->name();
    if (nesting_.starts_foreign()) {
        return start_foreign(name);
    }
    const Tag tag = tag_of(name);
    if (name == "a" && templates_ == 0) {
        begin_link();
    } else if (name == "table" && in_link_ && templates_ == 0) {
        tables_in_link_++;
    }
    if (tag == Tag::other && !in_slot_ && nesting_.empty() && !is_slot_name(name)) [[likely]] {
        return Found::nothing;
    }
    switch (tag) {
        case Tag::script:
            return start_text(name, State::script);
        case Tag::text:
            return in_select_ ? stop() : start_text(name, State::text);
        case Tag::plaintext:
        case Tag::frameset:
            return stop();
        case Tag::select:
            in_select_ = !in_select_;
            select_templates_ = templates_;
            return open(name);
        case Tag::input:
            in_select_ = false;
            return Found::nothing;
        case Tag::ambiguous:
            return in_select_ ? stop() : open(name);
        case Tag::foreign:
            return in_select_ ? stop() : self_closing_ ? Found::nothing : start_foreign(name);
        case Tag::in_template:
            if (in_select_) {
                return stop();
            }
            templates_++;
            return open(name);
        case Tag::meta:
            if (insertable() && offset(behind) - tag_begin_ <= kMostHeld) {
                range_ = {.begin = tag_begin_, .end = offset(behind)};
                return Found::meta;
            }
            return Found::nothing;
        case Tag::document:
            if (!nesting_.empty()) {
                return stop();
            }
            return Found::nothing;
        case Tag::other:
            break;
    }
    if (!is_slot_name(name)) {
        return open(name);
    }
    if (in_slot_ && !nesting_.has_foreign()) {
        leave_slot();  // a slot in a slot: neither is one
    } else if (insertable()) {
        in_slot_ = true;
        range_ = {.begin = tag_begin_, .content = offset(behind)};
    } else {
        return open(name);
    }
    return Found::nothing;
}

Scanner::Found Scanner::end_tag(const Byte* behind) noexcept {
    const std::string_view name = this->name();
    if (!nesting_.empty()) {
        const bool foreign = nesting_.in_foreign();
        if (name_size_ > kLongestName || !nesting_.pop(name)) {
            if (nesting_.has_foreign()) {
                return stop();
            }
            leave_slot();
        }
        if (foreign) {
            return Found::nothing;
        }
    } else if (in_slot_) {
        in_slot_ = false;
        if (is_slot_name(name) && offset(behind) - range_.begin <= kMostHeld) {
            range_.content_end = tag_begin_;
            range_.end = offset(behind);
            return Found::slot;
        }
    }
    if (in_select_ && tag_of(name) == Tag::ambiguous) {
        return stop();
    }
    if (name == "a" && templates_ == 0 && !in_select_) {
        end_link();
    } else if (name == "table" && tables_in_link_ > 0 && templates_ == 0) {
        tables_in_link_--;
    } else if (name == "select") {
        in_select_ = false;
    } else if (name == "template" && templates_ > 0) {
        templates_--;
        in_select_ = in_select_ && select_templates_ <= templates_;
    }
    return Found::nothing;
}

}  // namespace ads::html
