// Any bytes as a TC string, as cookies and as a query: a yes needs a vendor, a
// core of version 2 and a segment of disclosed vendors, and stays a yes with
// nothing but zeros behind it.
#include "core/visitor/tcf.hpp"

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

void check_text(std::string_view text, VendorId vendor) {
    const Tcf tcf = read_tcf(text, vendor, kNow);
    const bool granted = tcf.identifiers || tcf.personalize;
    check(!granted || tcf.error == TcfError::none);
    if (tcf.error == TcfError::none) {
        check(vendor != 0 && text.starts_with('C') && text.size() <= kLongestTcf);
        check(text.find('.') != text.npos);
        check(read_tcf(text.substr(0, text.find('.')), vendor, kNow).error ==
              TcfError::not_disclosed);
        check(read_tcf(text, vendor, kNow + 400LL * 86'400'000).error == TcfError::too_old);
        check(read_tcf(std::string(text) + '.', vendor, kNow).error == TcfError::malformed);
        check(read_tcf(text, 0, kNow).error == TcfError::no_vendor);
    }
    // A vote never turns a no of another source into a yes.
    const ConsentSources sources{.vendor = vendor};
    ConsentCount count(sources, kNow);
    count.add_cookies("euconsent-v2=" + std::string(text));
    count.add_cookies(text);
    count.add_query(text);
    count.add_gpc("1");
    check(!count.verdict().identifiers && !count.verdict().personalize);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    for (const VendorId vendor : {0, 1, 42, 65'535}) {
        check_text(text, vendor);
    }
    return 0;
}
