#include "core/visitor/consent.hpp"

#include <jansson.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <memory>
#include <span>

#include "core/base/query.hpp"
#include "core/base/recent.hpp"

namespace ads {

namespace {

constexpr size_t kLongestCookie = 4096;

struct Release {
    void operator()(json_t* json) const noexcept { json_decref(json); }
};

Ballot both(Vote vote, ConsentReason reason) noexcept {
    return {vote, vote, reason};
}

std::string_view trimmed(std::string_view text) noexcept {
    constexpr std::string_view kBlank = " \t";
    const size_t begin = std::min(text.find_first_not_of(kBlank), text.size());
    const size_t end = text.find_last_not_of(kBlank) + 1;
    return text.substr(begin, end - begin);
}

// Also where it is written with escapes: it is the same parameter then.
bool names(std::string_view name, std::string_view parameter) noexcept {
    std::array<char, 3 * kTcfParameter.size()> text;
    std::string_view decoded = name;
    const bool escaped = name.find('%') != std::string_view::npos;
    return (!escaped || decode_component(name, text, decoded)) && decoded == parameter;
}

// Most queries have no consent parameter. Only beginnings are compared: values are long.
bool may_name_consent(std::string_view query) noexcept {
    constexpr char kFirst = 'g';
    static_assert(kTcfParameter.front() == kFirst && kGppName.front() == kFirst &&
                  kGppSectionsName.front() == kFirst);
    for (size_t at = 0; at < query.size();) {
        if (query[at] == kFirst || query[at] == '%') {
            return true;
        }
        const size_t end = query.find('&', at);
        if (end == std::string_view::npos) {
            return false;
        }
        at = end + 1;
    }
    return false;
}

// f(name, value) for each pair of a query or of a header "Cookie".
template <class F>
void each_pair(std::string_view text, char separator, F f) noexcept {
    while (!text.empty()) {
        const size_t end = std::min(text.find(separator), text.size());
        const std::string_view pair = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        const size_t equals = std::min(pair.find('='), pair.size());
        f(pair.substr(0, equals), pair.substr(std::min(equals + 1, pair.size())));
    }
}

bool any(std::span<const uint8_t> fields, uint8_t value) noexcept {
    return std::find(fields.begin(), fields.end(), value) != fields.end();
}

ConsentReason reason_of(TcfError error) noexcept {
    switch (error) {
        case TcfError::version:
            return ConsentReason::tcf_version;
        case TcfError::policy:
            return ConsentReason::tcf_policy;
        case TcfError::global:
            return ConsentReason::tcf_global;
        case TcfError::future:
            return ConsentReason::tcf_future;
        case TcfError::too_old:
            return ConsentReason::tcf_too_old;
        case TcfError::no_vendor:
            return ConsentReason::tcf_no_vendor;
        case TcfError::not_disclosed:
            return ConsentReason::tcf_not_disclosed;
        case TcfError::not_consented:
            return ConsentReason::tcf_not_consented;
        default:
            return ConsentReason::tcf_malformed;
    }
}

}  // namespace

static const json_t* member(const json_t* at, std::string_view path) noexcept {
    while (at != nullptr && !path.empty()) {
        const size_t dot = std::min(path.find('.'), path.size());
        at = json_object_getn(at, path.data(), dot);
        path.remove_prefix(std::min(dot + 1, path.size()));
    }
    return at;
}

static Ballot read_cookie(std::string_view cookie, const CookieKeys& keys) noexcept {
    std::array<char, kLongestCookie> text;
    std::string_view decoded;
    if (cookie.size() > text.size() || !decode_component(cookie, text, decoded)) {
        return both(Vote::no, ConsentReason::cookie_malformed);
    }
    // Duplicates mean no, and so does anything after the value.
    const std::unique_ptr<json_t, Release> root(
        json_loadb(decoded.data(), decoded.size(), JSON_REJECT_DUPLICATES, nullptr));
    if (root == nullptr) {
        return both(Vote::no, ConsentReason::cookie_malformed);
    }
    const json_t* identifiers = member(root.get(), keys.identifiers);
    const json_t* personalize = member(root.get(), keys.personalize);
    if (personalize == nullptr && keys.optional) {
        personalize = identifiers;
    }
    const auto vote = [](const json_t* json) { return json_is_true(json) ? Vote::yes : Vote::no; };
    return {vote(identifiers), vote(personalize), ConsentReason::cookie_refused};
}

std::optional<CookieKeys> CookieKeys::parse(std::string_view text) noexcept {
    constexpr std::string_view kFirst = "identifiers=";
    constexpr std::string_view kSecond = ",personalize=";
    if (!text.starts_with(kFirst)) {
        const bool good = !text.empty() && text.find_first_of("=,") == text.npos;
        return good ? std::optional(both(text)) : std::nullopt;
    }
    text.remove_prefix(kFirst.size());
    const size_t second = text.find(kSecond);
    CookieKeys keys = both(text.substr(0, second));
    if (second != text.npos) {
        keys.personalize = text.substr(second + kSecond.size());
    }
    const auto good = [](std::string_view key) {
        return !key.empty() && key.find_first_of("=,") == key.npos;
    };
    return good(keys.identifiers) && good(keys.personalize) ? std::optional(keys) : std::nullopt;
}

Ballot cookie_ballot(std::string_view cookie, const CookieKeys& keys) noexcept {
    thread_local Recent<Ballot, 240, 32> recent;
    const uint64_t tag =
        text_hash(keys.identifiers) * 3 + text_hash(keys.personalize) * 2 + (keys.optional ? 1 : 0);
    return recent.find(cookie, tag, [&] { return read_cookie(cookie, keys); });
}

Ballot tcf_ballot(std::string_view text, VendorId vendor, Millis now) noexcept {
    const Tcf tcf = read_tcf(text, vendor, now);
    if (tcf.error != TcfError::none) {
        return both(Vote::no, reason_of(tcf.error));
    }
    return {tcf.identifiers ? Vote::yes : Vote::no, tcf.personalize ? Vote::yes : Vote::no,
            tcf.restricted ? ConsentReason::tcf_restricted : ConsentReason::tcf_purposes};
}

// US law lets a visitor opt out. To opt out of sale or of sharing is what Sec-GPC says, and
// means the same here: neither. To opt out of targeted advertising leaves identifiers, which
// caps and counts need. A yes needs a visitor who was asked and did not opt out.
static Ballot us_ballot(const UsSection& us) noexcept {
    if (us.gpc) {
        return both(Vote::no, ConsentReason::gpp_gpc);
    }
    if (us.sale == kOptedOut || us.sharing == kOptedOut) {
        return both(Vote::no, ConsentReason::gpp_opt_out);
    }
    if (any(us.children, kNoConsent)) {
        return both(Vote::no, ConsentReason::gpp_child);
    }
    const bool asked = us.sharing == kDidNotOptOut || us.targeted == kDidNotOptOut;
    Ballot ballot{asked || us.sale == kDidNotOptOut ? Vote::yes : Vote::absent,
                  asked ? Vote::yes : Vote::absent, ConsentReason::ok};
    const auto refuse = [&](bool refused, ConsentReason reason) {
        if (refused && ballot.personalize != Vote::no) {
            ballot.personalize = Vote::no;
            ballot.reason = reason;
        }
    };
    refuse(us.targeted == kOptedOut, ConsentReason::gpp_targeted);
    refuse(any(us.sensitive, kNoConsent), ConsentReason::gpp_sensitive);
    refuse(us.processing == kNoConsent, ConsentReason::gpp_processing);
    refuse(any(us.notices, kNoNotice), ConsentReason::gpp_no_notice);
    refuse(us.service_provider == 1, ConsentReason::gpp_service_provider);
    return ballot;
}

Ballot gpp_ballot(const GppSection& section, VendorId vendor, Millis now) noexcept {
    if (section.id == kGppTcfEu) {
        return tcf_ballot(section.text, vendor, now);
    }
    if (gpp_section_name(section.id).empty()) {
        return both(Vote::no, ConsentReason::gpp_section);
    }
    UsSection us;
    return read_us_section(section, us) ? us_ballot(us)
                                        : both(Vote::no, ConsentReason::gpp_malformed);
}

Ballot gpc_ballot(std::string_view value) noexcept {
    value = trimmed(value);
    if (value == "0") {
        return {};
    }
    return both(Vote::no, value == "1" ? ConsentReason::gpc : ConsentReason::gpc_malformed);
}

Ballot variable_ballot(std::string_view value) noexcept {
    if (value.empty()) {
        return {};
    }
    return value == "1" || value == "true" || value == "yes"
               ? both(Vote::yes, ConsentReason::ok)
               : both(Vote::no, ConsentReason::variable);
}

void ConsentCount::Tally::add(Vote vote, ConsentReason why) noexcept {
    yes = yes || vote == Vote::yes;
    if (vote == Vote::no) {
        no = true;
        reason = std::min(reason, why);
    }
}

void ConsentCount::add(const Ballot& ballot) noexcept {
    tallies_.add(ballot);
}

void ConsentCount::add_gpp(std::string_view text) noexcept {
    std::array<char, kLongestGpp> buffer;
    GppString gpp;
    const bool escaped = text.find('%') != text.npos;  // some escape the "~"
    if ((escaped && !decode_component(text, buffer, text)) || !read_gpp(text, gpp) ||
        gpp.count > gpp_.size() - gpp_count_) {
        add(both(Vote::no, ConsentReason::gpp_malformed));
        return;
    }
    for (const auto& section : gpp.sections()) {
        const Ballot ballot = gpp_ballot(section, sources_.vendor, now_);
        gpp_[gpp_count_++] = {section.id, ballot.identifiers, ballot.personalize, ballot.reason};
    }
}

void ConsentCount::add_gpp_sections(std::string_view ids) noexcept {
    std::array<char, 256> buffer;
    if (ids.find('%') != ids.npos && !decode_component(ids, buffer, ids)) {
        ids = {};
    }
    gpp_said_ = true;
    do {
        const size_t end = std::min(ids.find_first_of(",_"), ids.size());
        int id = 0;
        const auto [at, error] = std::from_chars(ids.data(), ids.data() + end, id);
        if (error != std::errc() || at != ids.data() + end || id < -1 || id > 63) {
            add(both(Vote::no, ConsentReason::gpp_malformed));
            return;
        }
        gpp_all_ = gpp_all_ || id == 0;
        gpp_apply_ |= id > 0 ? uint64_t{1} << id : 0;
        ids.remove_prefix(std::min(end + 1, ids.size()));
    } while (!ids.empty());
}

void ConsentCount::add_gpp_ballots(Tallies& tallies) const noexcept {
    const bool all = !gpp_said_ || gpp_all_;
    uint64_t missing = gpp_apply_;
    for (uint32_t i = 0; i < gpp_count_; i++) {
        const auto& [id, identifiers, personalize, reason] = gpp_[i];
        const uint64_t bit = id < 64 ? uint64_t{1} << id : 0;
        if (all || (gpp_apply_ & bit) != 0) {
            tallies.add({identifiers, personalize, reason});
        }
        missing &= ~bit;
    }
    if (missing != 0) {
        tallies.add(both(Vote::no, ConsentReason::gpp_section));
    }
}

void ConsentCount::add_cookies(std::string_view header) noexcept {
    each_pair(header, ';', [&](std::string_view name, std::string_view value) {
        name = trimmed(name);
        value = trimmed(value);
        if (name.empty()) {
            return;
        }
        if (name == sources_.cookie) {
            add(cookie_ballot(value, sources_.cookie_keys));
        }
        if (sources_.tcf && name == kTcfCookie) {
            add(tcf_ballot(value, sources_.vendor, now_));
        }
        if (!sources_.gpp) {
            return;
        }
        name.remove_prefix(name.starts_with("__") ? 2 : 0);
        if (name == kGppName) {
            add_gpp(value);
        } else if (name == kGppSectionsName) {
            add_gpp_sections(value);
        }
    });
}

void ConsentCount::add_gpc(std::string_view header) noexcept {
    if (sources_.gpc) {
        add(gpc_ballot(header));
    }
}

void ConsentCount::add_query(std::string_view query) noexcept {
    const bool tcf = sources_.tcf;
    const bool gpp = sources_.gpp;
    if ((!tcf && !gpp) || !may_name_consent(query)) {
        return;
    }
    each_pair(query, '&', [&](std::string_view name, std::string_view value) {
        if (tcf && names(name, kTcfParameter)) {
            // Nothing in a good one has to be escaped.
            add(tcf_ballot(value, sources_.vendor, now_));
        } else if (gpp && names(name, kGppName)) {
            add_gpp(value);
        } else if (gpp && names(name, kGppSectionsName)) {
            add_gpp_sections(value);
        }
    });
}

Consent ConsentCount::verdict() const noexcept {
    Tallies tallies = tallies_;
    if (gpp_count_ > 0 || gpp_said_) {
        add_gpp_ballots(tallies);
    }
    const auto& [identifiers, personalize] = tallies;
    Consent consent{identifiers.granted(), personalize.granted(), ConsentReason::ok};
    if (!consent.identifiers) {
        consent.reason = identifiers.reason;
    } else if (!consent.personalize) {
        consent.reason = personalize.reason;
    }
    return consent;
}

}  // namespace ads
