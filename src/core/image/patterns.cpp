#define PCRE2_CODE_UNIT_WIDTH 8

#include "core/image/patterns.hpp"

#include <pcre2.h>

namespace ads {

namespace {

constexpr uint32_t kMatchLimit = 10'000;
constexpr size_t kJitStack = 64 << 10;
constexpr uint64_t kKeepBinds = 3;

}  // namespace

struct Patterns::Code {
    pcre2_code* code = nullptr;
    uint64_t bind = 0;  // when it was last part of a catalog
    Code() = default;
    Code(const Code&) = delete;
    ~Code() { pcre2_code_free(code); }
};

struct Patterns::Engine {
    pcre2_match_context* context = pcre2_match_context_create(nullptr);
    pcre2_jit_stack* stack = pcre2_jit_stack_create(8 << 10, kJitStack, nullptr);
    pcre2_match_data* data = pcre2_match_data_create(1, nullptr);

    Engine() {
        pcre2_set_match_limit(context, kMatchLimit);
        pcre2_jit_stack_assign(context, nullptr, stack);
    }
    Engine(const Engine&) = delete;
    ~Engine() {
        pcre2_match_data_free(data);
        pcre2_match_context_free(context);
        pcre2_jit_stack_free(stack);
    }
};

Patterns::Patterns() : engine_(std::make_unique<Engine>()) {}
Patterns::~Patterns() = default;
Patterns::Patterns(Patterns&&) noexcept = default;
Patterns& Patterns::operator=(Patterns&&) noexcept = default;

void Patterns::bind(const Image& image) {
    image_ = image;
    binds_++;
    entries_.assign(image.head().patterns.count, {});
    std::erase_if(codes_,
                  [&](const auto& item) { return item.second->bind + kKeepBinds < binds_; });
}

Match Patterns::run(Code& code) noexcept {
    if (code.code == nullptr) {
        return Match::limit;
    }
    const int rc = pcre2_match(code.code, reinterpret_cast<PCRE2_SPTR>(url_.data()), url_.size(), 0,
                               PCRE2_NO_UTF_CHECK, engine_->data, engine_->context);
    if (rc >= 0) {
        return Match::yes;
    }
    return rc == PCRE2_ERROR_NOMATCH ? Match::no : Match::limit;
}

Match Patterns::match(uint32_t pattern) noexcept {
    Entry& entry = entries_[pattern];
    if (entry.request == request_) {
        return entry.result;
    }
    if (entry.code == nullptr) {
        const std::string_view text = image_.text(image_.get(image_.head().patterns)[pattern]);
        auto& slot = codes_[std::string(text)];
        if (slot == nullptr) {
            slot = std::make_unique<Code>();
            int error = 0;
            size_t offset = 0;
            slot->code =
                pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(),
                              PCRE2_UTF | PCRE2_NEVER_BACKSLASH_C, &error, &offset, nullptr);
            if (slot->code != nullptr) {
                pcre2_jit_compile(slot->code, PCRE2_JIT_COMPLETE);
            }
        }
        entry.code = slot.get();
    }
    entry.code->bind = binds_;
    entry.request = request_;
    entry.result = run(*entry.code);
    if (entry.result == Match::limit) {
        limits_hit_++;
    }
    return entry.result;
}

}  // namespace ads
