#include "cli/creative/resolver.hpp"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "cli/common/table.hpp"

namespace ads::cli {

namespace {

constexpr size_t kThreads = 32;

IpAddress address_of(const addrinfo& info) {
    IpAddress address;
    if (info.ai_family == AF_INET6) {
        address.v6 = true;
        std::memcpy(address.bytes.data(),
                    &reinterpret_cast<const sockaddr_in6*>(info.ai_addr)->sin6_addr, 16);
    } else {
        std::memcpy(address.bytes.data(),
                    &reinterpret_cast<const sockaddr_in*>(info.ai_addr)->sin_addr, 4);
    }
    return address;
}

std::string host_key(std::string_view host) {
    std::string key(host.ends_with('.') ? host.substr(0, host.size() - 1) : host);
    for (char& c : key) {
        c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    }
    return key;
}

void add_address(Answers& answers, std::string_view text) {
    std::string_view plain = text.substr(0, text.find('%'));  // a zone changes nothing
    if (plain.starts_with('[') && plain.ends_with(']')) {
        plain = plain.substr(1, plain.size() - 2);
    }
    if (const auto address = parse_ip(plain)) {
        answers.addresses.push_back(*address);
    } else {
        answers.fault = fmt::format("\"{}\" is not an IP address", printable(text));
    }
}

void add_addresses(Answers& answers, std::string_view list) {
    while (!list.empty()) {
        const std::string_view text = list.substr(0, list.find(','));
        list.remove_prefix(std::min(text.size() + 1, list.size()));
        add_address(answers, text);
    }
}

// The place of '=', if there is a name before it.
size_t name_end(std::string_view entry) {
    const size_t equals = entry.find('=');
    return equals == 0 ? entry.npos : equals;
}

}  // namespace

Answers ask_dns(const std::string& host) {
    addrinfo hints{};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* list = nullptr;
    Answers answers;
    // The dot: no search domain of this machine is appended.
    if (const int error = getaddrinfo((host + ".").c_str(), nullptr, &hints, &list); error != 0) {
        answers.fault = fmt::format("cannot resolve {}: {}", host, gai_strerror(error));
        return answers;
    }
    const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(list, freeaddrinfo);
    for (; list != nullptr; list = list->ai_next) {
        if (list->ai_family == AF_INET || list->ai_family == AF_INET6) {
            answers.addresses.push_back(address_of(*list));
        }
    }
    return answers;
}

// ---- given ones ----

bool Given::add(std::string_view entry) {
    const size_t end = name_end(entry);
    if (end == entry.npos) {
        return false;
    }
    auto& answers = answers_[host_key(entry.substr(0, end))];
    if (answers.empty()) {
        answers.emplace_back();
    }
    add_addresses(answers.back(), entry.substr(end + 1));
    return true;
}

bool Given::add_next(std::string_view entry) {
    const size_t end = name_end(entry);
    if (end == entry.npos) {
        return false;
    }
    answers_[host_key(entry.substr(0, end))].emplace_back();
    return add(entry);
}

Answers Given::operator()(const std::string& host) {
    const auto at = answers_.find(host_key(host));
    if (at == answers_.end()) {
        return {};
    }
    Answers answers = at->second.front();
    if (at->second.size() > 1) {
        at->second.pop_front();
    }
    return answers;
}

Validator is_answer() {
    return Validator(
        [](const std::string& text) {
            return Given().add(text)
                       ? std::string()
                       : fmt::format("must be HOST=ADDRESS[,ADDRESS], not \"{}\"", text);
        },
        "HOST=ADDRESS");
}

// ---- in threads ----

Resolving::Resolving(Resolver resolve, std::function<void()> wake) {
    shared_->resolve = std::move(resolve);
    shared_->wake = std::move(wake);
}

Resolving::~Resolving() {
    const std::lock_guard lock(shared_->mutex);
    shared_->ended = true;
    shared_->wake = nullptr;
    shared_->news.notify_all();
}

void Resolving::ask(std::string host) {
    const std::lock_guard lock(shared_->mutex);
    shared_->questions.push_back(std::move(host));
    if (shared_->questions.size() > shared_->idle && shared_->threads < kThreads) {
        std::thread([shared = shared_] { resolve_until_ended(shared); }).detach();
        shared_->threads++;
    }
    shared_->news.notify_one();
}

std::vector<std::pair<std::string, Answers>> Resolving::answered() {
    const std::lock_guard lock(shared_->mutex);
    return std::exchange(shared_->answers, {});
}

void Resolving::resolve_until_ended(const std::shared_ptr<Shared>& shared) {
    std::unique_lock lock(shared->mutex);
    for (;;) {
        shared->idle++;
        shared->news.wait(lock, [&] { return shared->ended || !shared->questions.empty(); });
        shared->idle--;
        if (shared->ended) {
            return;
        }
        const std::string host = std::move(shared->questions.front());
        shared->questions.pop_front();
        lock.unlock();
        Answers answers = shared->resolve(host);
        lock.lock();
        shared->answers.emplace_back(host, std::move(answers));
        if (shared->wake) {
            shared->wake();
        }
    }
}

}  // namespace ads::cli
