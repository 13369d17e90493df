#include "api/openapi.hpp"

#include <fmt/format.h>

#include <stdexcept>

#include "api/route.hpp"
#include "api/schemas.hpp"
#include "version.hpp"

namespace ads::api {

using admin::text_json;

namespace {

json_t* parsed(std::string_view text) {
    json_error_t error;
    json_t* json = json_loadb(text.data(), text.size(), 0, &error);
    if (json == nullptr) {
        throw std::logic_error(fmt::format("a schema is broken: {}", error.text));
    }
    return json;
}

json_t* reference(const std::string& name) {
    return json_pack("{s:s}", "$ref", ("#/components/schemas/" + name).c_str());
}

json_t* content(const std::string& schema) {
    if (schema == kRawBody) {
        return json_pack("{s:{s:{s:s}}}", "application/octet-stream", "schema", "type", "string");
    }
    if (schema == kHtml) {
        return json_pack("{s:{s:{s:s}}}", "text/html", "schema", "type", "string");
    }
    return json_pack("{s:{s:o}}", "application/json", "schema", reference(schema));
}

json_t* parameters_of(const Route& route) {
    json_t* list = json_array();
    if (route.path.find("{id}") != route.path.npos) {
        json_array_append_new(
            list,
            parsed(R"({"name":"id","in":"path","required":true,"schema":{"type":"string"}})"));
    }
    if (route.conditional) {
        json_array_append_new(list, parsed(R"({"name":"If-Match","in":"header","required":true,
            "description":"The ETag that get gave","schema":{"type":"string"}})"));
    }
    for (const auto& parameter : route.parameters) {
        json_array_append_new(
            list, json_pack("{s:s,s:s,s:s,s:o}", "name", parameter.name, "in", "query",
                            "description", parameter.about, "schema", parsed(parameter.schema)));
    }
    return list;
}

json_t* roles_of(const Route& route) {
    json_t* list = json_array();
    for (size_t i = 0; i < kCount<Role>; i++) {
        const auto role = static_cast<Role>(i);
        if ((route.roles & role_bit(role)) != 0) {
            json_array_append_new(list, text_json(name_of(role)));
        }
    }
    return list;
}

json_t* operation_of(const Route& route) {
    json_t* operation = json_object();
    json_object_set_new(operation, "operationId", text_json(route.operation));
    json_object_set_new(operation, "summary", text_json(route.summary));
    json_object_set_new(operation, "x-roles", roles_of(route));
    json_object_set_new(operation, "parameters", parameters_of(route));
    if (route.body != nullptr) {
        json_object_set_new(operation, "requestBody",
                            json_pack("{s:b,s:o}", "required", 1, "content", content(route.body)));
    }
    json_t* responses = json_object();
    json_object_set_new(
        responses, std::to_string(route.status).c_str(),
        json_pack("{s:s,s:o}", "description", "Success", "content", content(route.response)));
    if (route.status != 200) {
        json_object_set_new(
            responses, "200",
            json_pack("{s:s,s:o}", "description", "A dry run", "content", content(route.response)));
    }
    json_object_set_new(
        responses, "default",
        json_pack("{s:s,s:o}", "description", "A failure", "content", content("Error")));
    json_object_set_new(operation, "responses", responses);
    return operation;
}

std::string lower(std::string text) {
    for (char& c : text) {
        c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    }
    return text;
}

}  // namespace

admin::Json openapi(const std::string& prefix) {
    json_t* paths = json_object();
    for (const auto& route : routes()) {
        json_t* item = json_object_get(paths, route.path.c_str());
        if (item == nullptr) {
            item = json_object();
            json_object_set_new(paths, route.path.c_str(), item);
        }
        json_object_set_new(item, lower(route.method).c_str(), operation_of(route));
    }
    admin::Json root(json_object());
    json_object_set_new(root.get(), "openapi", text_json("3.1.0"));
    json_object_set_new(root.get(), "info",
                        json_pack("{s:s,s:s}", "title", "nginx-ads api", "version", ADS_VERSION));
    json_object_set_new(root.get(), "servers", json_pack("[{s:s}]", "url", prefix.c_str()));
    json_object_set_new(root.get(), "paths", paths);
    json_object_set_new(root.get(), "components", json_pack("{s:o}", "schemas", schemas()));
    return root;
}

}  // namespace ads::api
