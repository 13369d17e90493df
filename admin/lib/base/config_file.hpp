// The settings that a person or a machine has for the command.
#pragma once

#include <string>

namespace ads::admin {

// A setting, and its configuration file.
struct Configured {
    std::string value;
    std::string file;
};

// "KEY = VALUE" of ~/.config/nginx-ads.conf, else of /etc/nginx-ads.conf; empty
// if neither says. Throws Failure for a file that cannot be understood.
Configured configured(const std::string& key);

}  // namespace ads::admin
