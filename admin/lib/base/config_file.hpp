// Settings of the command, of a user or a machine.
#pragma once

#include <string>

namespace ads::admin {

// A setting, and its configuration file.
struct Configured {
    std::string value;
    std::string file;
};

// "KEY = VALUE" of ~/.config/nginx-ads.conf, else of /etc/nginx-ads.conf; empty if neither has it.
// Throws Failure if a file is invalid.
Configured configured(const std::string& key);

}  // namespace ads::admin
