// Fetches pixels of third parties, many at once, and only from addresses that the policy allows
// (lib/base/url_policy.hpp). A name is resolved here, once; all of its addresses are checked, and
// the socket connects to one of these only. libcurl never sees a name that it would have to
// resolve.
#pragma once

#include <curl/curl.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "cli/common/output.hpp"
#include "cli/creative/resolver.hpp"
#include "core/visitor/network_list.hpp"
#include "lib/base/url_policy.hpp"

namespace ads::cli {

// Addresses to which connections are allowed although they are not public, and the port.
struct AllowedNetwork {
    NetworkList network;
    uint16_t port = 443;
};
// Parses "10.1.0.0/16" or "10.1.0.0/16:8443".
std::optional<AllowedNetwork> parse_allowed(const std::string& text);

struct FetchLimits {
    std::chrono::milliseconds timeout{2000};  // in total: DNS, redirects, the response
    size_t most_bytes = 4096;                 // of a response's body; the rest is not read
    int redirects = 0;                        // how many are followed
    std::vector<AllowedNetwork> allowed;
    std::string ca_file;   // empty: the system's
    bool verbose = false;  // log every socket
};

enum class Verdict {
    sent,
    retry,  // may succeed later
    dead,   // will not succeed
};

// What the outcome says about the host.
enum class Host { well, failing, untried };

struct Fetched {
    uint64_t ticket = 0;
    Verdict verdict = Verdict::retry;
    Host host = Host::untried;
    std::string error;  // empty: it was sent
};

class Fetcher {
public:
    Fetcher(FetchLimits limits, Resolver resolve);
    ~Fetcher();
    Fetcher(const Fetcher&) = delete;
    Fetcher& operator=(const Fetcher&) = delete;

    void start(uint64_t ticket, const std::string& url);
    // Continues all fetches, waits for at most that long, and returns the finished ones.
    std::vector<Fetched> wait(std::chrono::milliseconds time);
    size_t in_flight() const noexcept { return fetches_.size(); }

private:
    using Clock = std::chrono::steady_clock;
    struct Fetch;
    struct Known {
        Answers answers;
        Clock::time_point until;
    };

    void begin(Fetch& fetch, const std::string& url);
    void resolved(Fetch& fetch, const Answers& answers);
    void dial(Fetch& fetch);
    void ended(Fetch& fetch, CURLcode code);
    void answered(Fetch& fetch, long status);
    void finish(Fetch& fetch, Verdict verdict, Host host, std::string error);
    void take_answers();
    void take_ended();
    void give_up_late();
    uint16_t port_of(const IpAddress& address) const;
    std::string fault_of(const IpAddress& address) const;

    static curl_socket_t open_socket(void* fetch, curlsocktype purpose, curl_sockaddr* address);
    static size_t on_body(char* data, size_t, size_t size, void* fetch);
    static size_t on_header(char* data, size_t, size_t size, void* fetch);

    const FetchLimits limits_;
    std::unique_ptr<CURLM, CURLMcode (*)(CURLM*)> multi_;
    std::unordered_map<uint64_t, std::unique_ptr<Fetch>> fetches_;
    std::unordered_map<std::string, Known> known_;
    std::unordered_map<std::string, std::vector<uint64_t>> asked_;
    std::vector<Fetched> done_;
    Resolving resolving_;
};

}  // namespace ads::cli
