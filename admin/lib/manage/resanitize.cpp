#include "lib/manage/resanitize.hpp"

#include "creative/sanitize.hpp"
#include "lib/manage/edits.hpp"

namespace ads::admin {

namespace {

void clean_row(Database& database, const Rows& rows, size_t row, Resanitized& result) {
    const auto id = static_cast<uint64_t>(rows.number(row, 0));
    const std::string id_text(rows.at(row, 0));
    const std::string markup(rows.at(row, 1));
    std::string clean;
    try {
        clean = clean_markup(id, markup, result.removed);
    } catch (const Failure& e) {
        result.refused.push_back({id, e.what()});
        return;
    }
    if (clean != markup) {
        result.changed++;
        database.run(
            "UPDATE ads.creatives SET content = jsonb_set(content, '{markup}', to_jsonb($2::text)) "
            "WHERE id = $1",
            {id_text, clean});
        return;
    }
    database.run("UPDATE ads.creatives SET policy = $2 WHERE id = $1",
                 {id_text, std::to_string(creative::kPolicyVersion)});
}

}  // namespace

Resanitized resanitize(Database& database, const EditOptions& options,
                       const std::function<void(uint64_t, uint64_t)>& progress) {
    Edits edits(database, options);
    const Rows rows = database.run(
        "SELECT id, content ->> 'markup' FROM ads.creatives "
        "WHERE type = 'html' AND policy IS DISTINCT FROM $1 ORDER BY id",
        {std::to_string(creative::kPolicyVersion)});
    Resanitized result;
    for (size_t i = 0; i < rows.size(); i++) {
        clean_row(database, rows, i, result);
        result.seen++;
        progress(result.seen, rows.size());
    }
    edits.finish();
    return result;
}

}  // namespace ads::admin
