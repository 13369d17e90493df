// create, update, pause, resume, archive, clone, revert; start and stop of an experiment.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>

#include "cli/manage/manage.hpp"
#include "cli/manage/manage_fields.hpp"
#include "lib/base/files.hpp"

namespace ads::cli {

namespace {

bool says_nothing(const EditCommand& command) {
    return command.file.empty() && command.values.empty() && command.sets.empty();
}

template <class Do>
Exit run(const EditCommand& command, Edit edit, const char* action, Do f) {
    if (!command.id.empty()) {
        edit.ids = {command.id};
    }
    Database database(command.access.database, "nginx-ads manage");
    show_edited(command, action, f(database, options_of(command.access), edit));
    return Exit::ok;
}

}  // namespace

std::string actor_of(const std::string& option) {
    if (!option.empty()) {
        return option;
    }
    for (const char* name : {"USER", "LOGNAME"}) {
        if (const char* value = std::getenv(name); value != nullptr && *value != '\0') {
            return value;
        }
    }
    return {};  // the database user
}

EditOptions options_of(const Access& access) {
    return {actor_of(access.actor), access.dry_run, access.strict};
}

Exit run_create(const EditCommand& command) {
    const Json object(json_object());
    apply(command, object.get());
    if (command.edit.kind == Kind::campaign && text_at(object.get(), "name").empty()) {
        if (!says_nothing(command) || isatty(STDIN_FILENO) != 1 || isatty(STDERR_FILENO) != 1) {
            throw Failure(Exit::usage,
                          "campaign create requires --name, or a name in --file; on a terminal "
                          "without options it prompts for them.");
        }
        ask_for_campaign(object.get());
    }
    Edit edit = command.edit;
    edit.patch = [&](json_t* target) { json_object_update(target, object.get()); };
    return run(command, std::move(edit), "create", create);
}

Exit run_update(const EditCommand& command) {
    if (says_nothing(command)) {
        throw Failure(Exit::usage,
                      fmt::format("{} update requires an option to change, --set or --file.",
                                  words_of(command.edit.kind).command));
    }
    if (command.edit.ids.size() > 1 && command.file == kStdin) {
        throw Failure(Exit::usage, "--file must not be standard input for several ids.");
    }
    Edit edit = command.edit;
    edit.patch = [&](json_t* object) { apply(command, object); };
    return run(command, std::move(edit), "update", update);
}

Exit run_pause(const EditCommand& command) {
    return run(command, command.edit, "pause", pause);
}

Exit run_resume(const EditCommand& command) {
    return run(command, command.edit, "resume", resume);
}

Exit run_archive(const EditCommand& command) {
    return run(command, command.edit, "archive", archive);
}

Exit run_clone(const EditCommand& command) {
    return run(command, command.edit, "clone", clone);
}

Exit run_start(const EditCommand& command) {
    return run(command, command.edit, "start", start);
}

Exit run_stop(const EditCommand& command) {
    return run(command, command.edit, "stop", stop);
}

Exit run_revert(const EditCommand& command) {
    if (command.to.empty() == command.before.empty()) {
        throw Failure(Exit::usage, fmt::format("{} revert requires --to or --before.",
                                               words_of(command.edit.kind).command));
    }
    const bool before = command.to.empty();
    const RevertTo to{before ? command.before : command.to, before};
    return run(command, command.edit, "revert",
               [&](Database& database, const EditOptions& options, const Edit& edit) {
                   return revert(database, options, edit, to);
               });
}

}  // namespace ads::cli
