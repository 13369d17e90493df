#include "lib/base/json.hpp"

#include <cstdlib>
#include <new>

#include "lib/base/text.hpp"

namespace ads::admin {

json_t* text_json(std::string_view text) {
    const std::string repaired = repaired_utf8(text);
    return json_stringn(repaired.data(), repaired.size());
}

json_t* number_json(uint64_t number) {
    return json_integer(static_cast<json_int_t>(number));
}

std::string dumped(const json_t* json, size_t digits) {
    struct Free {
        void operator()(char* text) const noexcept { std::free(text); }
    };
    if (json == nullptr) {
        return {};
    }
    const std::unique_ptr<char, Free> text(
        json_dumps(json, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(digits)));
    if (text == nullptr) {
        throw std::bad_alloc();
    }
    return text.get();
}

std::string text_at(const json_t* object, const char* key) {
    const json_t* value = json_object_get(object, key);
    return json_is_string(value) ? std::string(json_string_value(value), json_string_length(value))
                                 : std::string();
}

uint64_t number_at(const json_t* object, const char* key) {
    return static_cast<uint64_t>(json_integer_value(json_object_get(object, key)));
}

void merge(json_t* target, const json_t* patch) {
    const char* key = nullptr;
    json_t* value = nullptr;
    json_object_foreach(const_cast<json_t*>(patch), key, value) {
        json_t* old = json_object_get(target, key);
        if (json_is_null(value)) {
            json_object_del(target, key);
        } else if (json_is_object(value) && json_is_object(old)) {
            merge(old, value);
        } else {
            json_object_set_new(target, key, json_deep_copy(value));
        }
    }
}

}  // namespace ads::admin
