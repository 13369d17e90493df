#include "creative/policy.hpp"

#include <cstdint>

namespace ads::creative {

std::string shown_name(std::string_view name) {
    constexpr size_t kMost = 32;
    std::string out;
    for (const char c : name.substr(0, kMost)) {
        out += c > ' ' && c < 0x7f ? c : '?';
    }
    return name.size() > kMost ? out + "..." : out;
}

std::string shown_tag(const GumboElement& element) {
    std::string_view name = gumbo_normalized_tagname(element.tag);
    if (name.empty()) {
        GumboStringPiece original = element.original_tag;
        gumbo_tag_from_original_text(&original);
        name = original.length == 0 ? "" : std::string_view(original.data, original.length);
    }
    return "<" + shown_name(name) + ">";
}

Fate fate_of(const GumboElement& element) {
    // The content of <svg> and <math> is parsed by other rules.
    if (element.tag_namespace != GUMBO_NAMESPACE_HTML) {
        return Fate::drop;
    }
    switch (element.tag) {
        case GUMBO_TAG_A:
        case GUMBO_TAG_B:
        case GUMBO_TAG_BLOCKQUOTE:
        case GUMBO_TAG_DIV:
        case GUMBO_TAG_EM:
        case GUMBO_TAG_H1:
        case GUMBO_TAG_H2:
        case GUMBO_TAG_H3:
        case GUMBO_TAG_H4:
        case GUMBO_TAG_H5:
        case GUMBO_TAG_H6:
        case GUMBO_TAG_I:
        case GUMBO_TAG_LI:
        case GUMBO_TAG_OL:
        case GUMBO_TAG_P:
        case GUMBO_TAG_S:
        case GUMBO_TAG_SMALL:
        case GUMBO_TAG_SPAN:
        case GUMBO_TAG_STRONG:
        case GUMBO_TAG_SUB:
        case GUMBO_TAG_SUP:
        case GUMBO_TAG_U:
        case GUMBO_TAG_UL:
        case GUMBO_TAG_CAPTION:
        case GUMBO_TAG_COLGROUP:
        case GUMBO_TAG_TABLE:
        case GUMBO_TAG_TBODY:
        case GUMBO_TAG_TD:
        case GUMBO_TAG_TFOOT:
        case GUMBO_TAG_TH:
        case GUMBO_TAG_THEAD:
        case GUMBO_TAG_TR:
            return Fate::keep;
        case GUMBO_TAG_BR:
        case GUMBO_TAG_COL:
        case GUMBO_TAG_HR:
        case GUMBO_TAG_IMG:
            return Fate::keep_void;
        case GUMBO_TAG_STYLE:
            return Fate::sheet;
        case GUMBO_TAG_SCRIPT:
        case GUMBO_TAG_SVG:
        case GUMBO_TAG_MATH:
        case GUMBO_TAG_TEMPLATE:
        case GUMBO_TAG_NOSCRIPT:
        case GUMBO_TAG_IFRAME:
        case GUMBO_TAG_FRAMESET:
        case GUMBO_TAG_FRAME:
        case GUMBO_TAG_NOFRAMES:
        case GUMBO_TAG_OBJECT:
        case GUMBO_TAG_EMBED:
        case GUMBO_TAG_PARAM:
        case GUMBO_TAG_APPLET:
        case GUMBO_TAG_TITLE:
        case GUMBO_TAG_XMP:
        case GUMBO_TAG_NOEMBED:
        case GUMBO_TAG_PLAINTEXT:
        case GUMBO_TAG_BASE:
        case GUMBO_TAG_META:
        case GUMBO_TAG_LINK:
        case GUMBO_TAG_INPUT:
        case GUMBO_TAG_BUTTON:
        case GUMBO_TAG_SELECT:
        case GUMBO_TAG_OPTGROUP:
        case GUMBO_TAG_OPTION:
        case GUMBO_TAG_DATALIST:
        case GUMBO_TAG_TEXTAREA:
        case GUMBO_TAG_KEYGEN:
        case GUMBO_TAG_ISINDEX:
        case GUMBO_TAG_OUTPUT:
        case GUMBO_TAG_PROGRESS:
        case GUMBO_TAG_METER:
            return Fate::drop;
        default:
            return Fate::unwrap;
    }
}

bool keeps_tag(std::string_view name) {
    GumboElement element{};
    element.tag = gumbo_tagn_enum(name.data(), static_cast<unsigned>(name.size()));
    element.tag_namespace = GUMBO_NAMESPACE_HTML;
    const Fate fate = fate_of(element);
    return fate == Fate::keep || fate == Fate::keep_void;
}

}  // namespace ads::creative
