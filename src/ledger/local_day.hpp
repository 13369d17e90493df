// A campaign's day.
#pragma once

#include "core/image/image.hpp"
#include "core/pacing/reservations.hpp"

namespace ads {

struct LocalDay {
    Day day = 0;
    Seconds begin = 0;
    Seconds reservation = 0;

    static LocalDay of(const Image& image, const CampaignRecord& campaign, Seconds at,
                       Seconds reservation) noexcept {
        LocalDay day{.reservation = reservation};
        day.day = image.local_day(campaign, at, day.begin);
        return day;
    }

    // The buckets of reservations: those of a daily limit end with the day, others
    // continue.
    pacing::BucketTimes times(bool daily) const noexcept {
        return pacing::BucketTimes::of(day, begin, reservation, daily);
    }
};

}  // namespace ads
