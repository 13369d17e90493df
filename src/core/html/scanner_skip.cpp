// Tags that mean nothing to the scanner, which most are, are skipped as a whole, without its
// states.
#include "core/html/characters.hpp"
#include "core/html/scanner.hpp"

namespace ads::html {

namespace {

using Byte = unsigned char;

// By the first letter of a name, a bit for each second letter with which one begins that means
// something, see tag_of().
constexpr auto kMeaningful = [] {
    std::array<uint32_t, 26> bits{};
    for (const std::string_view name :
         {"script",   "title",     "textarea", "style", "xmp",    "iframe",   "noembed", "noframes",
          "noscript", "plaintext", "select",   "input", "keygen", "caption",  "table",   "tbody",
          "tfoot",    "thead",     "tr",       "td",    "th",     "frameset", "svg",     "math",
          "template", "meta",      "html",     "head",  "body"}) {
        bits[static_cast<size_t>(name[0] - 'a')] |= 1u << (name[1] - 'a');
    }
    return bits;
}();

// Where the tag's next ">" or "=" is.
const Byte* find_end_or_value(const Byte* p, const Byte* end) noexcept {
#if defined(__SSE2__)
    const __m128i greater = _mm_set1_epi8('>');
    const __m128i equals = _mm_set1_epi8('=');
    while (end - p >= 16) {
        const __m128i block = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
        const int mask = _mm_movemask_epi8(
            _mm_or_si128(_mm_cmpeq_epi8(block, greater), _mm_cmpeq_epi8(block, equals)));
        if (mask != 0) {
            return p + __builtin_ctz(static_cast<unsigned>(mask));
        }
        p += 16;
    }
#endif
    while (p < end && *p != '>' && *p != '=') {
        p++;
    }
    return p;
}

// Behind the value that begins at p or behind spaces; `end` if the value or what follows is not
// there.
const Byte* skip_value(const Byte* p, const Byte* end) noexcept {
    while (p < end && is_space(*p)) {
        p++;
    }
    if (p < end && (*p == '"' || *p == '\'')) {
        p = find_byte(p + 1, end, *p);
        return p == end ? end : p + 1;
    }
    while (p < end && !is_space(*p) && *p != '>') {
        p++;
    }
    return p;
}

// Behind the ">" of a tag whose name ends at p; nullptr if it is not there, or where an attribute's
// name begins with "=".
const Byte* skip_attributes(const Byte* p, const Byte* end) noexcept {
    for (;;) {
        const Byte* at = find_end_or_value(p, end);
        if (at == end) {
            return nullptr;
        }
        if (*at == '>') {
            return at + 1;
        }
        const Byte* name = at;
        while (name > p && is_space(name[-1])) {
            name--;
        }
        if (name == p || name[-1] == '/') {
            return nullptr;
        }
        p = skip_value(at + 1, end);
    }
}

}  // namespace

// Only where no element is open that gives tags a meaning: then those of links are the only end
// tags that have one.
const Scanner::Byte* Scanner::skip_tag(const Byte* less, const Byte* end) noexcept {
    const Byte* p = less + 1;
    if (end - p < 3) {
        return less;
    }
    const bool is_end = *p == '/';
    p += is_end ? 1 : 0;
    if (!is_letter(*p) || tables_in_link_ > 0) {
        return less;
    }
    const bool is_link = (*p | 32) == 'a' && kNameByte[p[1]] == 0;
    if (!is_end) {
        const Byte first = *p | 32;
        const Byte second = p[1] | 32;
        const bool means = is_letter(second) && (kMeaningful[first - 'a'] >> (second - 'a') & 1);
        if (means ||
            (first == static_cast<Byte>(element_[0]) && second == static_cast<Byte>(element_[1]))) {
            return less;
        }
    }
    while (p < end && kNameByte[*p] != 0) {
        p++;
    }
    const Byte* behind = p < end && *p == '>' ? p + 1 : skip_attributes(p, end);
    if (behind == nullptr) {
        return less;
    }
    if (is_link) {
        is_end ? end_link() : begin_link();
    }
    return behind;
}

}  // namespace ads::html
