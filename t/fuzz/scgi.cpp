// Any bytes as an SCGI request: refused, wanted on, or read into parts of these very bytes, however
// they arrive; then its address, its identity and its origin.
#include "api/scgi.hpp"

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

#include "api/access.hpp"
#include "api/address.hpp"
#include "core/base/query.hpp"

namespace {

using namespace ads;
using namespace ads::api;

void check(bool holds) {
    if (!holds) {
        std::abort();
    }
}

bool within(std::string_view part, std::string_view whole) {
    return part.empty() || (part.data() >= whole.data() &&
                            part.data() + part.size() <= whole.data() + whole.size());
}

void check_parts(const ScgiRequest& request, std::string_view bytes) {
    check(within(request.body, bytes) && request.body.size() <= kMostBody);
    for (const auto& [name, value] : request.variables) {
        check(!name.empty() && within(name, bytes) && within(value, bytes));
        check(name.starts_with("HTTP_") || !request.repeated(name));
    }
}

void check_address(std::string_view uri) {
    if (const auto address = read_address(uri, "/console/api")) {
        check(!address->segments.empty());
        for (const auto& segment : address->segments) {
            check(!segment.empty() && segment != "." && segment != "..");
            check(valid_utf8(segment) && segment.find('\0') == segment.npos);
        }
    }
}

void check_access(const ScgiRequest& request) {
    const AccessRules rules{"a proof that is long enough", {"localhost"}};
    try {
        const Identity who = identify(request, rules);
        check(!who.user.empty());
        check((who.role == Role::advertiser) == !who.advertiser.empty());
    } catch (const Refusal& e) {
        check(e.status >= 400 && e.status < 500);
    }
    try {
        check_origin(request, rules);
    } catch (const Refusal& e) {
        check(e.status >= 400 && e.status < 500);
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    // As large as it is and no larger: the sanitizer watches its end.
    const std::unique_ptr<char[]> copy(new char[size]);
    std::copy(data, data + size, copy.get());
    const std::string_view bytes(copy.get(), size);
    ScgiRequest request;
    const ScgiState state = read_scgi(bytes, request);
    if (state == ScgiState::complete) {
        check_parts(request, bytes);
        check_address(request.get("REQUEST_URI"));
        check_access(request);
    }
    // What is only the beginning of a request that is complete is not taken for one, nor refused.
    ScgiRequest part;
    for (size_t cut = 0; state == ScgiState::complete && cut < std::min<size_t>(size, 64); cut++) {
        check(read_scgi(bytes.substr(0, size - 1 - cut), part) == ScgiState::incomplete);
    }
    check_address(bytes);
    return 0;
}
