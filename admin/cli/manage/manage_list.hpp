// list: the objects of a kind, with their delivery.
#pragma once

#include "cli/manage/manage.hpp"
#include "lib/catalog/catalog_list.hpp"

namespace ads::cli {

Exit list(const Access& access, const ListQuery& query);

}  // namespace ads::cli
