// Any bytes at all: parse() must answer, and a document that it finds nothing
// wrong with must really be usable.
#include <jansson.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/catalog/model.hpp"

namespace {

using namespace ads::catalog;

void check(bool holds) {
    if (!holds) {
        std::abort();
    }
}

void check_group(const AdGroup& group) {
    check(group.id != 0);
    for (const Creative& creative : group.creatives) {
        check(creative.id != 0 && !creative.click_url.empty());
        check(!creative.content.empty() && !creative.fields.empty());
        // It is put into a <script> element as it is.
        check(creative.content.find_first_of("<>&") == std::string::npos);
        check((creative.width == 0) == (creative.height == 0));
    }
    for (const Schedule& item : group.targeting.schedule) {
        check(item.days != 0 && item.days <= 0x7f);
        check(item.from < 1440 && item.to >= 1 && item.to <= 1440);
    }
    for (const FrequencyCap& cap : group.frequency_caps) {
        check(cap.count >= 1 && (cap.unit != ads::CapUnit::rolling || cap.seconds >= 1));
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const Parsed parsed = parse(text, 10);
    check(parsed.errors.size() <= 10);
    for (const Error& error : parsed.errors) {
        check(error.path.starts_with('$') && !error.message.empty());
    }
    if (!parsed.errors.empty()) {
        return 0;
    }
    // It is read in pieces: the whole must be JSON, too, as another parser knows it, with no key
    // twice.
    json_error_t why;
    json_t* const whole = json_loadb(text.data(), text.size(), JSON_REJECT_DUPLICATES, &why);
    check(whole != nullptr);
    json_decref(whole);
    for (const Placement& placement : parsed.document.placements) {
        check(!placement.id.empty());
    }
    for (const Campaign& campaign : parsed.document.campaigns) {
        check(campaign.id != 0);
        for (const AdGroup& group : campaign.ad_groups) {
            check_group(group);
        }
    }
    for (const Experiment& experiment : parsed.document.experiments) {
        check(experiment.variants.size() >= 2);
    }
    return 0;
}
