// Threads of execution that take turns when they are told to: a process that may be stopped, woken
// or killed between any two accesses to memory.
#pragma once

#include <setjmp.h>
#include <ucontext.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

namespace stepped {

class Fiber {
public:
    explicit Fiber(std::function<void()> body) : body_(std::move(body)), stack_(take_stack()) {}
    ~Fiber() { spare_stacks().push_back(std::move(stack_)); }
    Fiber(const Fiber&) = delete;
    Fiber& operator=(const Fiber&) = delete;

    bool finished() const noexcept { return finished_; }
    static Fiber* running() noexcept { return running_; }

    // Lets it run until it pauses or ends.
    void resume() {
        running_ = this;
        if (_setjmp(outside_) == 0) {
            if (started_) {
                _longjmp(inside_, 1);
            }
            started_ = true;
            ucontext_t context;
            getcontext(&context);
            context.uc_stack.ss_sp = stack_.get();
            context.uc_stack.ss_size = kStack;
            context.uc_link = nullptr;
            makecontext(&context, &Fiber::enter, 0);
            setcontext(&context);
        }
        running_ = nullptr;
    }

    void pause() {
        if (_setjmp(inside_) == 0) {
            _longjmp(outside_, 1);
        }
    }

private:
    static constexpr size_t kStack = 128 << 10;
    using Stack = std::unique_ptr<std::byte[]>;

    static void enter() {
        Fiber* self = running_;
        self->body_();
        self->finished_ = true;
        _longjmp(self->outside_, 1);
    }
    static std::vector<Stack>& spare_stacks() {
        static std::vector<Stack> spare;
        return spare;
    }
    static Stack take_stack() {
        if (spare_stacks().empty()) {
            return Stack(new std::byte[kStack]);
        }
        Stack stack = std::move(spare_stacks().back());
        spare_stacks().pop_back();
        return stack;
    }

    static inline Fiber* running_ = nullptr;
    std::function<void()> body_;
    Stack stack_;
    jmp_buf inside_, outside_;
    bool started_ = false;
    bool finished_ = false;
};

}  // namespace stepped
