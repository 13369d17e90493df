// What a server of Redis Cluster may say of others: errors that redirect, and replies to
// CLUSTER SLOTS.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "io/redis/cluster.hpp"

namespace {

void check(bool good) {
    if (!good) {
        std::abort();
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::string text(reinterpret_cast<const char*>(data), size);
    check(ads::redis_slot(text) < ads::kRedisSlots);
    if (const auto redirect = ads::parse_redirect(text)) {
        check(redirect->slot < ads::kRedisSlots && redirect->to.port != 0 &&
              redirect->to.ip.size() < 46);
    }
    ads::RespReader reader(64 << 10, 4096);
    if (!reader.feed(text)) {
        return 0;
    }
    ads::RedisSlots slots;
    while (reader.next() == ads::RespReader::Result::reply) {
        bool any = false;
        const bool read = slots.read(reader, {"127.0.0.1", 1});
        check(slots.size() <= ads::RedisSlots::kMostServers);
        for (uint16_t slot = 0; slot < ads::kRedisSlots; slot++) {
            const uint8_t server = slots.server(slot);
            if (server != ads::RedisSlots::kNone) {
                check(server < slots.size() && slots.address(server).port != 0);
                any = true;
            }
        }
        check(any || !read);
    }
    return 0;
}
