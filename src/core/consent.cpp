#include "core/consent.hpp"

#include <jansson.h>

#include <algorithm>
#include <array>
#include <memory>

#include "core/query.hpp"
#include "core/recent.hpp"

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
bool names_tcf(std::string_view name) noexcept {
    std::array<char, 3 * kTcfParameter.size()> text;
    std::string_view decoded = name;
    const bool escaped = name.find('%') != std::string_view::npos;
    return (!escaped || decode_component(name, text, decoded)) && decoded == kTcfParameter;
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

static Ballot read_cookie(std::string_view cookie, std::string_view path) noexcept {
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
    const json_t* at = root.get();
    while (at != nullptr && !path.empty()) {
        const size_t dot = std::min(path.find('.'), path.size());
        at = json_object_getn(at, path.data(), dot);
        path.remove_prefix(std::min(dot + 1, path.size()));
    }
    return json_is_true(at) ? both(Vote::yes, ConsentReason::ok)
                            : both(Vote::no, ConsentReason::cookie_refused);
}

Ballot cookie_ballot(std::string_view cookie, std::string_view path) noexcept {
    thread_local Recent<Ballot, 240, 32> recent;
    return recent.find(cookie, text_hash(path), [&] { return read_cookie(cookie, path); });
}

Ballot tcf_ballot(std::string_view text, VendorId vendor, Millis now) noexcept {
    const Tcf tcf = read_tcf(text, vendor, now);
    if (tcf.error != TcfError::none) {
        return both(Vote::no, reason_of(tcf.error));
    }
    return {tcf.identifiers ? Vote::yes : Vote::no, tcf.personalize ? Vote::yes : Vote::no,
            tcf.restricted ? ConsentReason::tcf_restricted : ConsentReason::tcf_purposes};
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
    identifiers_.add(ballot.identifiers, ballot.reason);
    personalize_.add(ballot.personalize, ballot.reason);
}

void ConsentCount::add_cookies(std::string_view header) noexcept {
    while (!header.empty()) {
        const size_t end = std::min(header.find(';'), header.size());
        const std::string_view pair = header.substr(0, end);
        header.remove_prefix(std::min(end + 1, header.size()));
        const size_t equals = std::min(pair.find('='), pair.size());
        const std::string_view name = trimmed(pair.substr(0, equals));
        const std::string_view value = trimmed(pair.substr(std::min(equals + 1, pair.size())));
        if (name.empty()) {
            continue;
        }
        if (name == sources_.cookie) {
            add(cookie_ballot(value, sources_.cookie_key));
        }
        if (sources_.tcf && name == kTcfCookie) {
            add(tcf_ballot(value, sources_.vendor, now_));
        }
    }
}

void ConsentCount::add_gpc(std::string_view header) noexcept {
    if (sources_.gpc) {
        add(gpc_ballot(header));
    }
}

void ConsentCount::add_query(std::string_view query) noexcept {
    // Most have none of it.
    const auto has = [&](auto what) { return query.find(what) != std::string_view::npos; };
    if (!sources_.tcf || (!has(kTcfParameter) && !has('%'))) {
        return;
    }
    while (!query.empty()) {
        const size_t end = std::min(query.find('&'), query.size());
        const std::string_view pair = query.substr(0, end);
        query.remove_prefix(std::min(end + 1, query.size()));
        const size_t equals = std::min(pair.find('='), pair.size());
        if (names_tcf(pair.substr(0, equals))) {
            // Nothing in a good one has to be escaped.
            add(tcf_ballot(pair.substr(std::min(equals + 1, pair.size())), sources_.vendor, now_));
        }
    }
}

Consent ConsentCount::verdict() const noexcept {
    Consent consent{identifiers_.granted(), personalize_.granted(), ConsentReason::ok};
    if (!consent.identifiers) {
        consent.reason = identifiers_.reason;
    } else if (!consent.personalize) {
        consent.reason = personalize_.reason;
    }
    return consent;
}

}  // namespace ads
