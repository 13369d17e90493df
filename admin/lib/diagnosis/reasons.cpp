#include "lib/diagnosis/reasons.hpp"

#include <array>

namespace ads::admin {

namespace {

constexpr auto kWords = std::to_array<Words>({
    {"it was served", ""},
    {"the placement, the campaign, the ad group or all its creatives are not active",
     "set their status to active; a creative of weight 0 is never served"},
    {"it is before its start or after its end",
     "check start and end of the ad group and of its campaign"},
    {"targeting.schedule is closed at this hour",
     "its days and times are in the campaign's timezone"},
    {"no creative has the size and type of the placement",
     "add a creative with the placement's width, height and one of its types"},
    {"its price is below the placement's floor_cents",
     "raise the price or lower the floor; cpc and cpa are compared by their delivery"},
    {"its weight is 0", "set a weight of 1 or more"},
    {"the visitor's device is not among targeting.devices",
     "the device is taken from ads_device, else from the user agent"},
    {"the visitor's country is not among targeting.geos",
     "if all are refused, check that ads_geo has codes such as US or US-CA"},
    {"the visitor's language is not among targeting.languages",
     "the language is taken from ads_language, else it is the first of Accept-Language"},
    {"the request has no matching value for a key of targeting.keys",
     "check the kv.NAME=VALUE that the page sends, and ads_key"},
    {"no pattern of targeting.urls.include matches the page, or one of exclude does",
     "the page is url= of the request, else its Referer; patterns match the whole URL"},
    {"the visitor has seen it as often as frequency_caps allow",
     "raise the caps if too few visitors remain"},
    {"all its creatives that fit are on the page already",
     "add creatives if it should fill several placements of a page"},
    {"an ad of the same advertiser or category is on the page, and one of them is exclusive",
     "check exclusive and category of both"},
    {"its together set could not be filled as a whole",
     "each ad group of the set requires a placement on the page"},
    {"pacing held it back at that moment", "this spreads it over the day"},
    {"its budget or its daily cap is exhausted",
     "raise budget, daily_impression_cap or daily_click_cap if it should serve more today"},
    {"this node of the fleet has no rights left to its budget or cap, and was not granted more yet",
     "ads_status shows what it holds and wants; nginx-ads fleet shows who has the rest"},
    {"it was eligible, but another ad group was drawn",
     "raise its weight or its priority if this is too frequent"},
});

static_assert(kWords.size() == kCount<Reason>);

}  // namespace

const Words& words_of(Reason reason) noexcept {
    return kWords[static_cast<size_t>(reason)];
}

}  // namespace ads::admin
