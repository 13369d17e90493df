// Any bytes as a query string: decoded into no more than was promised, valid
// UTF-8, or refused with a code and a sentence.
#include "core/base/query.hpp"

#include <cstdlib>
#include <memory>

namespace {

using namespace ads;

void check(bool holds) {
    if (!holds) {
        std::abort();
    }
}

void check_error(const InputError& error) {
    check(*error.code != '\0' && error.message != nullptr && *error.message != '\0');
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::string_view raw(reinterpret_cast<const char*>(data), size);
    valid_utf8(raw);
    valid_callback(raw);
    // As large as promised and no larger: the sanitizer watches its end.
    const std::unique_ptr<char[]> buffer(new char[size]);
    Query query;
    Query plain;
    InputError plain_error;
    const bool is_read = read_plain_query(raw, plain, plain_error);
    check(is_read == is_plain(raw));
    if (const InputError error = read_query(raw, {buffer.get(), size}, query)) {
        check_error(error);
        check(!is_read || plain_error);
        return 0;
    }
    check(!is_read || (!plain_error && plain.params.size() == query.params.size()));
    check(query.params.size() <= kMaxParams);
    for (size_t i = 0; i < query.params.size(); i++) {
        const Param& param = query.params[i];
        check(valid_utf8(param.name) && valid_utf8(param.value));
        check(param.name.size() + param.value.size() <= size);
    }
    ServeQuery serve;
    if (const InputError error = read_serve(query, serve)) {
        check_error(error);
        return 0;
    }
    check(serve.placements.size() >= 1 && serve.placements.size() <= kMaxPage);
    check(serve.format != Format::html || serve.placements.size() == 1);
    check(valid_callback(serve.callback));
    for (size_t i = 0; i < serve.placements.size(); i++) {
        check(!serve.placements[i].empty());
        check(serve.placements[i].find(',') == std::string_view::npos);
    }
    return 0;
}
