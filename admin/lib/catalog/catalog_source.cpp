#include "lib/catalog/catalog_source.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

#include "io/file.hpp"
#include "lib/base/config_file.hpp"
#include "lib/base/database.hpp"
#include "lib/base/files.hpp"

namespace ads::admin {

namespace {

std::string state_of(const CatalogOptions& options) {
    return options.state.empty() ? configured("state").value : options.state;
}

std::string read_or_fail(const std::string& path) {
    std::string text;
    if (const int error = read_file(path.c_str(), text); error != 0) {
        throw Failure(Exit::failed,
                      fmt::format("cannot read {}: {}.", shown_name(path), std::strerror(error)));
    }
    return text;
}

CatalogSource parsed(const std::string& name, const std::string& text) {
    auto result = catalog::parse(text);
    if (!result.errors.empty()) {
        throw InvalidCatalog(name, std::move(result.errors), result.more_errors);
    }
    CatalogSource source;
    source.document = std::move(result.document);
    source.name = shown_name(name);
    return source;
}

// As nginx reads it: what cannot be read stops everything.
StopList stops_in(const std::string& folder) {
    const std::string path = folder + "/stopped";
    std::string text;
    std::string error;
    const int rc = read_file(path.c_str(), text);
    if (rc == ENOENT) {
        return {};
    }
    auto list = rc == 0 ? StopList::parse(text, error) : std::nullopt;
    return list ? std::move(*list) : StopList::everything("the stop list cannot be read");
}

// The document that the node follows: a file, or what it keeps of the database's.
CatalogSource of_node(const std::string& folder) {
    std::string path = read_or_fail(folder + "/catalog.path");
    path.resize(std::min(path.find('\n'), path.size()));
    CatalogSource source = parsed(path, read_or_fail(path));
    source.stops = stops_in(folder);
    source.managed = path == folder + "/catalog.json";
    return source;
}

CatalogSource of_database(const std::string& conninfo, const std::string& application) {
    auto database = std::make_unique<Database>(conninfo, application);
    try {
        CatalogSource source = catalog_of(*database);
        source.database = std::move(database);
        return source;
    } catch (const SqlError& e) {
        throw explained(e);
    }
}

// Only options may say otherwise.
CatalogSource of_both(const std::string& folder, const std::string& application) {
    CatalogSource node = of_node(folder);
    if (!node.managed || !database_configured()) {
        return node;
    }
    try {
        CatalogSource source = of_database({}, application);
        source.stops = std::move(node.stops);
        return source;
    } catch (const InvalidCatalog&) {
        throw;
    } catch (const Failure& e) {
        node.warning = fmt::format("the catalog is the copy of the node: {}", e.what());
        return node;
    }
}

}  // namespace

CatalogSource catalog_of(Database& database) {
    CatalogSource source = parsed(database.shown(), database.value("SELECT ads.catalog()"));
    source.managed = true;
    return source;
}

InvalidCatalog::InvalidCatalog(std::string catalog, std::vector<catalog::Error> faults, size_t more)
    : Failure(Exit::bad_input, fmt::format("{}: {}: {}", shown_name(catalog), faults.front().path,
                                           faults.front().message)),
      name(std::move(catalog)),
      errors(std::move(faults)),
      more_errors(more) {}

CatalogFrom catalog_from(const CatalogOptions& options) {
    return !options.file.empty()        ? CatalogFrom::file
           : !options.state.empty()     ? CatalogFrom::state
           : !options.database.empty()  ? CatalogFrom::database
           : !state_of(options).empty() ? CatalogFrom::state
           : database_configured()      ? CatalogFrom::database
                                        : CatalogFrom::nowhere;
}

CatalogSource read_catalog(const CatalogOptions& options, const std::string& application) {
    switch (catalog_from(options)) {
        case CatalogFrom::file:
            return parsed(options.file, read_input(options.file));
        case CatalogFrom::state:
            return options.state.empty() ? of_both(state_of(options), application)
                                         : of_node(options.state);
        case CatalogFrom::database:
            return of_database(options.database, application);
        case CatalogFrom::nowhere:
            break;
    }
    throw Failure(
        Exit::usage,
        "a catalog is required: name a file (--catalog), the state folder of a node (--state) or "
        "a database (--database), or configure one in /etc/nginx-ads.conf.");
}

}  // namespace ads::admin
