// Consent, from all that a request tells of it: a cookie of the site's own, an
// IAB TCF string, Global Privacy Control, and what the operator names. Total on
// arbitrary bytes.
//
// Every source votes on two questions: may identifiers be kept, and may what is
// known of the visitor choose the ad. An absent source does not vote, a
// malformed one is a no, at least one yes is needed and one no wins. A source
// that is there several times votes each time.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/tcf.hpp"

namespace ads {

enum class Vote : uint8_t { absent, no, yes };

// Why not, most telling first: of several reasons the first one is told.
enum class ConsentReason : uint8_t {
    ok,
    gpc,
    gpc_malformed,
    tcf_malformed,
    tcf_version,
    tcf_policy,
    tcf_global,
    tcf_future,
    tcf_too_old,
    tcf_no_vendor,
    tcf_not_disclosed,
    tcf_not_consented,
    tcf_restricted,
    tcf_purposes,
    cookie_malformed,
    cookie_refused,
    variable,
    absent,
};

template <>
struct Names<ConsentReason> {
    static constexpr auto list = std::to_array<std::string_view>(
        {"ok", "gpc", "gpc_malformed", "tcf_malformed", "tcf_version", "tcf_policy", "tcf_global",
         "tcf_future", "tcf_too_old", "tcf_no_vendor", "tcf_not_disclosed", "tcf_not_consented",
         "tcf_restricted", "tcf_purposes", "cookie_malformed", "cookie_refused", "variable",
         "absent"});
};

struct Consent {
    bool identifiers = false;  // session, user, frequency caps
    bool personalize = false;  // ads_key … personal
    ConsentReason reason = ConsentReason::absent;
};

// What one source says.
struct Ballot {
    Vote identifiers = Vote::absent;
    Vote personalize = Vote::absent;
    ConsentReason reason = ConsentReason::absent;
};

// The cookie's value: URL-encoded JSON. `path` is the key, with dots for nested
// objects: "analytics", "preferences.ads". Only JSON true is a yes.
Ballot cookie_ballot(std::string_view cookie, std::string_view path) noexcept;

Ballot tcf_ballot(std::string_view text, VendorId vendor, Millis now) noexcept;

// The value of Sec-GPC: "1" refuses, "0" says nothing, all else is malformed.
Ballot gpc_ballot(std::string_view value) noexcept;

// A variable of nginx: empty is absent; 1, true and yes are a yes.
Ballot variable_ballot(std::string_view value) noexcept;

inline constexpr std::string_view kConsentCookie = "consent_preferences";
inline constexpr std::string_view kConsentKey = "analytics";
inline constexpr std::string_view kTcfCookie = "euconsent-v2";
inline constexpr std::string_view kTcfParameter = "gdpr_consent";

// Which sources are asked.
struct ConsentSources {
    std::string_view cookie = kConsentCookie;  // empty: none
    std::string_view cookie_key = kConsentKey;
    bool tcf = true;
    VendorId vendor = 0;
    bool gpc = true;
};

// Counts the votes in a request.
class ConsentCount {
public:
    ConsentCount(const ConsentSources& sources, Millis now) noexcept
        : sources_(sources), now_(now) {}

    void add(const Ballot& ballot) noexcept;

    // Each of the request's headers "Cookie" and "Sec-GPC".
    void add_cookies(std::string_view header) noexcept;
    void add_gpc(std::string_view header) noexcept;

    // The query, as it was sent: pages hand on the TCF string in it.
    void add_query(std::string_view query) noexcept;

    Consent verdict() const noexcept;

private:
    // Of one question.
    struct Tally {
        bool yes = false;
        bool no = false;
        ConsentReason reason = ConsentReason::absent;

        void add(Vote vote, ConsentReason why) noexcept;
        bool granted() const noexcept { return yes && !no; }
    };

    const ConsentSources& sources_;
    Millis now_;
    Tally identifiers_;
    Tally personalize_;
};

}  // namespace ads
