// Pages that are filled with ads while they are sent.
#pragma once

#include "core/html/cutter.hpp"
#include "ledger/traffic.hpp"
#include "ngx/conf/conf.hpp"
#include "ngx/request/visitor.hpp"

namespace ads::ngx {

// Checks the request and the response headers of a page.
ngx_int_t add_page_requests(ngx_conf_t* cf);

// The filters of ngx_http_ads_inject_filter_module.
ngx_int_t add_page_filters(ngx_conf_t* cf);

// nullptr if ads_inject is off. Only main requests are pages: the response of a subrequest is part
// of one.
inline const InjectConf* inject_conf(ngx_http_request_t* r) noexcept {
    const InjectConf* inject = loc_conf(r->main)->inject;
    return inject != nullptr && inject->on ? inject : nullptr;
}

// A header of the request; empty if it was not sent.
std::string_view find_header(ngx_http_request_t* r, std::string_view lowercase) noexcept;

// Whether the response is a page whose slots can be filled.
inline bool is_page(ngx_http_request_t* r) noexcept {
    const auto& out = r->headers_out;
    return r == r->main && out.status == NGX_HTTP_OK && out.content_type_len == 9 &&
           out.content_type.len >= 9 &&
           ngx_strncasecmp(out.content_type.data,
                           reinterpret_cast<u_char*>(const_cast<char*>("text/html")), 9) == 0;
}

// A slot of which the ad is still to be found.
struct PageSlot {
    ngx_buf_t* buffer = nullptr;  // of what it becomes
    std::string_view text;
    size_t content = 0;
    size_t content_end = 0;
    std::span<const KeyValue> keys;  // its own
};

inline constexpr size_t kMaxSlots = 64;

// What the page says of its slots before they come (<meta name="page-spots">), by the hash of their
// placements.
struct DeclaredSlots {
    // Decided with the first slots, for one that is still to come.
    struct Ready {
        uint32_t placement;
        bool used;
        std::string_view attributes;
        std::string_view content;
    };
    FixedVector<uint32_t, kMaxSlots> open;  // not decided yet
    FixedVector<Ready, kMaxSlots> ready;
};

enum class PageState : uint8_t {
    fresh,  // nothing of it has come
    read,   // it comes in parts
    known,  // it was cut by its map
};

// What a page waits for before it is sent.
enum class PageHold : uint8_t {
    none,
    write,  // of the events of its ads
    fleet,  // for its frequency caps; not all slots at hand are filled yet
};

class PageFill;

// A page that is being sent, as long as its request.
struct PageCtx {
    PageCtx(ngx_http_request_t* request, const InjectConf* inject) noexcept
        : r(request), conf(inject) {}

    ngx_http_request_t* r;
    const InjectConf* conf;
    html::Cutter* cutter = nullptr;  // of a page that comes in parts
    ngx_http_output_header_filter_pt header =
        nullptr;                                    // what sends the header; nullptr: it is sent
    off_t length = 0;                               // before its slots are filled; -1: not known
    ngx_http_output_body_filter_pt next = nullptr;  // behind the filter that cuts it
    PageState state = PageState::fresh;
    PageResult result = PageResult::no_slot;
    bool waiting = false;  // for the write of its events, or for the fleet
    bool ends = false;     // the slots at hand are its last
    bool blind = false;    // no more slots are filled
    const Visitor* visitor = nullptr;
    std::string_view url;
    ngx_chain_t* in = nullptr;   // not read yet
    ngx_chain_t* out = nullptr;  // read, not sent
    ngx_chain_t** out_end = &out;
    ngx_chain_t* busy = nullptr;  // ours, sent but not written yet
    ngx_chain_t** busy_end = &busy;
    ngx_chain_t* free = nullptr;
    PageSlot* slots = nullptr;  // of what is being read, kMaxSlots
    size_t slot_count = 0;
    size_t decided = 0;  // slots in all
    DeclaredSlots* declared = nullptr;
    PageFill* fill = nullptr;  // in a fleet: of the slots at hand
};

// Notes the ids of a list with commas; false without memory.
bool declare_slots(PageCtx& page, std::string_view list) noexcept;

// Decides for all slots at hand, and fills their buffers.
PageHold fill_slots(PageCtx& page) noexcept;

// Goes on with them when the fleet has answered.
PageHold fill_waiting(PageCtx& page) noexcept;

// The outcome of the page.
void count_page(PageResult result) noexcept;

}  // namespace ads::ngx
