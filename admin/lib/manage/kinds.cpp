#include "lib/manage/kinds.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>

#include "lib/base/failure.hpp"
#include "lib/base/text.hpp"

namespace ads::admin {

namespace {

constexpr auto kWords = std::to_array<KindWords>({
    {"advertiser", "advertiser", "an", "advertisers", "advertisers", nullptr},
    {"campaign", "campaign", "a", "campaigns", "campaigns", nullptr},
    {"ad-group", "ad group", "an", "ad groups", "ad_groups", "campaign"},
    {"creative", "creative", "a", "creatives", "creatives", "ad_group"},
    {"placement", "placement", "a", "placements", "placements", nullptr},
    {"experiment", "experiment", "an", "experiments", "experiments", "ad_group"},
});
static_assert(kWords.size() == kKinds);

}  // namespace

const KindWords& words_of(Kind kind) {
    return kWords[static_cast<size_t>(kind)];
}

uint64_t id_of(Kind kind, const std::string& text) {
    uint64_t id = 0;
    const char* end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, id);
    if (read.ec != std::errc() || read.ptr != end || id == 0 || id > kMaxId) {
        throw Failure(
            Exit::usage,
            fmt::format("the id of {} {} must be a whole number from 1 to {}, not \"{}\".",
                        words_of(kind).article, words_of(kind).name, kMaxId, text));
    }
    return id;
}

std::string called(Kind kind, std::string_view id) {
    const bool text = kind == Kind::advertiser;
    return fmt::format("{} {}{}{}", words_of(kind).name, text ? "\"" : "", printable(id),
                       text ? "\"" : "");
}

Kind parent_kind(Kind kind) {
    return kind == Kind::ad_group   ? Kind::campaign
           : kind == Kind::campaign ? Kind::advertiser
                                    : Kind::ad_group;
}

}  // namespace ads::admin
