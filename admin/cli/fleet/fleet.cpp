// nginx-ads fleet: the nodes that share limits, and what each holds of them.
#include <fmt/format.h>

#include <cstdlib>
#include <memory>

#include "cli/common/grid.hpp"
#include "cli/common/options.hpp"
#include "cli/main/commands.hpp"
#include "lib/base/database.hpp"
#include "lib/base/money.hpp"
#include "lib/fleet/fleet.hpp"

namespace ads::cli {

namespace {

struct Options {
    std::string database;
    std::string node;
    uint64_t ad_group = 0;
    uint64_t campaign = 0;
    bool stranded = false;
    bool force = false;
    bool json = false;
};

std::string ago_text(int64_t seconds) {
    return seconds < 120      ? fmt::format("{} s ago", seconds)
           : seconds < 7200   ? fmt::format("{} min ago", seconds / 60)
           : seconds < 172800 ? fmt::format("{} h ago", seconds / 3600)
                              : fmt::format("{} days ago", seconds / 86400);
}

// "1,234", or money: "20.33".
std::string amount_text(const SharedLimit& limit, int64_t amount) {
    const int64_t size = std::abs(amount);
    return (amount < 0 ? "-" : "") +
           (limit.money() ? money_text(size) : grouped(static_cast<uint64_t>(size)));
}

std::string node_text(const FleetNode& node) {
    return node.name.empty() ? node.id : printable(node.name);
}

Exit nodes(const Options& options) {
    Database database(options.database, "nginx-ads fleet");
    const std::vector<FleetNode> list = fleet_nodes(database);
    if (options.json) {
        const Json root(json_object());
        json_t* items = json_array();
        for (const FleetNode& node : list) {
            json_array_append_new(items, fleet_node_json(node));
        }
        json_object_set_new(root.get(), "nodes", items);
        print_json(root);
        return Exit::ok;
    }
    Grid grid({"name", "node", "state", "last seen", "exactness", "limits", "version", "catalog",
               "protocol"});
    grid.spare({"protocol", "catalog", "version", "node"});
    for (const FleetNode& node : list) {
        grid.add({printable(node.name), node.id, node.state, ago_text(node.silent),
                  printable(node.exactness), grouped(node.walls), printable(node.version),
                  printable(node.catalog + (node.generation.empty() ? "" : " " + node.generation)),
                  node.protocol});
    }
    if (grid.empty()) {
        out().put("no node is in a fleet.\n");
    } else {
        grid.print();
    }
    return Exit::ok;
}

bool is_chosen(const Options& options, const SharedLimit& limit) {
    const bool by_id = options.ad_group != 0 || options.campaign != 0;
    return (!by_id || limit.id == (limit.money() ? options.campaign : options.ad_group)) &&
           (!options.stranded || limit.stranded > 0);
}

void print_parts(const SharedLimit& limit) {
    Grid grid({"node", "used", "held", "refused", "last call"});
    for (const FleetPart& part : limit.parts) {
        grid.add({printable(part.shown()), amount_text(limit, part.used),
                  amount_text(limit, part.held), amount_text(limit, part.needed),
                  part.active ? "active" : "silent since " + part.seen_at});
    }
    grid.print(2);
}

Exit walls(const Options& options) {
    Database database(options.database, "nginx-ads fleet");
    std::vector<SharedLimit> list = shared_limits(database);
    std::erase_if(list, [&](const SharedLimit& limit) { return !is_chosen(options, limit); });
    if (options.json) {
        const Json root(json_object());
        json_t* items = json_array();
        for (const SharedLimit& limit : list) {
            json_array_append_new(items, shared_limit_json(limit));
        }
        json_object_set_new(root.get(), "limits", items);
        print_json(root);
        return Exit::ok;
    }
    if (list.empty()) {
        out().put("no limit is shared.\n");
        return Exit::ok;
    }
    const bool each = options.ad_group != 0 || options.campaign != 0;
    Grid grid({"limit", "day", "of", "used", "held", "stranded", "free", "refused", "name"});
    grid.spare({"name", "refused"});
    const auto row = [](const SharedLimit& limit) {
        return std::vector<std::string>{limit.shown(),
                                        limit.day.empty() ? "all" : limit.day,
                                        amount_text(limit, limit.units),
                                        amount_text(limit, limit.used),
                                        amount_text(limit, limit.held),
                                        amount_text(limit, limit.stranded),
                                        amount_text(limit, limit.free),
                                        amount_text(limit, limit.needed),
                                        printable(limit.name)};
    };
    for (const SharedLimit& limit : list) {
        grid.add(row(limit));
    }
    grid.print();
    for (const SharedLimit& limit : list) {
        if (each && !limit.parts.empty()) {
            out().put(fmt::format("\n{}{}:\n", limit.shown(),
                                  limit.day.empty() ? "" : " on " + limit.day));
            print_parts(limit);
        }
    }
    return Exit::ok;
}

Exit forget(const Options& options) {
    Database database(options.database, "nginx-ads fleet");
    const Forgotten forgotten = forget_node(database, options.node, options.force);
    if (options.json) {
        const Json root(json_object());
        json_object_set_new(root.get(), "node", fleet_node_json(forgotten.node));
        json_t* items = json_array();
        for (const SharedLimit& limit : forgotten.limits) {
            json_t* item = shared_limit_json(limit);
            for (const char* key :
                 {"name", "limit", "used", "held", "stranded", "needed", "nodes"}) {
                json_object_del(item, key);
            }
            json_array_append_new(items, item);
        }
        json_object_set_new(root.get(), "freed", items);
        print_json(root);
        return Exit::ok;
    }
    out().put(fmt::format("{} is forgotten: its calls are refused from now on.\n",
                          node_text(forgotten.node)));
    for (const SharedLimit& limit : forgotten.limits) {
        out().put(fmt::format("{}{}: {} free again.\n", limit.shown(),
                              limit.day.empty() ? "" : " on " + limit.day,
                              amount_text(limit, limit.free)));
    }
    return Exit::ok;
}

Arguments* add(Arguments& parent, const std::shared_ptr<Options>& options, const char* name,
               const char* what) {
    auto* sub = parent.add_subcommand(name, what);
    sub->add_option("--db,--database", options->database, kDatabaseHelp)->option_text("CONNINFO");
    sub->add_flag("--json", options->json, "Print JSON");
    return sub;
}

}  // namespace

void add_fleet(Arguments& app, Command& chosen) {
    auto options = std::make_shared<Options>();
    auto* fleet = app.add_subcommand("fleet", "Show and manage nodes that share limits");
    fleet->require_subcommand(1);

    auto* list = add(*fleet, options, "nodes", "List the nodes of the fleet");
    list->footer(
        "Example:\n"
        "  nginx-ads fleet nodes");
    list->callback([options, &chosen] { chosen = [options] { return nodes(*options); }; });

    auto* limits = add(*fleet, options, "walls", "Show what nodes hold of the shared limits");
    limits->add_option("--ad-group", options->ad_group, "Only limits of this ad group, by node")
        ->option_text("ID");
    limits->add_option("--campaign", options->campaign, "Only the budget of this campaign, by node")
        ->option_text("ID");
    limits->add_flag("--stranded", options->stranded,
                     "Only limits of which silent nodes hold part");
    limits->footer(
        "Example:\n"
        "  nginx-ads fleet walls --ad-group 12");
    limits->callback([options, &chosen] { chosen = [options] { return walls(*options); }; });

    auto* gone = add(*fleet, options, "forget", "Close the account of a node that is lost");
    gone->add_option("node", options->node, "Name or number of the node")
        ->required()
        ->option_text("NODE");
    gone->add_flag("--force", options->force, "Forget a node that is active");
    gone->footer(
        "What the node holds and has not used is free for the others. Serves that it has not\n"
        "shipped are not known to PostgreSQL: ship its spool first if it can be read.\n"
        "\n"
        "Example:\n"
        "  nginx-ads fleet forget web3");
    gone->callback([options, &chosen] { chosen = [options] { return forget(*options); }; });
    add_fleet_drain(*fleet, chosen);
}

}  // namespace ads::cli
