// nginx-ads completion, nginx-ads man: what the command line knows of itself.
#include "cli/main/completion.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>

#include "version.hpp"

namespace ads::cli {

namespace {

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
    return app.get_subcommands([](const CLI::App*) { return true; });
}

std::vector<std::string> words_of(const CLI::App& app) {
    std::vector<std::string> words;
    for (const auto* sub : commands_of(app)) {
        words.push_back(sub->get_name());
    }
    for (const auto* option : app.get_options()) {
        for (const auto& name : option->get_lnames()) {
            words.push_back("--" + name);
        }
    }
    return words;
}

// Each command with its path: "", " campaign", " campaign create".
template <class F>
void visit(const CLI::App& app, const std::string& path, F f) {
    f(app, path);
    for (const auto* sub : commands_of(app)) {
        visit(*sub, path + " " + sub->get_name(), f);
    }
}

// The words before the cursor lead to a command as far as they name one.
std::string cases_of(const CLI::App& root) {
    std::string cases;
    visit(root, "", [&](const CLI::App& app, const std::string& path) {
        cases +=
            fmt::format("        \"{}\") known=\"{}\" ;;\n", path, fmt::join(words_of(app), " "));
    });
    return cases;
}

// The values of an option, behind it.
std::string value_cases_of(const CLI::App& root) {
    std::string cases;
    visit(root, "", [&](const CLI::App& app, const std::string& path) {
        for (const auto* option : app.get_options()) {
            const auto& values = values_of(*option);
            for (const auto& name : option->get_lnames()) {
                cases += values.empty() ? ""
                                        : fmt::format("        \"{} --{}\") known=\"{}\" ;;\n",
                                                      path, name, fmt::join(values, " "));
            }
        }
    });
    return cases;
}

std::string paths_of(const CLI::App& root) {
    std::string paths;
    visit(root, "", [&](const CLI::App&, const std::string& path) { paths += path + "|"; });
    return paths;
}

std::string bash_script(const CLI::App& root) {
    return fmt::format(R"(# bash completion for nginx-ads: source it, or put it into
# /usr/share/bash-completion/completions/nginx-ads
_nginx_ads() {{
    local at="" word known="" i first=1 paths="|{}"
    [[ "${{COMP_WORDS[1]}}" == help && "$COMP_CWORD" -gt 1 ]] && first=2
    for ((i = first; i < COMP_CWORD; i++)); do
        word="${{COMP_WORDS[i]}}"
        [[ "$paths" == *"|$at $word|"* ]] && at="$at $word"
    done
    case "$at" in
{}    esac
    case "$at ${{COMP_WORDS[COMP_CWORD - 1]}}" in
{}    esac
    COMPREPLY=($(compgen -W "$known" -- "${{COMP_WORDS[COMP_CWORD]}}"))
}}
complete -o default -F _nginx_ads nginx-ads
)",
                       paths_of(root), cases_of(root), value_cases_of(root));
}

std::string zsh_script(const CLI::App& root) {
    return fmt::format(R"(#compdef nginx-ads
# zsh completion for nginx-ads: a file _nginx-ads in a folder of $fpath
_nginx_ads() {{
    local at="" known="" i first=2 paths="|{}"
    local -a list
    [[ "${{words[2]}}" == help ]] && (( CURRENT > 2 )) && first=3
    for ((i = first; i < CURRENT; i++)); do
        [[ "$paths" == *"|$at ${{words[i]}}|"* ]] && at="$at ${{words[i]}}"
    done
    case "$at" in
{}    esac
    case "$at ${{words[CURRENT - 1]}}" in
{}    esac
    list=(${{=known}})
    compadd -a list || _files
}}
# As a file of $fpath it is called at once; it may be sourced as well.
if [[ "${{funcstack[1]}}" == "_nginx-ads" ]]; then
    _nginx_ads "$@"
else
    compdef _nginx_ads nginx-ads
fi
)",
                       paths_of(root), cases_of(root), value_cases_of(root));
}

// ---- the manual ----

// Text of troff: a backslash and a dot at the beginning of a line mean something.
std::string troff(std::string_view text) {
    std::string escaped;
    for (const char c : text) {
        if (c == '\\') {
            escaped += "\\e";
        } else if (c == '-') {
            escaped += "\\-";
        } else {
            if ((c == '.' || c == '\'') && (escaped.empty() || escaped.back() == '\n')) {
                escaped += "\\&";
            }
            escaped += c;
        }
    }
    return escaped;
}

std::string option_line(const CLI::Option& option) {
    std::string names;
    for (const auto& name : option.get_snames()) {
        names += fmt::format("{}-{}", names.empty() ? "" : ", ", name);
    }
    for (const auto& name : option.get_lnames()) {
        names += fmt::format("{}--{}", names.empty() ? "" : ", ", name);
    }
    names = names.empty() ? option.get_name() : names;
    const std::string value = option.get_option_text();
    return fmt::format("{}{}{}", names, value.empty() || value == " " ? "" : " ", value);
}

std::string manual(const CLI::App& root) {
    std::string text = fmt::format(
        ".TH NGINX\\-ADS 1 \"\" \"nginx\\-ads {}\" \"User Commands\"\n.SH NAME\nnginx\\-ads \\- "
        "{}\n"
        ".SH SYNOPSIS\n.B nginx\\-ads\nCOMMAND [OPTIONS]\n.SH COMMANDS\n",
        ADS_VERSION, troff(root.get_description()));
    visit(root, "", [&](const CLI::App& app, const std::string& path) {
        if (path.empty()) {
            return;
        }
        text +=
            fmt::format(".SS \"nginx\\-ads{}\"\n{}.\n", troff(path), troff(app.get_description()));
        for (const auto* option : app.get_options()) {
            if (option->get_description() != root.get_help_ptr()->get_description()) {
                text += fmt::format(".TP\n.B {}\n{}\n", troff(option_line(*option)),
                                    troff(option->get_description()));
            }
        }
        if (const std::string footer = app.get_footer(); !footer.empty()) {
            text += fmt::format(".PP\n.nf\n{}\n.fi\n", troff(footer));
        }
    });
    return text + fmt::format(".SH NOTES\n.nf\n{}\n.fi\n", troff(root.get_footer()));
}

}  // namespace

void add_completion(Arguments& app, Command& chosen) {
    auto* completion = app.add_subcommand("completion", "Print a shell completion script");
    completion->require_subcommand(1);
    completion->footer(
        "Example:\n  nginx-ads completion bash > "
        "~/.local/share/bash-completion/completions/nginx-ads");
    const auto add = [&](const char* name, std::string (*script)(const CLI::App&)) {
        auto* shell = completion->add_subcommand(name, fmt::format("For {}", name));
        shell->footer(fmt::format("Example:\n  nginx-ads completion {} > FILE", name));
        shell->callback([&app, &chosen, script] {
            chosen = [&app, script] {
                out().put(script(app.app()));
                return Exit::ok;
            };
        });
    };
    add("bash", bash_script);
    add("zsh", zsh_script);
    auto* man = app.add_subcommand("man", "Print the manual page");
    man->footer("Example:\n  nginx-ads man > /usr/local/share/man/man1/nginx-ads.1");
    man->callback([&app, &chosen] {
        chosen = [&app] {
            out().put(manual(app.app()));
            return Exit::ok;
        };
    });
}

}  // namespace ads::cli
