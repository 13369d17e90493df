// Replies of a server that may send anything, in parts of any size.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "io/redis/resp.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    constexpr size_t kMostBytes = 4096;
    constexpr size_t kMostNodes = 64;
    if (size == 0) {
        return 0;
    }
    ads::RespReader reader(kMostBytes, kMostNodes);
    const size_t part = 1 + data[0];
    std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
    while (!rest.empty()) {
        const size_t n = std::min(part, rest.size());
        // A copy of its own size, so that reading past its end shows.
        const std::string bytes(rest.substr(0, n));
        rest.remove_prefix(n);
        if (!reader.feed(bytes)) {
            return 0;
        }
        for (;;) {
            const auto result = reader.next();
            if (result == ads::RespReader::Result::broken) {
                return 0;
            }
            if (result == ads::RespReader::Result::more) {
                break;
            }
            size_t bytes_of_text = 0;
            for (const auto& node : reader.nodes()) {
                bytes_of_text += reader.text(node).size();
            }
            if (reader.nodes().empty() || reader.nodes().size() > kMostNodes ||
                bytes_of_text > kMostBytes) {
                std::abort();
            }
        }
    }
    return 0;
}
