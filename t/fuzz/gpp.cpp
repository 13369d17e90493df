// Any bytes as a GPP string, as one of its sections and as gpp_sid: a yes needs a string of
// type 3 and a section that can be read to its last bit.
#include "core/visitor/gpp.hpp"

#include <cstdlib>
#include <string>

#include "core/visitor/consent.hpp"

namespace {

using namespace ads;

constexpr Millis kNow = 1'793'100'000'000;

void check(bool holds) {
    if (!holds) {
        std::abort();
    }
}

void check_string(std::string_view text) {
    GppString gpp;
    if (!read_gpp(text, gpp)) {
        return;
    }
    check(text.starts_with("DB") && text.size() <= kLongestGpp && gpp.count <= kMostGppSections);
    size_t size = text.find('~');
    uint32_t last = 0;
    for (const auto& section : gpp.sections()) {
        check(section.id > last && !section.text.empty());
        last = section.id;
        size += 1 + section.text.size();
    }
    check(gpp.count == 0 || size == text.size());
    check(!read_gpp(std::string(text) + "~x", gpp));
}

void check_sections(std::string_view text) {
    for (uint32_t id = 0; id < 40; id++) {
        UsSection us;
        const bool good = read_us_section({id, text}, us);
        check(!good || (us.version == 1 && text.starts_with('B')));
        const Ballot ballot = gpp_ballot({id, text}, 42, kNow);
        check(!us.gpc || !good || ballot.identifiers == Vote::no);
        check(id == kGppTcfEu || ballot.identifiers != Vote::yes || good);
    }
}

// A vote never turns a no of another source into a yes.
void check_votes(std::string_view text) {
    const ConsentSources sources{.vendor = 42};
    ConsentCount count(sources, kNow);
    count.add_gpp(text);
    count.add_gpp_sections(text);
    count.add_cookies(text);
    count.add_query(text);
    count.add_gpc("1");
    check(!count.verdict().identifiers && !count.verdict().personalize);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    check_string(text);
    check_sections(text);
    check_votes(text);
    check_votes("__gpp=" + std::string(text));
    return 0;
}
