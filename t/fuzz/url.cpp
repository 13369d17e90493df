// Any text as a pixel's address: what is allowed names its host plainly, and
// nothing but public addresses come back. The first line is the address, each
// further one an answer of the resolver.
#include "lib/base/url_policy.hpp"

#include <algorithm>
#include <cstdlib>

namespace {

using namespace ads;

void check(bool holds) {
    if (!holds) {
        std::abort();
    }
}

std::string_view take_line(std::string_view& rest) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    return line;
}

void check_allowed(std::string_view url, const PixelCheck& result) {
    check(!result.addresses.empty() && url.size() <= 2048);
    for (const auto& address : result.addresses) {
        check(special_use(address) == nullptr);
        check(parse_ip(ip_text(address)) == address);
    }
    // Read once more from the right: what the host is, in the address as written.
    std::string small(url);
    std::transform(small.begin(), small.end(), small.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    const std::string host = result.url.literal && result.url.literal->v6
                                 ? "[" + result.url.host + "]"
                                 : result.url.host;
    const std::string start = "https://" + host;
    check(small.starts_with(start));
    const std::string_view rest = std::string_view(small).substr(start.size());
    check(rest.empty() || rest.starts_with(":443") || rest.find_first_of("/?#") == 0);
    check(result.url.target.starts_with('/'));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    std::string_view rest(reinterpret_cast<const char*>(data), size);
    const std::string_view url = take_line(rest);
    Answers answers;
    while (!rest.empty()) {
        if (const auto address = parse_ip(take_line(rest))) {
            answers.addresses.push_back(*address);
        }
    }
    const PixelCheck result = check_pixel_url(url, [&](const std::string&) { return answers; });
    check(result.allowed() == result.fault.empty());
    if (result.allowed()) {
        check_allowed(url, result);
    } else {
        check(result.addresses.empty());
    }
    return 0;
}
