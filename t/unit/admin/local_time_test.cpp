// Dates and times of a campaign's time zone.
#include "lib/base/local_time.hpp"

#include <gtest/gtest.h>

#include "core/catalog/formats.hpp"

namespace ads::admin {
namespace {

using catalog::date_text;

std::string read(std::string_view text, const std::string& zone, Edge edge) {
    const auto when = parse_local(text, zone, edge);
    return when ? date_text(*when) : "none";
}

Seconds at(std::string_view text) {
    return *catalog::parse_date(text);
}

TEST(LocalTime, ADateIsAllOfItsDay) {
    EXPECT_EQ(read("2026-11-18", "UTC", Edge::start), "2026-11-18T00:00:00Z");
    EXPECT_EQ(read("2026-11-24", "UTC", Edge::end), "2026-11-25T00:00:00Z");
    EXPECT_EQ(read("2026-11-18", "Europe/Berlin", Edge::start), "2026-11-17T23:00:00Z");
    EXPECT_EQ(read("2026-11-24", "Europe/Berlin", Edge::end), "2026-11-24T23:00:00Z");
    EXPECT_EQ(read("2026-07-01", "America/New_York", Edge::end), "2026-07-02T04:00:00Z");
}

TEST(LocalTime, TimesAreTakenAsTheyAre) {
    EXPECT_EQ(read("2026-11-18 18:30", "Europe/Berlin", Edge::end), "2026-11-18T17:30:00Z");
    EXPECT_EQ(read("2026-11-18T18:30", "Europe/Berlin", Edge::start), "2026-11-18T17:30:00Z");
    EXPECT_EQ(read("2026-11-18 18:30:15", "UTC", Edge::start), "2026-11-18T18:30:15Z");
    EXPECT_EQ(read("2026-11-18T18:30:00-05:00", "Europe/Berlin", Edge::start),
              "2026-11-18T23:30:00Z");
}

TEST(LocalTime, AMissingMidnightIsTheDaysFirstInstant) {
    // At midnight the clocks went to 01:00.
    EXPECT_EQ(read("2018-11-04", "America/Sao_Paulo", Edge::start), "2018-11-04T03:00:00Z");
    EXPECT_EQ(read("2018-11-03", "America/Sao_Paulo", Edge::end), "2018-11-04T03:00:00Z");
    EXPECT_EQ(local_text(at("2018-11-04T03:00:00Z"), "America/Sao_Paulo", Edge::start),
              "2018-11-04");
    // A time that is skipped, and one that comes twice.
    EXPECT_EQ(read("2026-03-29 02:30", "Europe/Berlin", Edge::start), "2026-03-29T01:00:00Z");
    EXPECT_EQ(read("2026-10-25 02:30", "Europe/Berlin", Edge::start), "2026-10-25T00:30:00Z");
}

TEST(LocalTime, WhatIsShownIsReadAsTheSame) {
    for (const char* zone : {"UTC", "Europe/Berlin", "America/Sao_Paulo", "Asia/Kathmandu",
                             "Pacific/Apia", "America/St_Johns"}) {
        for (const Edge edge : {Edge::start, Edge::end}) {
            for (Seconds when = at("2018-10-20T00:00:00Z"); when < at("2018-11-20T00:00:00Z");
                 when += 1800) {
                EXPECT_EQ(parse_local(local_text(when, zone, edge), zone, edge), when)
                    << zone << ' ' << when << ' ' << local_text(when, zone, edge);
            }
        }
    }
    EXPECT_EQ(local_text(at("2026-11-24T23:00:00Z"), "Europe/Berlin", Edge::end), "2026-11-24");
    EXPECT_EQ(local_text(at("2026-11-24T17:30:00Z"), "Europe/Berlin", Edge::end),
              "2026-11-24 18:30");
    EXPECT_EQ(local_text(at("2026-10-25T01:30:00Z"), "Europe/Berlin", Edge::start),
              "2026-10-25T02:30:00+01:00");
}

TEST(LocalTime, AnotherZoneKeepsDatesAndTimes) {
    const Seconds start = *parse_local("2026-11-18", "Europe/Berlin", Edge::start);
    EXPECT_EQ(date_text(moved(start, "Europe/Berlin", "Asia/Tokyo")), "2026-11-17T15:00:00Z");
    const Seconds end = *parse_local("2018-11-03", "America/Sao_Paulo", Edge::end);
    EXPECT_EQ(date_text(moved(end, "America/Sao_Paulo", "UTC")), "2018-11-04T00:00:00Z");
    EXPECT_EQ(date_text(moved(at("2018-11-04T00:00:00Z"), "UTC", "America/Sao_Paulo")),
              "2018-11-04T03:00:00Z");
    const Seconds noon = *parse_local("2026-07-01 12:00", "Europe/Berlin", Edge::start);
    EXPECT_EQ(date_text(moved(noon, "Europe/Berlin", "America/New_York")), "2026-07-01T16:00:00Z");
}

TEST(LocalTime, NonsenseIsRefused) {
    for (const char* wrong :
         {"", "2026-11", "2026-13-01", "2026-02-30", "18.11.2026", "2026-11-18 24:00",
          "2026-11-18 18", "2026-11-18x18:30", "1969-12-31", "2101-01-01", "tomorrow"}) {
        EXPECT_EQ(parse_local(wrong, "UTC", Edge::start), std::nullopt) << wrong;
    }
    EXPECT_EQ(read("2026-11-18", "Etc/UTC", Edge::start), "2026-11-18T00:00:00Z");
}

}  // namespace
}  // namespace ads::admin
