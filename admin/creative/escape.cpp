#include "creative/escape.hpp"

namespace ads::creative {

void put_escaped(std::string& out, std::string_view text) {
    for (size_t i = 0; i < text.size(); i++) {
        const auto c = static_cast<unsigned char>(text[i]);
        const bool c1 =
            c == 0xc2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xa0;
        if (c == '&') {
            out += "&amp;";
        } else if (c == '<') {
            out += "&lt;";
        } else if (c == '>') {
            out += "&gt;";
        } else if (c == '"') {
            out += "&quot;";
        } else if (c == '\r' || c == '\f') {
            out += '\n';
        } else if (c1) {
            i++;
        } else if ((c >= 0x20 && c != 0x7f) || c == '\t' || c == '\n') {
            out += text[i];
        }
    }
}

}  // namespace ads::creative
