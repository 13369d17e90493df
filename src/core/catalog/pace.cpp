#include "core/catalog/pace.hpp"

namespace ads::catalog {

void go_on(Pace* pace) {
    if (pace != nullptr && !pace->go_on()) {
        throw Stopped();
    }
}

void go_alone(Pace* pace) {
    if (pace != nullptr && !pace->go_alone()) {
        throw Stopped();
    }
}

}  // namespace ads::catalog
