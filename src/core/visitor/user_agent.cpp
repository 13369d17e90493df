#include "core/visitor/user_agent.hpp"

#include <array>
#include <cstdint>

namespace ads {

namespace {

// The device that a word indicates. The strongest one found decides; Android
// without "Mobile" is a tablet by its maker's own rule.
enum Sign : uint8_t { kNothing = 0, kAndroid = 1, kMobile = 2, kTablet = 4, kTv = 8, kBot = 16 };

struct Word {
    std::string_view text;  // lower case
    Sign sign;
};

constexpr Word kWords[] = {
    {"android", kAndroid},
    {"mobile", kMobile},
    {"iphone", kMobile},
    {"ipod", kMobile},
    {"mobi", kMobile},
    {"phone", kMobile},
    {"blackberry", kMobile},
    {"opera mini", kMobile},
    {"ipad", kTablet},
    {"tablet", kTablet},
    {"kindle", kTablet},
    {"silk/", kTablet},
    {"playbook", kTablet},
    {"smart-tv", kTv},
    {"smarttv", kTv},
    {"googletv", kTv},
    {"google tv", kTv},
    {"appletv", kTv},
    {"apple tv", kTv},
    {"hbbtv", kTv},
    {"netcast", kTv},
    {"web0s", kTv},
    {"webos.tv", kTv},
    {"roku", kTv},
    {"crkey", kTv},
    {"bravia", kTv},
    {"tizen tv", kTv},
    {"android tv", kTv},
    {"viera", kTv},
    {" aft", kTv},
    {"bot", kBot},
    {"crawl", kBot},
    {"spider", kBot},
    {"slurp", kBot},
    {"headless", kBot},
    {"curl/", kBot},
    {"wget/", kBot},
    {"python", kBot},
    {"axios/", kBot},
    {"node-fetch", kBot},
    {"postman", kBot},
    {"ia_archiver", kBot},
    {"google-inspection", kBot},
    {"apis-google", kBot},
    {"googleother", kBot},
    {"phantomjs", kBot},
    {"java/", kBot},
    {"go-http", kBot},
    {"okhttp", kBot},
    {"libwww-perl", kBot},
    {"facebookexternal", kBot},
    {"mediapartners", kBot},
    {"lighthouse", kBot},
    {"pingdom", kBot},
    {"monitor", kBot},
    {"scrapy", kBot},
};

// A maker of phones.
constexpr std::string_view kNoBot = "cubot";

constexpr char lower(char c) noexcept {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
}

// The characters that begin a word, so that most positions cost one look-up.
constexpr auto kBegins = [] {
    std::array<bool, 256> begins{};
    for (const auto& word : kWords) {
        begins[static_cast<unsigned char>(word.text[0])] = true;
        begins[static_cast<unsigned char>(word.text[0] >= 'a' ? word.text[0] - 32 : word.text[0])] =
            true;
    }
    return begins;
}();

bool starts(std::string_view text, std::string_view word) noexcept {
    if (text.size() < word.size()) {
        return false;
    }
    for (size_t i = 0; i < word.size(); i++) {
        if (lower(text[i]) != word[i]) {
            return false;
        }
    }
    return true;
}

}  // namespace

Device device_of(std::string_view agent) noexcept {
    unsigned signs = kNothing;
    agent = agent.substr(0, 1024);
    for (size_t i = 0; i < agent.size(); i++) {
        if (starts(agent.substr(i), kNoBot)) {
            i += kNoBot.size() - 1;
            continue;
        }
        if (!kBegins[static_cast<unsigned char>(agent[i])]) {
            continue;
        }
        for (const auto& word : kWords) {
            if (lower(agent[i]) == word.text[0] && starts(agent.substr(i), word.text)) {
                signs |= word.sign;
            }
        }
    }
    if ((signs & kBot) != 0) {
        return Device::bot;
    }
    if ((signs & kTv) != 0) {
        return Device::tv;
    }
    if ((signs & kTablet) != 0 || ((signs & kAndroid) != 0 && (signs & kMobile) == 0)) {
        return Device::tablet;
    }
    return (signs & (kMobile | kAndroid)) != 0 ? Device::mobile : Device::desktop;
}

}  // namespace ads
