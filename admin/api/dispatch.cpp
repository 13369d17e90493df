#include "api/dispatch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>

#include "api/address.hpp"
#include "lib/base/failure.hpp"
#include "lib/base/text.hpp"
#include "lib/manage/history.hpp"
#include "lib/manage/manage.hpp"

namespace ads::api {

using admin::text_json;

namespace {

// ---- answers ----

std::string written(const Response& response, bool with_body) {
    std::string text = fmt::format(
        "Status: {}\r\nContent-Type: {}\r\nCache-Control: no-store\r\n"
        "X-Content-Type-Options: nosniff\r\n",
        response.status, response.html.empty() ? "application/json" : "text/html; charset=utf-8");
    for (const auto& [name, value] : response.headers) {
        text += fmt::format("{}: {}\r\n", name, value);
    }
    const std::string body =
        response.html.empty() ? admin::dumped(response.body.get()) + "\n" : response.html;
    text += fmt::format("Content-Length: {}\r\n\r\n", body.size());
    return with_body ? text + body : text;
}

Response failure(int status, const char* code, const std::string& message) {
    Json root(json_object());
    json_t* error = json_object();
    json_object_set_new(error, "code", text_json(code));
    json_object_set_new(error, "message", text_json(message));
    json_object_set_new(error, "faults", json_array());
    json_object_set_new(root.get(), "error", error);
    return {status, std::move(root)};
}

// Of a method that is not allowed the message is the list of those that are.
Response refused(const Refusal& e) {
    if (e.status != 405) {
        return failure(e.status, e.code, e.message);
    }
    Response response = failure(e.status, e.code, fmt::format("allowed are {}", e.message));
    response.headers.emplace_back("Allow", e.message);
    return response;
}

Response invalid(const admin::InvalidInput& e) {
    Response response = failure(422, "invalid", e.what());
    json_t* list = json_object_get(json_object_get(response.body.get(), "error"), "faults");
    for (const auto& fault : e.faults()) {
        json_t* item = json_object();
        json_object_set_new(item, "object", text_json(fault.object));
        json_object_set_new(item, "path", text_json(fault.path));
        json_object_set_new(item, "message", text_json(fault.message));
        json_array_append_new(list, item);
    }
    return response;
}

Response sql_failure(const admin::SqlError& e) {
    return e.is("42501")                 ? failure(403, "forbidden", e.what())
           : e.state().starts_with("22") ? failure(422, "invalid", e.what())
                                         : failure(503, "unavailable", admin::explained(e).what());
}

// ---- requests ----

struct Found {
    const Route* route = nullptr;
    std::string id;
};

Found find(const Address& address, std::string_view method) {
    std::string allowed;
    for (const auto& route : routes()) {
        Found found{&route, {}};
        if (!matches(route, address.segments, found.id)) {
            continue;
        }
        if (route.method == method ||
            (method == "HEAD" && std::string_view(route.method) == "GET")) {
            return found;
        }
        allowed += (allowed.empty() ? "" : ", ") + std::string(route.method);
    }
    if (allowed.empty()) {
        throw Refusal{404, "not_found", "not found"};
    }
    throw Refusal{405, "method_not_allowed", allowed};
}

bool is_raw(const Route& route) {
    return route.body != nullptr && std::string_view(route.body) == kRawBody;
}

Json body_of(const ScgiRequest& request, const Route& route) {
    if (route.body == nullptr || is_raw(route)) {
        return nullptr;
    }
    if (request.body.size() > kMostJson) {
        throw Refusal{413, "too_large", "the request is too large"};
    }
    if (request.body.empty() && std::string_view(route.body) == "Nothing") {
        return Json(json_object());
    }
    json_error_t error;
    Json body(json_loadb(request.body.data(), request.body.size(), JSON_REJECT_DUPLICATES, &error));
    if (body == nullptr) {
        throw Refusal{400, "bad_json",
                      fmt::format("line {}, column {}: {}", error.line, error.column, error.text)};
    }
    if (!json_is_object(body.get())) {
        throw Refusal{400, "bad_json", "the body must be an object"};
    }
    return body;
}

// "12", also as W/"12": nginx weakens it when it compresses.
std::optional<std::string> version_in(const ScgiRequest& request) {
    std::string_view tag = request.get("HTTP_IF_MATCH");
    if (tag.empty()) {
        return std::nullopt;
    }
    tag.remove_prefix(tag.starts_with("W/") ? 2 : 0);
    constexpr size_t kMostDigits = 18;
    const bool shaped = tag.size() > 2 && tag.size() <= kMostDigits + 2 && tag.front() == '"' &&
                        tag.back() == '"' &&
                        tag.substr(1, tag.size() - 2).find_first_not_of("0123456789") == tag.npos;
    if (!shaped || request.repeated("HTTP_IF_MATCH")) {
        throw Refusal{400, "bad_request", "If-Match must be an ETag from the API"};
    }
    return std::string(tag.substr(1, tag.size() - 2));
}

void check_parameters(const Address& address, const Route& route) {
    for (const auto& [name, value] : address.query) {
        const bool known = std::any_of(
            route.parameters.begin(), route.parameters.end(),
            [&name = name](const Parameter& parameter) { return parameter.name == name; });
        if (!known) {
            throw Refusal{400, "bad_request",
                          fmt::format("unknown parameter \"{}\"", admin::printable(name))};
        }
        if (value.size() > 1000) {
            throw Refusal{400, "bad_request", fmt::format("parameter \"{}\" is too long", name)};
        }
    }
}

// Of a 412: what the others did.
Response conflict(const admin::Conflict& e, const Route& route, const Call& call) {
    Response response = failure(412, "changed", e.what());
    json_t* error = json_object_get(response.body.get(), "error");
    json_object_set_new(error, "version", text_json(e.version()));
    for (const admin::Kind kind : admin::kAllKinds) {
        if (route.path.starts_with(fmt::format("/{}s/", admin::words_of(kind).command))) {
            const auto edits = admin::changes_since(call.connections.reading(), kind, call.id,
                                                    call.if_match.value_or("0"));
            json_object_set_new(error, "changes", admin::history_json(edits));
        }
    }
    return response;
}

Response run(const ScgiRequest& request, const Config& config, Connections& connections) {
    const Identity who = identify(request, config.access);
    connections.serve(who);
    check_origin(request, config.access);
    const auto address = read_address(request.get("REQUEST_URI"), config.prefix);
    if (!address) {
        throw Refusal{404, "not_found", "not found"};
    }
    const auto [route, id] = find(*address, request.get("REQUEST_METHOD"));
    if ((route->roles & role_bit(who.role)) == 0) {
        throw Refusal{403, "forbidden",
                      fmt::format("the role {} does not allow this", name_of(who.role))};
    }
    if (!is_safe(route->method)) {
        check_type(request, !is_raw(*route));
    }
    check_parameters(*address, *route);
    Call call{config,
              who,
              connections,
              id,
              address->query,
              body_of(request, *route),
              version_in(request),
              is_raw(*route) ? request.body : std::string_view()};
    if (route->conditional && !call.if_match) {
        throw Refusal{428, "precondition_required", "If-Match must name the version to change"};
    }
    try {
        return route->run(call);
    } catch (const admin::Conflict& e) {
        return conflict(e, *route, call);
    }
}

Response explained(const std::exception_ptr& failed, Connections& connections) {
    try {
        std::rethrow_exception(failed);
    } catch (const Refusal& e) {
        return refused(e);
    } catch (const admin::NotFound& e) {
        return failure(404, "not_found", e.what());
    } catch (const admin::InvalidInput& e) {
        return invalid(e);
    } catch (const admin::SqlError& e) {
        connections.drop();
        return sql_failure(e);
    } catch (const admin::Failure& e) {
        if (e.exit() != admin::Exit::failed) {
            return failure(422, "invalid", e.what());
        }
        connections.drop();
        return failure(503, "unavailable", e.what());
    }
}

// Also when the server had time to say so.
bool is_lost(const admin::SqlError& e) {
    return e.lost() || e.state().starts_with("57P") || e.state().starts_with("08");
}

// A connection that was lost while nobody used it is no reason to refuse a read.
Response guarded(const ScgiRequest& request, const Config& config, Connections& connections) {
    try {
        return run(request, config, connections);
    } catch (const admin::SqlError& e) {
        if (!is_lost(e) || !is_safe(request.get("REQUEST_METHOD"))) {
            return explained(std::current_exception(), connections);
        }
        connections.drop();
    } catch (const Refusal&) {
        return explained(std::current_exception(), connections);
    } catch (const admin::Failure&) {
        return explained(std::current_exception(), connections);
    }
    try {
        return run(request, config, connections);
    } catch (...) {
        return explained(std::current_exception(), connections);
    }
}

}  // namespace

std::string refusal(const Refusal& refusal) {
    return written(failure(refusal.status, refusal.code, refusal.message), true);
}

std::string answer(const ScgiRequest& request, const Config& config, Connections& connections) {
    try {
        return written(guarded(request, config, connections),
                       request.get("REQUEST_METHOD") != "HEAD");
    } catch (const std::exception&) {
        connections.drop();
        return api::refusal({500, "internal", "the API failed"});
    }
}

}  // namespace ads::api
