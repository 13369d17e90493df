// The part of ads_status about the emergency stop.
#pragma once

#include "core/base/bytes.hpp"

namespace ads::ngx {

class Worker;

// A string or null.
void put_text(Out& out, std::string_view text) noexcept;

// The size in bytes of the output below.
size_t stops_room(Worker& worker, size_t rows) noexcept;

// ,"stop_list_entries":N,"stopped":[…]
void put_stopped(Worker& worker, Out& out) noexcept;

// "stopped by NAME at TIME: REASON" or null, for this campaign of the image.
void put_stop_of(Worker& worker, Out& out, uint32_t campaign) noexcept;

void put_stop_metrics(Worker& worker, Out& out) noexcept;

}  // namespace ads::ngx
