#include "io/run_mark.hpp"

#include <cinttypes>
#include <cstdio>

#include "core/base/hash.hpp"
#include "io/file.hpp"
#include "io/process.hpp"

namespace ads {

std::string run_mark_path(const std::string& folder, const std::string& state) {
    char name[32];
    std::snprintf(name, sizeof name, "/%016" PRIx64, fnv1a64(state));
    return folder + name;
}

// Where a folder is kept over a boot, the file names the boot of which it is.
std::optional<RunMark> read_run_mark(const std::string& path) {
    std::string text;
    RunMark mark;
    char boot[64];
    if (read_own_file(path, text) != 0 ||
        std::sscanf(text.c_str(), "%63s %" SCNu64 " %" SCNu64, boot, &mark.instance,
                    &mark.sequence) != 3 ||
        boot != boot_id()) {
        return {};
    }
    return mark;
}

int write_run_mark(const std::string& path, const RunMark& mark) {
    return replace_file(path, boot_id() + " " + std::to_string(mark.instance) + " " +
                                  std::to_string(mark.sequence) + "\n");
}

}  // namespace ads
