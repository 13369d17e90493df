#include "creative/tree.hpp"

namespace ads::creative {

namespace {

constexpr size_t kBlock = 1 << 20;
constexpr size_t kMaxBlocks = 16;
constexpr size_t kAlignment = alignof(std::max_align_t);

}  // namespace

const GumboNode* Tree::parse(std::string_view markup) {
    block_ = 0;
    at_ = end_ = nullptr;
    GumboOptions options = kGumboDefaultOptions;
    options.allocator = allocate;
    options.deallocator = release;
    options.userdata = this;
    options.max_errors = 0;
    options.fragment_context = GUMBO_TAG_BODY;
    // Tags that reopen each other (<p><b 1><b 2>…</p> again and again) grow in
    // the square. The parser is C and knows no failure: it is left by a jump.
    if (setjmp(too_much_) != 0) {
        return nullptr;
    }
    return gumbo_parse_with_options(&options, markup.data(), markup.size())->root;
}

void* Tree::allocate(void* self, size_t size) {
    auto& tree = *static_cast<Tree*>(self);
    char* memory = tree.take((size + kAlignment - 1) / kAlignment * kAlignment);
    if (memory == nullptr) {
        std::longjmp(tree.too_much_, 1);
    }
    return memory;
}

char* Tree::take(size_t size) {
    if (static_cast<size_t>(end_ - at_) < size) {
        at_ = size <= kBlock ? next_block() : nullptr;
        end_ = at_ == nullptr ? nullptr : at_ + kBlock;
        if (at_ == nullptr) {
            return nullptr;
        }
    }
    char* memory = at_;
    at_ += size;
    return memory;
}

char* Tree::next_block() {
    if (block_ == kMaxBlocks) {
        return nullptr;
    }
    if (block_ == blocks_.size()) {
        blocks_.push_back(std::unique_ptr<char[]>(new char[kBlock]));
    }
    return blocks_[block_++].get();
}

}  // namespace ads::creative
