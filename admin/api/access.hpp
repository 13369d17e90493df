// Who asks, and whether it is really nginx that says so. nginx authenticates; identity and role
// come as scgi_param, which no header of a client can be.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/scgi.hpp"
#include "core/base/types.hpp"

namespace ads::api {

enum class Role : uint8_t { viewer, operator_, manager, admin, advertiser };

// A set of roles.
using Roles = uint8_t;
constexpr Roles role_bit(Role role) noexcept {
    return static_cast<Roles>(1U << static_cast<unsigned>(role));
}
inline constexpr Roles kAdministers = role_bit(Role::admin);
inline constexpr Roles kManages = kAdministers | role_bit(Role::manager);
inline constexpr Roles kOperates = kManages | role_bit(Role::operator_);
inline constexpr Roles kViews = kOperates | role_bit(Role::viewer);
inline constexpr Roles kReadsOwn = kViews | role_bit(Role::advertiser);

struct Identity {
    std::string user;
    Role role = Role::viewer;
    std::string advertiser;  // of the role of that name
};

// What ends a request early.
struct Refusal {
    int status = 400;
    const char* code = "bad_request";
    std::string message;
};

struct AccessRules {
    std::string proof;               // the value of ADS_PROOF
    std::vector<std::string> hosts;  // that the console is asked for, without ports
};

// Throws Refusal: without the proof, without a user, without a role that is known.
Identity identify(const ScgiRequest& request, const AccessRules& rules);

// Throws Refusal for a host that is not in the list (DNS rebinding), and for an unsafe method that
// another site may have caused (CSRF).
void check_origin(const ScgiRequest& request, const AccessRules& rules);

// Throws Refusal for a body that a form of another site could have sent, or of another type.
void check_type(const ScgiRequest& request, bool json);

bool is_safe(std::string_view method) noexcept;

}  // namespace ads::api

namespace ads {
template <>
struct Names<api::Role> {
    static constexpr auto list =
        std::to_array<std::string_view>({"viewer", "operator", "manager", "admin", "advertiser"});
};
}  // namespace ads
