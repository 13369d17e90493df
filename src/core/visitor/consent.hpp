// Consent, from all signals of a request: a cookie of the site, an
// IAB TCF or GPP string, Global Privacy Control, and variables of the operator.
// Total on arbitrary bytes.
//
// Every source votes on two questions: whether identifiers may be kept, and whether
// visitor data may choose the ad. An absent source does not vote, a malformed one refuses.
// At least one yes is required, and one refusal wins. A source that occurs several times
// votes each time.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "core/visitor/gpp.hpp"
#include "core/visitor/tcf.hpp"

namespace ads {

enum class Vote : uint8_t { absent, no, yes };

// Reasons for a refusal, most specific first: of several, the first is reported.
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
    gpp_malformed,
    gpp_section,
    gpp_gpc,
    gpp_opt_out,
    gpp_child,
    gpp_targeted,
    gpp_sensitive,
    gpp_processing,
    gpp_no_notice,
    gpp_service_provider,
    cookie_malformed,
    cookie_refused,
    variable,
    absent,
};

template <>
struct Names<ConsentReason> {
    static constexpr auto list = std::to_array<std::string_view>({"ok",
                                                                  "gpc",
                                                                  "gpc_malformed",
                                                                  "tcf_malformed",
                                                                  "tcf_version",
                                                                  "tcf_policy",
                                                                  "tcf_global",
                                                                  "tcf_future",
                                                                  "tcf_too_old",
                                                                  "tcf_no_vendor",
                                                                  "tcf_not_disclosed",
                                                                  "tcf_not_consented",
                                                                  "tcf_restricted",
                                                                  "tcf_purposes",
                                                                  "gpp_malformed",
                                                                  "gpp_section",
                                                                  "gpp_gpc",
                                                                  "gpp_opt_out",
                                                                  "gpp_child",
                                                                  "gpp_targeted",
                                                                  "gpp_sensitive",
                                                                  "gpp_processing",
                                                                  "gpp_no_notice",
                                                                  "gpp_service_provider",
                                                                  "cookie_malformed",
                                                                  "cookie_refused",
                                                                  "variable",
                                                                  "absent"});
};

struct Consent {
    bool identifiers = false;  // session, user, frequency caps
    bool personalize = false;  // ads_key … personal
    ConsentReason reason = ConsentReason::absent;
};

// The vote of one source.
struct Ballot {
    Vote identifiers = Vote::absent;
    Vote personalize = Vote::absent;
    ConsentReason reason = ConsentReason::absent;
};

// The keys in the cookie's JSON, with dots for nested objects: "analytics", "preferences.ads".
struct CookieKeys {
    std::string_view identifiers = "analytics";
    std::string_view personalize = "marketing";
    bool optional = true;  // without a second path, the first is for both

    // "a.b", or "identifiers=a.b,personalize=c" with the second defaulting to the first.
    static std::optional<CookieKeys> parse(std::string_view text) noexcept;
    static CookieKeys both(std::string_view key) noexcept { return {key, key, false}; }
};

// The cookie's value: URL-encoded JSON. Only JSON true is a yes.
Ballot cookie_ballot(std::string_view cookie, const CookieKeys& keys) noexcept;

Ballot tcf_ballot(std::string_view text, VendorId vendor, Millis now) noexcept;

// A section of a GPP string that applies to the visitor.
Ballot gpp_ballot(const GppSection& section, VendorId vendor, Millis now) noexcept;

// The value of Sec-GPC: "1" refuses, "0" does not vote, anything else is malformed.
Ballot gpc_ballot(std::string_view value) noexcept;

// A variable of nginx: empty is absent; 1, true and yes are a yes.
Ballot variable_ballot(std::string_view value) noexcept;

inline constexpr std::string_view kConsentCookie = "consent_preferences";
inline constexpr std::string_view kTcfCookie = "euconsent-v2";
inline constexpr std::string_view kTcfParameter = "gdpr_consent";
// Of GPP: cookies, each also with "__" in front, and parameters of the query.
inline constexpr std::string_view kGppName = "gpp";
inline constexpr std::string_view kGppSectionsName = "gpp_sid";

// The sources to use.
struct ConsentSources {
    std::string_view cookie = kConsentCookie;  // empty: none
    CookieKeys cookie_keys;
    bool tcf = true;
    bool gpp = true;
    VendorId vendor = 0;
    bool gpc = true;
};

// Counts the votes in a request.
class ConsentCount {
public:
    ConsentCount(const ConsentSources& sources, Millis now) noexcept
        : sources_(sources), now_(now) {}

    void add(const Ballot& ballot) noexcept;

    // A GPP string, and the ids of the sections that apply ("2", "7,8"; -1: none).
    void add_gpp(std::string_view text) noexcept;
    void add_gpp_sections(std::string_view ids) noexcept;

    // Each of the request's headers "Cookie" and "Sec-GPC".
    void add_cookies(std::string_view header) noexcept;
    void add_gpc(std::string_view header) noexcept;

    // The query, as it was sent: pages hand on the TCF and GPP strings in it.
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

    struct Tallies {
        Tally identifiers;
        Tally personalize;

        void add(const Ballot& ballot) noexcept {
            identifiers.add(ballot.identifiers, ballot.reason);
            personalize.add(ballot.personalize, ballot.reason);
        }
    };

    // Which of them apply may be told after them: they vote at the end.
    struct SectionBallot {
        uint32_t id;
        Vote identifiers;
        Vote personalize;
        ConsentReason reason;
    };
    void add_gpp_ballots(Tallies& tallies) const noexcept;

    const ConsentSources& sources_;
    Millis now_;
    Tallies tallies_;
    uint32_t gpp_count_ = 0;
    bool gpp_said_ = false;                            // which sections apply
    bool gpp_all_ = false;                             // or that it is unknown
    uint64_t gpp_apply_ = 0;                           // a bit for each
    std::array<SectionBallot, kMostGppSections> gpp_;  // the first gpp_count_
};

}  // namespace ads
