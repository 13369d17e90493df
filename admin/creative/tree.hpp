// The HTML5 parser, with bounded memory.
#pragma once

#include <gumbo.h>

#include <csetjmp>
#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

namespace ads::creative {

// A parsed creative. Its memory comes from blocks that are reused for the next one, so no tree is
// traversed to be freed, and the total is limited.
class Tree {
public:
    Tree() = default;
    Tree(const Tree&) = delete;
    Tree& operator=(const Tree&) = delete;

    // The element whose children are the creative's nodes, valid until the next call; null if the
    // memory limit is reached, which no legitimate creative does.
    const GumboNode* parse(std::string_view markup);

private:
    static void* allocate(void* self, size_t size);
    static void release(void*, void*) {}

    char* take(size_t size);
    char* next_block();

    std::vector<std::unique_ptr<char[]>> blocks_;
    size_t block_ = 0;  // the one in use
    char* at_ = nullptr;
    char* end_ = nullptr;
    std::jmp_buf too_much_;
};

}  // namespace ads::creative
