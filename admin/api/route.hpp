// What the API can be asked, as a table: the server follows it, and OpenAPI is made of it.
#pragma once

#include <jansson.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/access.hpp"
#include "lib/base/database.hpp"
#include "lib/base/json.hpp"
#include "lib/diagnosis/facts.hpp"

namespace ads::api {

using admin::Database;
using admin::Json;

struct Config {
    std::string database;      // conninfo
    std::string prefix;        // of all paths: "/console/api"
    std::string status_url;    // of the node; may be empty
    std::string image_folder;  // that nginx serves
    std::string image_base;    // as
    AccessRules access;
    unsigned operator_percent = 20;  // by which an operator may raise a budget
};

// Connections of one thread: one for each role of PostgreSQL.
class Connections {
public:
    explicit Connections(const Config& config) : config_(config) {}

    // For a request of this one.
    void serve(const Identity& who) { who_ = &who; }

    Database& reading();
    Database& writing();
    // After a failure nobody knows what state they are in.
    void drop() noexcept;

private:
    Database& as(const char* role);

    const Config& config_;
    const Identity* who_ = nullptr;
    std::map<std::string, Database, std::less<>> by_role_;
};

struct Response {
    int status = 200;
    Json body;
    std::vector<std::pair<std::string, std::string>> headers = {};
    std::string html = {};  // in place of the body
};

using Values = std::map<std::string, std::string, std::less<>>;

// A request whose route is known and allowed.
struct Call {
    const Config& config;
    const Identity& who;
    Connections& connections;
    std::string id;                       // of the path
    Values query;                         // parameters that the route has
    Json body;                            // an object; null without one
    std::optional<std::string> if_match;  // without quotes
    std::string_view raw = {};            // a body that is no JSON

    std::string get(std::string_view name) const;
    bool flag(std::string_view name) const { return get(name) == "1"; }
    uint64_t number(std::string_view name, uint64_t otherwise, uint64_t most) const;
};

// How OpenAPI calls and checks a parameter of the query.
struct Parameter {
    const char* name;
    const char* schema;  // JSON
    const char* about;
};

// The body of a route that takes bytes, and the response of one that gives a document.
inline constexpr const char* kRawBody = "Bytes";
inline constexpr const char* kHtml = "Document";

struct Route {
    const char* method;
    std::string path;  // below the prefix: "/campaigns/{id}"
    std::string operation;
    std::string summary;
    Roles roles;
    std::vector<Parameter> parameters;
    const char* body;          // its schema among the components; null: none is read
    std::string response;      // the same
    int status = 200;          // of success
    bool conditional = false;  // needs If-Match
    std::function<Response(Call&)> run;
};

const std::vector<Route>& routes();

// The segments of the path, decoded; the one for {id} is put into `id`.
bool matches(const Route& route, const std::vector<std::string>& segments, std::string& id);

// The parts of the table.
void add_object_routes(std::vector<Route>& table);
void add_figure_routes(std::vector<Route>& table);
void add_image_routes(std::vector<Route>& table);
void add_other_routes(std::vector<Route>& table);

}  // namespace ads::api
