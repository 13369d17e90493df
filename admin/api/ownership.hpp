// An advertiser sees its own campaigns and what is in them, and of all others not even that they
// are there.
#pragma once

#include "api/route.hpp"
#include "lib/manage/kinds.hpp"

namespace ads::api {

// Throws NotFound if the path names none of the kind: the API takes ids, not names.
void need_id(Call& call, admin::Kind kind);

// Throws NotFound if the role is that of an advertiser and the object of the path is not its own.
void need_own(Call& call, admin::Kind kind);

}  // namespace ads::api
