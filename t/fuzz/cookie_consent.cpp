// Any bytes as a consent cookie and as the path of its key: a yes only where
// the decoded text has the word.
#include "core/visitor/consent.hpp"

#include <cstdlib>
#include <string>

#include "core/base/query.hpp"

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

bool consents(std::string_view cookie, std::string_view path) {
    const Ballot ballot = cookie_ballot(cookie, CookieKeys::both(path));
    check(ballot.identifiers == ballot.personalize && ballot.identifiers != Vote::absent);
    return ballot.identifiers == Vote::yes;
}

void check_vote(std::string_view cookie, std::string_view path) {
    check(!consents(cookie, path) || (cookie.size() <= 4096 && says_true(cookie)));
}

// As a whole header: no second copy makes a yes out of a no.
void check_header(std::string_view header) {
    const ConsentSources sources;
    ConsentCount count(sources, 0);
    count.add_cookies(header);
    count.add_cookies("consent_preferences={}");
    check(!count.verdict().identifiers && !count.verdict().personalize);
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
    check_header(text);

    // The same, encoded as a browser would.
    std::string encoded;
    for (const char c : cookie) {
        constexpr char kDigits[] = "0123456789ABCDEF";
        const auto byte = static_cast<unsigned char>(c);
        encoded += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
    }
    if (encoded.size() <= 4096 && cookie.find('%') == cookie.npos) {
        check(consents(encoded, "analytics") == consents(cookie, "analytics"));
    }
    return 0;
}
