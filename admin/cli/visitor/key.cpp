// nginx-ads key: make, rotate and check the key ring of ads_secret.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/random.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>

#include "cli/common/options.hpp"
#include "cli/main/commands.hpp"
#include "core/token/keyring.hpp"
#include "lib/base/files.hpp"

namespace ads::cli {

namespace {

constexpr size_t kSecretBytes = 32;

struct Generate {
    unsigned id = 1;
    std::string output;
    bool force = false;
};

std::array<uint8_t, kSecretBytes> random_secret() {
    std::array<uint8_t, kSecretBytes> secret;
    ssize_t size = 0;
    do {
        size = getrandom(secret.data(), secret.size(), 0);
    } while (size < 0 && errno == EINTR);
    if (size != static_cast<ssize_t>(secret.size())) {
        throw Failure(Exit::failed,
                      fmt::format("cannot get random bytes: {}.", std::strerror(errno)));
    }
    return secret;
}

Exit generate(const Generate& options) {
    const std::string line = fmt::format("{} {:02x}\n", options.id, fmt::join(random_secret(), ""));
    if (options.output.empty() || options.output == kStdin) {
        out().put(line);
        return Exit::ok;
    }
    write_private(options.output, line, options.force);
    out().put(fmt::format("Key {} was written to {}.\n", options.id, options.output));
    return Exit::ok;
}

struct Rotate {
    std::string path;
    unsigned keep = KeyRing::kMaxKeys - 1;
};

// The id of the key in a line of a ring; 0 if it has none.
unsigned key_in(std::string_view line) {
    line = line.substr(0, line.find('#'));
    const size_t begin = line.find_first_not_of(" \t\r");
    unsigned id = 0;
    if (begin != line.npos) {
        std::from_chars(line.data() + begin, line.data() + line.size(), id);
    }
    return id;
}

// One more than the newest, so that no token meets another key under its id
// before 255 rotations have passed.
unsigned next_id(const KeyRing& ring) {
    unsigned id = ring.signer().id();
    do {
        id = id % 255 + 1;
    } while (ring.find(static_cast<uint8_t>(id)) != nullptr);
    return id;
}

Exit rotate(const Rotate& options) {
    std::error_code error_code;
    // Behind a link the file is replaced, not the link.
    const auto target = std::filesystem::canonical(options.path, error_code);
    const std::string path = error_code ? options.path : target.string();
    const std::string text = read_input(path);
    std::string error;
    const auto ring = KeyRing::parse(text, error);
    if (!ring) {
        throw Failure(Exit::bad_input, fmt::format("{}: {}.", options.path, error));
    }
    const unsigned id = next_id(*ring);
    std::string fresh = fmt::format("{} {:02x}\n", id, fmt::join(random_secret(), ""));
    std::vector<unsigned> kept;
    std::vector<unsigned> dropped;
    for (std::string_view rest = text; !rest.empty();) {
        const size_t end = std::min(rest.find('\n'), rest.size());
        const std::string_view line = rest.substr(0, end);
        rest.remove_prefix(std::min(end + 1, rest.size()));
        const unsigned old = key_in(line);
        if (old != 0) {
            (kept.size() < options.keep ? kept : dropped).push_back(old);
        }
        if (dropped.empty() || old == 0 || dropped.back() != old) {
            fresh.append(line).push_back('\n');
        }
    }
    write_private(path, fresh, true);
    out().put(
        fmt::format("{}: key {} signs now; {} still verif{}{}.\n", options.path, id,
                    kept.empty() ? "no other" : fmt::format("{}", fmt::join(kept, ", ")),
                    kept.size() > 1 ? "y" : "ies",
                    dropped.empty() ? "" : fmt::format("; removed {}", fmt::join(dropped, ", "))));
    return Exit::ok;
}

// nginx refuses such a file as well.
void check_mode(const std::string& path) {
    struct stat info;
    if (path != kStdin && stat(path.c_str(), &info) == 0 && (info.st_mode & 077) != 0) {
        warn(
            fmt::format("{} has mode {:04o}: other users may read or change it, and nginx refuses "
                        "it: run \"chmod 600 {}\".",
                        path, info.st_mode & 07777, path));
    }
}

Exit check(const std::string& path) {
    std::string error;
    const auto ring = KeyRing::parse(read_input(path), error);
    check_mode(path);
    if (!ring) {
        throw Failure(Exit::bad_input, fmt::format("{}: {}.", shown_name(path), error));
    }
    std::vector<unsigned> ids;
    for (unsigned id = 1; id < 256; id++) {
        if (ring->find(static_cast<uint8_t>(id)) != nullptr) {
            ids.push_back(id);
        }
    }
    out().put(fmt::format("{}: {} with id{} {}; key {} signs, all verify.\n", shown_name(path),
                          counted(ids.size(), "key"), ids.size() == 1 ? "" : "s",
                          fmt::join(ids, ", "), ring->signer().id()));
    return Exit::ok;
}

void add_generate(Arguments& key, Command& chosen) {
    auto options = std::make_shared<Generate>();
    auto* app = key.add_subcommand("generate", "Create a key of 64 random hex digits");
    app->add_option("--id", options->id, "Id of the key, 1 to 255 (default 1)")
        ->check(whole_number(1, 255))
        ->option_text("N");
    app->add_option("-o,--output", options->output,
                    "New file to write, with mode 0600 (default standard output)")
        ->option_text("FILE");
    app->add_flag("--force", options->force, "Replace FILE and all its keys if it exists");
    app->footer(
        "Example:\n"
        "  nginx-ads key generate --output /etc/nginx-ads/secret\n"
        "\n"
        "A ring has a line per key. The first key signs, all verify. To rotate, add the new line\n"
        "at the end on all nodes, reload, then move it to the top and reload again.");
    app->callback([options, &chosen] { chosen = [options] { return generate(*options); }; });
}

void add_rotate(Arguments& key, Command& chosen) {
    auto options = std::make_shared<Rotate>();
    auto* app = key.add_subcommand("rotate", "Add a new key at the top of a key ring");
    app->add_option("FILE", options->path, "The key ring, replaced atomically")
        ->required()
        ->option_text(" ");
    app->add_option("--keep", options->keep,
                    "Number of old keys to keep (default 15: a ring has 16)")
        ->check(whole_number(0, KeyRing::kMaxKeys - 1))
        ->option_text("N");
    app->footer(
        "Example:\n"
        "  nginx-ads key rotate /etc/nginx-ads/secret && nginx -s reload\n"
        "\n"
        "The old keys continue to verify tokens that they signed. With several nodes, first add\n"
        "the new key at the end of the ring on all of them: see \"key generate\".");
    app->callback([options, &chosen] { chosen = [options] { return rotate(*options); }; });
}

void add_check(Arguments& key, Command& chosen) {
    auto path = std::make_shared<std::string>();
    auto* app = key.add_subcommand("check", "Show the keys of a key ring and which one signs");
    app->add_option("FILE", *path, "The key ring; - is standard input")
        ->required()
        ->option_text(" ");
    app->footer("Example:\n  nginx-ads key check /etc/nginx-ads/secret");
    app->callback([path, &chosen] { chosen = [path] { return check(*path); }; });
}

}  // namespace

void add_key(Arguments& app, Command& chosen) {
    auto* key = app.add_subcommand("key", "Create, rotate and check the key ring of ads_secret");
    key->require_subcommand(1);
    key->footer("Example:\n  nginx-ads key generate --output /etc/nginx-ads/secret");
    add_generate(*key, chosen);
    add_rotate(*key, chosen);
    add_check(*key, chosen);
}

}  // namespace ads::cli
