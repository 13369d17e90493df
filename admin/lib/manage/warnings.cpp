// What an edit brings that cannot be served.
#include <fmt/format.h>

#include <algorithm>

#include "core/catalog/warnings.hpp"
#include "lib/base/text.hpp"
#include "lib/manage/edits.hpp"

namespace ads::admin {

namespace {

std::vector<std::string> warnings_of(const std::string& text) {
    const auto parsed = catalog::parse(text, 1);
    const Json document(json_loadb(text.data(), text.size(), 0, nullptr));
    std::vector<std::string> list;
    for (const auto& warning : catalog::warnings(parsed.document).errors) {
        const bool sentence = warning.message.starts_with("is ");
        list.push_back(fmt::format("{}{}{}", readable(warning.path, document.get()),
                                   sentence ? " " : ": ", warning.message));
    }
    return list;
}

}  // namespace

std::vector<std::string> new_warnings(const std::string& before, const std::string& after) {
    auto list = warnings_of(after);
    if (!list.empty()) {
        const auto known = warnings_of(before);
        std::erase_if(list, [&](const std::string& warning) {
            return std::find(known.begin(), known.end(), warning) != known.end();
        });
    }
    return list;
}

void Edits::warn_of(std::string warning) {
    if (std::find(warnings.begin(), warnings.end(), warning) == warnings.end()) {
        warnings.push_back(std::move(warning));
    }
}

void Edits::check_warnings() const {
    if (!strict_ || warnings.empty()) {
        return;
    }
    const size_t more = warnings.size() - 1;
    throw Failure(
        Exit::bad_input,
        fmt::format("{}{}; refused because of --strict.", warnings.front(),
                    more == 0 ? "" : fmt::format(" (and {})", counted(more, "more warning"))));
}

}  // namespace ads::admin
