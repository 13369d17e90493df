#include "cli/common/batch.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <new>

#include "lib/base/files.hpp"

namespace ads::cli {

namespace {

constexpr size_t kLongestLine = 1 << 20;

void print_line(const json_t* answer) {
    struct Free {
        void operator()(char* text) const noexcept { std::free(text); }
    };
    const std::unique_ptr<char, Free> text(json_dumps(answer, JSON_COMPACT));
    if (text == nullptr) {
        throw std::bad_alloc();
    }
    out().put(text.get());
    out().put("\n");
}

json_t* answer_to(const json_t* id) {
    json_t* answer = json_object();
    json_object_set_new(answer, "id", id == nullptr ? json_null() : json_deep_copy(id));
    return answer;
}

void fill(std::string_view line, const BatchHandler& handle, Json& answer) {
    json_error_t error;
    const Json root(
        json_loadb(line.data(), line.size(), JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error));
    if (root == nullptr) {
        throw BadLine(fmt::format("not JSON: {}", error.text));
    }
    if (!json_is_object(root.get())) {
        throw BadLine("must be an object");
    }
    answer.reset(answer_to(json_object_get(root.get(), "id")));
    handle(root.get(), answer.get());
}

void answer_line(std::string_view line, const BatchHandler& handle) {
    Json answer(answer_to(nullptr));
    try {
        if (line.size() > kLongestLine) {
            throw BadLine(fmt::format("longer than {} bytes", kLongestLine));
        }
        fill(line, handle, answer);
    } catch (const BadLine& e) {
        Json failed(answer_to(json_object_get(answer.get(), "id")));
        put(failed.get(), "error", text_json(e.what()));
        answer = std::move(failed);
    }
    print_line(answer.get());
}

}  // namespace

Exit run_batch(const BatchHandler& handle) {
    std::string waiting;
    char buffer[65536];
    for (;;) {
        const size_t size = read_stdin(buffer, sizeof buffer);
        std::string_view text(buffer, size);
        for (size_t end = text.find('\n'); end != text.npos; end = text.find('\n')) {
            waiting += text.substr(0, end);
            text.remove_prefix(end + 1);
            answer_line(waiting, handle);
            waiting.clear();
        }
        // Of a line that is too long only that has to be known.
        waiting += text.substr(0, waiting.size() > kLongestLine ? 0 : text.size());
        if (size == 0) {
            break;
        }
        out().flush();  // a client may wait for each line
    }
    if (!waiting.empty()) {
        answer_line(waiting, handle);
    }
    return Exit::ok;
}

std::string_view string_member(const json_t* line, const char* name) {
    const json_t* json = json_object_get(line, name);
    if (!json_is_string(json)) {
        throw BadLine(fmt::format("{} must be a string", name));
    }
    return {json_string_value(json), json_string_length(json)};
}

void put(json_t* object, const char* name, json_t* value) {
    if (json_object_set_new(object, name, value) != 0) {
        throw std::bad_alloc();
    }
}

}  // namespace ads::cli
