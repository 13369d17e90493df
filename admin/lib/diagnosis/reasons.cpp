#include "lib/diagnosis/reasons.hpp"

#include <array>

namespace ads::admin {

namespace {

constexpr auto kWords = std::to_array<Words>({
    {"it was served", ""},
    {"the placement, the campaign, the ad group or all its creatives are not active",
     "set their status to active; a creative of weight 0 is never shown, either"},
    {"it is before its start or after its end",
     "look at start and end of the ad group and of its campaign"},
    {"targeting.schedule is closed at this hour",
     "its days and times are those of the campaign's timezone"},
    {"no creative has the size and type of the placement",
     "add a creative with the placement's width, height and one of its types"},
    {"its price is below the placement's floor_cents",
     "raise the price or lower the floor; cpc and cpa are compared by what they delivered"},
    {"its weight is 0", "give it a weight of 1 or more"},
    {"the visitor's device is not among targeting.devices",
     "the device is what ads_device says, else what the user agent is taken for"},
    {"the visitor's country is not among targeting.geos",
     "if all are refused, check that ads_geo gives codes like US or US-CA"},
    {"the visitor's language is not among targeting.languages",
     "the language is what ads_language says, else the first of Accept-Language"},
    {"a key of targeting.keys has none of its values in the request",
     "check what the page sends as kv.NAME=VALUE, and ads_key"},
    {"no pattern of targeting.urls.include matches the page, or one of exclude does",
     "the page is url= of the request, else its Referer; patterns see the whole address"},
    {"the visitor has seen it as often as frequency_caps allow",
     "raise the caps if too few visitors are left"},
    {"all its creatives that fit are on the page already",
     "add creatives if it should fill several places of a page"},
    {"an ad of the same advertiser or category is on the page, and one of them is exclusive",
     "look at exclusive and category of both"},
    {"its together set could not be filled as a whole",
     "each of the set needs a place on the page that it can be served in"},
    {"its pacing held it back at that moment", "that is how it lasts the whole day"},
    {"its budget or its daily cap is used up",
     "raise budget, daily_impression_cap or daily_click_cap if it should serve more today"},
    {"it could have been served, but another one was drawn",
     "raise its weight or its priority if that is too often"},
});

static_assert(kWords.size() == kCount<Reason>);

}  // namespace

const Words& words_of(Reason reason) noexcept {
    return kWords[static_cast<size_t>(reason)];
}

}  // namespace ads::admin
