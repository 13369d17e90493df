// Any bytes as a user agent: some device, the same one each time, in any case,
// with or without the cache.
#include "core/visitor/user_agent.hpp"

#include <cstdlib>
#include <string>

namespace {

using namespace ads;

void check(bool holds) {
    if (!holds) {
        std::abort();
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::string_view agent(reinterpret_cast<const char*>(data), size);
    const Device device = device_of(agent);
    check(static_cast<size_t>(device) < kCount<Device>);

    std::string upper(agent);
    for (char& c : upper) {
        c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
    }
    check(device_of(upper) == device);

    // A word more can only say more, and the strongest is a bot.
    if (size < 1000) {
        check(device_of(std::string(agent) + " Googlebot") == Device::bot);
        check(device != Device::bot || device_of(std::string(agent) + " iPad") == Device::bot);
    }

    static DeviceCache cache;
    const uint64_t hash = std::hash<std::string_view>()(agent) | 1;
    check(cache.find(hash, agent) == device);
    check(cache.find(hash, agent) == device);
    return 0;
}
