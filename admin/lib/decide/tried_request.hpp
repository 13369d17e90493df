// Finds what would be served for a request, with the decision code that nginx runs, and why nothing
// else would. Counts and prints nothing.
#pragma once

#include <jansson.h>

#include <map>
#include <string>
#include <vector>

#include "core/decide/explain.hpp"
#include "lib/catalog/catalog_source.hpp"
#include "lib/decide/heap_node.hpp"
#include "lib/decide/request_file.hpp"

namespace ads::admin {

struct Question {
    RequestFile request;
    std::string request_name;  // name of its document for messages; empty: none
    Seconds now = 0;
    uint64_t seed = 0;
    uint64_t repeat = 1;  // draws
};

// A served ad, as far as draws differ.
struct Drawn {
    uint32_t group = kNone;
    uint32_t creative = kNone;
    Id experiment = 0;
    auto operator<=>(const Drawn&) const = default;
};

// The outcome for one placement.
struct PlacementOutcome {
    uint32_t placement = 0;
    std::vector<std::pair<Drawn, uint64_t>> served;  // most often first
    uint64_t unfilled = 0;
    std::vector<Explained> others;  // never served
};

class TriedRequest {
public:
    // `delivered` is the delivery of ad groups until now. Throws Failure for an unknown placement.
    TriedRequest(CatalogSource source, const std::map<Id, Delivered>& delivered, Question question);

    const Question& question() const noexcept { return question_; }
    const Image& image() const { return node_.image(); }
    const GroupRecord& group(uint32_t index) const { return image().groups()[index]; }
    const std::vector<PlacementOutcome>& outcomes() const noexcept { return outcomes_; }

    json_t* json() const;

private:
    void find_placements(const std::string& catalog);
    void draw();
    PlacementOutcome outcome(const Pick& pick, const std::map<Drawn, uint64_t>& tally,
                             std::span<const Refusal> refusals);
    json_t* group_json(uint32_t index) const;
    json_t* outcome_json(const PlacementOutcome& outcome) const;

    const Question question_;
    HeapNode node_;
    std::vector<KeyValue> keys_;
    Request request_;
    std::vector<uint32_t> placements_;
    std::vector<PlacementOutcome> outcomes_;
};

// A short random number that is easy to type.
uint64_t random_seed();

}  // namespace ads::admin
