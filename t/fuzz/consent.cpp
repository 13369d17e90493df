// Any bytes as a consent cookie and as the path of its key: a yes only where
// the decoded text has the word.
#include "core/consent.hpp"

#include <cstdlib>
#include <string>

#include "core/query.hpp"

namespace {

using namespace ads;

void check(bool holds) {
    if (!holds) {
        std::abort();
    }
}

bool says_true(std::string_view cookie) {
    std::string buffer(cookie.size(), '\0');
    std::string_view text;
    return decode_component(cookie, buffer, text) && text.find("true") != text.npos;
}

void check_vote(std::string_view cookie, std::string_view path) {
    const Vote vote = cookie_consent(cookie, path);
    check((vote == Vote::absent) == cookie.empty());
    check(vote != Vote::yes || (cookie.size() <= 4096 && says_true(cookie)));
}

}  // namespace

// The first line is the path, the rest the cookie.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const size_t end = std::min(text.find('\n'), size);
    const std::string_view cookie = text.substr(std::min(end + 1, size));
    check_vote(cookie, text.substr(0, end));
    check_vote(cookie, "analytics");
    check_vote(text, "analytics");

    // The same, encoded as a browser would.
    std::string encoded;
    for (const char c : cookie) {
        constexpr char kDigits[] = "0123456789ABCDEF";
        const auto byte = static_cast<unsigned char>(c);
        encoded += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
    }
    if (encoded.size() <= 4096 && cookie.find('%') == cookie.npos) {
        check(cookie_consent(encoded, "analytics") == cookie_consent(cookie, "analytics"));
    }
    return 0;
}
