// Resolves host names: by DNS, or from the command line.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
#include "cli/common/arguments.hpp"

#include "cli/common/output.hpp"
#include "lib/base/url_policy.hpp"

namespace ads::cli {

Answers ask_dns(const std::string& host);

// Answers from the command line, "host=addr[,addr]". A name without an entry has no address.
class Given {
public:
    // Parses an entry; false if it is invalid. A second entry for a name adds addresses.
    bool add(std::string_view entry);
    // As add(), but a second entry for a name is its second answer, and so on; the last answer is
    // repeated.
    bool add_next(std::string_view entry);

    Answers operator()(const std::string& host);

private:
    std::map<std::string, std::deque<Answers>> answers_;
};

// For an option whose value is an entry.
Validator is_answer();

// Resolves in separate threads: DNS may take far longer than the time limit.
class Resolving {
public:
    // `wake` is called by another thread when there is an answer.
    Resolving(Resolver resolve, std::function<void()> wake);
    ~Resolving();
    Resolving(const Resolving&) = delete;
    Resolving& operator=(const Resolving&) = delete;

    void ask(std::string host);
    std::vector<std::pair<std::string, Answers>> answered();

private:
    struct Shared {
        std::mutex mutex;
        std::condition_variable news;
        std::deque<std::string> questions;
        std::vector<std::pair<std::string, Answers>> answers;
        Resolver resolve;
        std::function<void()> wake;
        size_t idle = 0;
        size_t threads = 0;
        bool ended = false;
    };
    static void resolve_until_ended(const std::shared_ptr<Shared>& shared);

    // A thread that waits for DNS cannot be stopped: it may outlive this object and ends by itself.
    std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
};

}  // namespace ads::cli
