// Lines for the log, from threads that do not write it themselves.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace ads {

enum class LogLevel : uint8_t { notice, warn, error };

using Say = std::function<void(LogLevel level, std::string text)>;

}  // namespace ads
