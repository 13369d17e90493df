#include "ngx/request/ad_request.hpp"

#include <time.h>

#include <algorithm>

#include "core/decide/decide.hpp"
#include "core/decide/explain.hpp"
#include "ngx/worker/worker.hpp"

namespace ads::ngx {

namespace {

constexpr uint32_t kSampled = 32;  // candidates examined per request

int64_t monotonic_ns() noexcept {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

Token token_of(const Image& image, const Pick& pick, uint64_t serve, const AdRequest& a) noexcept {
    const auto& group = image.groups()[pick.group];
    Token token;
    token.issued = a.request.now;
    token.serve = serve;
    token.flags = static_cast<uint8_t>((a.visitor.consent ? kTokenConsent : 0) |
                                       (a.request.invalid ? kTokenInvalid : 0) |
                                       (pick.by_session ? kTokenExperiment : 0));
    token.campaign = image.campaign_of(group).id;
    token.ad_group = group.id;
    token.creative = image.creatives()[pick.creative].id;
    token.experiment = pick.experiment;
    token.reserve = std::min(pick.reserved, kTokenMaxMoney);
    token.placement = image.placements()[pick.placement].hash;
    token.agent = a.visitor.agent;
    token.node = a.worker.process.node();
    return token;
}

Event serve_event(const Image& image, const Pick& pick, const Token& token,
                  const Visitor& visitor) noexcept {
    return {.type = EventType::serve,
            .invalid = visitor.invalid,
            .device = visitor.device,
            .consent = visitor.consent,
            .time = token.issued,
            .issued = token.issued,
            .serve = token.serve,
            .campaign = token.campaign,
            .ad_group = token.ad_group,
            .creative = token.creative,
            .experiment = token.experiment,
            .node = token.node,
            .placement = image.text(image.placements()[pick.placement].slug),
            .country = visitor.country(),
            .session = visitor.session.empty() ? kAnonymous : visitor.session,
            .user = visitor.user};
}

// Turns the picks into ads with tokens, and their serves into events; false
// without memory.
bool make_ads(AdRequest& a) noexcept {
    const Image& image = a.worker.catalog.image();
    const Key& key = a.worker.process.ring().signer();
    const size_t before = a.ctx->served_count;  // of the same page
    auto* served = static_cast<Served*>(
        ngx_palloc(a.r->pool, sizeof(Served) * std::max<size_t>(1, before + a.page.filled())));
    if (served == nullptr) {
        return false;
    }
    std::copy_n(a.ctx->served, before, served);
    a.worker.recorder.make_room();
    for (const auto& pick : a.page.picks()) {
        if (!pick.filled()) {
            continue;
        }
        Ad& ad = a.ads.emplace_back();
        ad.pick = pick;
        ad.serve = a.worker.process.rng().next();
        const Token token = token_of(image, pick, ad.serve, a);
        mint_tokens(ad, image, token, key);
        a.worker.recorder.record(serve_event(image, pick, token, a.visitor),
                                 {.type = EventType::serve, .invalid = a.visitor.invalid});
        served[before + a.ads.size() - 1] = {token.campaign, token.ad_group, token.creative};
    }
    a.ctx->served = served;
    a.ctx->served_count = before + a.ads.size();
    return true;
}

// Targeting reasons cost a pass over the candidates, so they are counted on
// one request in 64, on a part of the candidates, and scaled.
void sample_refusals(AdRequest& a, std::span<const uint32_t> placements) noexcept {
    const Image& image = a.worker.catalog.image();
    for (const uint32_t placement : placements) {
        FixedVector<Explained, kSampled> found;
        const double each =
            sample_reasons(a.worker.catalog.view(), a.request, image.placements()[placement],
                           static_cast<uint32_t>(a.worker.process.rng().next()), kSampled,
                           [&](uint32_t group, Reason reason) {
                               found.push_back({group, reason});
                           });
        for (const auto& [group, reason] : found) {
            const uint32_t slot = a.worker.catalog.slot_of(group);
            if (slot != kNone) {
                const auto& campaign = image.campaign_of(image.groups()[group]);
                a.worker.process.state().refuse(slot, reason,
                                                image.day_of(campaign, a.request.now / 1000),
                                                static_cast<uint64_t>(each * 64 + 0.5));
            }
            a.worker.counts.traffic().refused(reason, static_cast<uint64_t>(each * 64 + 0.5));
        }
    }
}

void gather(AdRequest& a) noexcept {
    a.visitor = a.known != nullptr ? *a.known : visitor_of(a.worker, a.r, true);
    gather_keys(a.r, a.query, a.visitor.personalize, a.keys);
    a.request = {.now = a.worker.process.now(),
                 .device = a.visitor.device,
                 .geo = a.visitor.geo,
                 .language = a.visitor.language,
                 .url = page_url(a.r, a.query),
                 .keys = a.keys,
                 .session = a.visitor.session,
                 .invalid = a.visitor.invalid != Invalid::none};
    a.ctx->invalid = name_of(a.visitor.invalid);
}

}  // namespace

Decided decide_ads(AdRequest& a, std::span<const uint32_t> placements) noexcept {
    Traffic& traffic = a.worker.counts.traffic();
    const bool sampled = traffic.samples();
    const bool timed = sampled || main_conf(a.r)->timed;
    const int64_t began = timed ? monotonic_ns() : 0;
    if (a.ctx->fleet != nullptr) {
        a.known = &a.ctx->fleet->visitor;
        a.keys.clear();
        a.page = {};
    }
    gather(a);
    const ngx_int_t cap = loc_conf(a.r)->anonymous_cap;
    Ledger ledger(a.worker.ledger_source(), a.request,
                  cap == kNoCap ? kNoAnonymousCap : static_cast<uint64_t>(cap), a.trace);
    for (const Id id : a.query.shown) {
        a.page.add_shown(a.worker.catalog.image(), id);
    }
    if (a.worker.fleet.on() && !a.request.session.empty() && !a.request.invalid) {
        if (!a.worker.fleet.decide(a, placements, ledger)) {
            a.ctx->nanoseconds += timed ? monotonic_ns() - began : 0;
            return Decided::waits;
        }
    } else {
        decide(a.worker.catalog.view(), a.request, placements, a.page, a.worker.process.rng(),
               ledger);
    }
    traffic.request(placements.size());
    for (const auto& pick : a.page.picks()) {
        if (pick.filled()) {
            a.worker.counts.outcomes().filled(pick.placement);
        } else {
            const Unfilled why = ledger.unfilled(pick.placement);
            traffic.unfilled(why);
            a.worker.counts.outcomes().unfilled(pick.placement, why);
        }
    }
    // Pacing follows the requests of people.
    if (!a.request.invalid) {
        for (const uint32_t placement : placements) {
            a.worker.counts.request(placement);
        }
        if (a.worker.counts.samples_reasons()) {
            sample_refusals(a, placements);
        }
    }
    if (!make_ads(a)) {
        return Decided::failed;
    }
    a.ctx->decision = a.ctx->served_count == 0 ? "no_ad" : "served";
    a.ctx->nanoseconds += timed ? monotonic_ns() - began : 0;
    if (sampled) {
        traffic.decided(a.ctx->nanoseconds);
    }
    return Decided::done;
}

void refuse_ads(AdRequest& a, std::span<const uint32_t> placements) noexcept {
    a.worker.counts.traffic().request(placements.size());
    a.worker.counts.traffic().unfilled(Unfilled::rate_limit, placements.size());
    for (const uint32_t placement : placements) {
        a.worker.counts.outcomes().unfilled(placement, Unfilled::rate_limit);
    }
    a.ctx->decision = "no_ad";
    a.ctx->invalid = name_of(Invalid::rate_limit);
}

}  // namespace ads::ngx
