// A transaction of edits by one person, and the campaigns that are edited in it,
// each with its experiments.
#pragma once

#include <optional>

#include "lib/base/database.hpp"
#include "lib/base/json.hpp"
#include "lib/catalog/clean.hpp"
#include "lib/catalog/diff.hpp"
#include "lib/manage/manage.hpp"

namespace ads::admin {

// The object of a list with this id; null if there is none.
json_t* with_id(const json_t* list, uint64_t id);
// PostgreSQL has something against an object: a constraint, a value.
bool is_refusal(const SqlError& error);

class Edits {
public:
    Edits(Database& database, const EditOptions& options);

    Database& database() noexcept { return database_; }
    // A number that no object of this kind has, nor any that was handed out.
    uint64_t new_id(Kind kind);
    // New ids are above this one, too.
    void taken(Kind kind, uint64_t id);

    // Runs the statement; what PostgreSQL has against its values is bad input.
    template <class F>
    void write(F f);

    // ISO 4217; empty if none is set.
    const std::string& currency() const noexcept { return currency_; }

    // What the edit brings that cannot be served; nothing if it was so before.
    void warn_of(std::string warning);
    // With --strict a warning is an error. Throws Failure.
    void check_warnings() const;

    void finish();

    std::vector<Change> changes;
    std::vector<Removed> removed;
    std::vector<std::string> warnings;

private:
    const bool dry_run_;
    const bool strict_;
    Database& database_;
    Transaction transaction_;
    std::string currency_;
    uint64_t highest_[kKinds] = {};
};

// Which campaign an ad group, a creative or an experiment is in, and which group.
struct Place {
    uint64_t campaign = 0;
    uint64_t group = 0;
};
// Throws Failure if it is not there.
Place place_of(Database& database, Kind kind, uint64_t id);

// The id of what a person calls by its id or by its name; of what is archived only if nothing
// else has the name. Throws Failure.
std::string found_id(Database& database, Kind kind, const std::string& text);
// Which object of the document a path leads to, and where in it; without a message.
Fault located(const std::string& path, const json_t* document);
// What to throw if there is none: with the name that was meant, perhaps.
NotFound no_such(Database& database, Kind kind, const std::string& text);
// What a new name must be. Throws Failure.
void check_name(Kind kind, const std::string& name);
// A path of a document for people: "ad group 12: price.model".
std::string readable(const std::string& path, const json_t* document);

// What of `after` cannot be served, and of `before` could: both without faults.
std::vector<std::string> new_warnings(const std::string& before, const std::string& after);

class CampaignEdit {
public:
    // The campaign as it is; it may be one that is not there yet.
    CampaignEdit(Edits& edits, uint64_t id);

    json_t* campaign() const noexcept;  // null if there is none
    json_t* group(uint64_t id) const;   // throws Failure
    json_t* creative(Place place, uint64_t id) const;
    json_t* experiment(uint64_t id) const;
    void add(json_t* campaign);  // takes it over
    void add_experiment(json_t* experiment);

    // Checks all that was changed in the campaign, or in one experiment, and
    // writes it. Throws Failure.
    void save();
    void save_experiment(uint64_t id);

    // The same with a statement that changes the experiment.
    template <class F>
    void write_experiment(F f);

    // Whether it may begin to run. Throws Failure.
    void check_may_run(const json_t* experiment) const;

private:
    void check_numbers() const;
    void check_experiment(json_t* now, const json_t* old) const;
    void check_experiment_name(const json_t* now, const json_t* old) const;
    void note_changes();
    void inherit_statuses();
    void clean();
    void check_statuses() const;
    void check_names() const;
    json_t* before() const noexcept;

    Edits& edits_;
    const uint64_t id_;
    std::string before_text_;
    Json before_;
    Json document_;
};

// Checks a document as nginx does. Throws InvalidInput.
void check_catalog(const std::string& text, const json_t* document);

// Whether one in `from` may become `to`. Throws Failure.
void check_transition(Kind kind, const std::string& id, const std::string& from,
                      const std::string& to);

template <class F>
void Edits::write(F f) {
    try {
        f();
    } catch (const SqlError& e) {
        if (!is_refusal(e)) {
            throw;
        }
        throw Failure(Exit::bad_input, std::string("refused by PostgreSQL: ") + e.what());
    }
}

template <class F>
void CampaignEdit::write_experiment(F f) {
    edits_.write([&] {
        f(edits_.database());
        edits_.database().run("SET CONSTRAINTS ALL IMMEDIATE");
    });
    note_changes();
}

}  // namespace ads::admin
