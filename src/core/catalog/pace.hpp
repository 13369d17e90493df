// Long work beside something that must not wait for it.
#pragma once

namespace ads::catalog {

// Who runs long work is asked every few microseconds whether it goes on, and may
// take its time to answer.
class Pace {
public:
    virtual bool go_on() noexcept = 0;
    // The same, but nothing more will be asked for some milliseconds.
    virtual bool go_alone() noexcept = 0;

protected:
    ~Pace() = default;
};

// It does not go on.
struct Stopped {};

// These throw Stopped. Without a pace it always goes on.
void go_on(Pace* pace);
void go_alone(Pace* pace);

// For steps that are far shorter than a microsecond: asks at some of them.
class Steps {
public:
    explicit Steps(Pace* pace) : pace_(pace) {}
    void next() {
        if (++count_ % kSteps == 0) {
            go_on(pace_);
        }
    }

private:
    static constexpr unsigned kSteps = 32;
    Pace* const pace_;
    unsigned count_ = 0;
};

}  // namespace ads::catalog
