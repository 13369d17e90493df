// A transaction of edits by one person, and the edited campaigns, each with its
// experiments.
#pragma once

#include <optional>

#include "lib/base/database.hpp"
#include "lib/base/json.hpp"
#include "lib/catalog/clean.hpp"
#include "lib/catalog/diff.hpp"
#include "lib/manage/manage.hpp"

namespace ads::admin {

// The object with this id in a list; null if it is missing.
json_t* with_id(const json_t* list, uint64_t id);
// PostgreSQL refuses an object because of a constraint or a value.
bool is_refusal(const SqlError& error);

class Edits {
public:
    Edits(Database& database, const EditOptions& options);

    Database& database() noexcept { return database_; }
    // An id that no object of this kind has or had.
    uint64_t new_id(Kind kind);
    // New ids are also greater than this one.
    void taken(Kind kind, uint64_t id);

    // Runs the statement. If PostgreSQL refuses its values, the input is invalid.
    template <class F>
    void write(F f);

    // ISO 4217; empty if none is set.
    const std::string& currency() const noexcept { return currency_; }

    // Warnings about what the edit makes impossible to serve; none for what was so before.
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

// The id of an object given by id or name; the name of an archived object is used only if no other
// has it. Throws Failure.
std::string found_id(Database& database, Kind kind, const std::string& text);
// The object that a path of the document leads to, and the rest of the path; without a message.
Fault located(const std::string& path, const json_t* document);
// The exception for a missing object, possibly with a suggestion.
NotFound no_such(Database& database, Kind kind, const std::string& text);
// Checks a new name. Throws Failure.
void check_name(Kind kind, const std::string& name);
// A path of a document for people: "ad group 12: price.model".
std::string readable(const std::string& path, const json_t* document);

// Warnings about what cannot be served in `after` but could in `before`, both valid.
std::vector<std::string> new_warnings(const std::string& before, const std::string& after);

class CampaignEdit {
public:
    // The campaign, which may be new.
    CampaignEdit(Edits& edits, uint64_t id);

    json_t* campaign() const noexcept;  // null: it does not exist
    json_t* group(uint64_t id) const;   // throws Failure
    json_t* creative(Place place, uint64_t id) const;
    json_t* experiment(uint64_t id) const;
    void add(json_t* campaign);  // takes ownership
    void add_experiment(json_t* experiment);

    // Checks everything that was changed in the campaign, or in one experiment, and writes it.
    // Throws Failure.
    void save();
    void save_experiment(uint64_t id);

    // The same with a statement that changes the experiment.
    template <class F>
    void write_experiment(F f);

    // Checks that the experiment may start. Throws Failure.
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

// Checks that the status may change from `from` to `to`. Throws Failure.
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
