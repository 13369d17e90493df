// Advertisers and placements, which belong to no campaign. Edits return the id. All throw
// Failure.
#pragma once

#include "core/base/types.hpp"

#include "lib/manage/edits.hpp"

namespace ads::admin {

void need_advertiser(Database& database, const std::string& name, bool there);
// The advertiser of a campaign: created if it is new, unless its name looks like a typo.
void open_account(Edits& edits, const std::string& name);
void remove_advertiser_without_campaigns(Edits& edits, const std::string& name);
std::string create_advertiser(Edits& edits, const std::string& name);
std::string update_advertiser(Edits& edits, const std::string& id, const Patch& patch);
// The ids of its campaigns in these statuses, an array of PostgreSQL.
std::vector<std::string> campaigns_of(Database& database, const std::string& advertiser,
                                      const char* statuses);

std::string add_placement(Edits& edits, json_t* taken);  // takes ownership
std::string update_placement(Edits& edits, const std::string& id, const Patch& patch);
std::string remove_placement(Edits& edits, const std::string& id);
std::string clone_placement(Edits& edits, const std::string& id, const std::string& name);
std::string set_placement_status(Edits& edits, const std::string& id, PlacementStatus status);

}  // namespace ads::admin
