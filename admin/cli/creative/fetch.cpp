#include "cli/creative/fetch.hpp"

#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "cli/common/output.hpp"
#include "cli/common/service.hpp"
#include "cli/common/table.hpp"
#include "version.hpp"

namespace ads::cli {

namespace {

using std::chrono::milliseconds;

constexpr size_t kMostHeaders = 16384;
constexpr std::chrono::seconds kNamesLive(30);
constexpr std::chrono::seconds kNoNamesLive(5);
constexpr size_t kMostNames = 10000;
// With another address to try, this is all that one gets to be reached.
constexpr milliseconds kFirstConnect(700);

struct FreeEasy {
    void operator()(CURL* easy) const noexcept { curl_easy_cleanup(easy); }
};
struct FreeList {
    void operator()(curl_slist* list) const noexcept { curl_slist_free_all(list); }
};

CURLM* new_multi() {
    static const bool ready = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
    CURLM* multi = ready ? curl_multi_init() : nullptr;
    if (multi == nullptr) {
        throw std::bad_alloc();
    }
    return multi;
}

struct Dialled {
    IpAddress address;
    uint16_t port = 0;
    bool operator==(const Dialled&) const = default;
};

std::optional<Dialled> dialled_of(const curl_sockaddr& from) {
    Dialled to;
    if (from.family == AF_INET) {
        sockaddr_in in{};
        std::memcpy(&in, &from.addr, sizeof in);
        std::memcpy(to.address.bytes.data(), &in.sin_addr, 4);
        to.port = ntohs(in.sin_port);
    } else if (from.family == AF_INET6) {
        sockaddr_in6 in{};
        std::memcpy(&in, &from.addr, sizeof in);
        std::memcpy(to.address.bytes.data(), &in.sin6_addr, 16);
        to.address.v6 = true;
        to.port = ntohs(in.sin6_port);
    } else {
        return std::nullopt;
    }
    return to;
}

std::string in_brackets(const std::string& host) {
    return host.find(':') == host.npos ? host : "[" + host + "]";
}

std::string shown(const Dialled& to) {
    return fmt::format("{}:{}", in_brackets(ip_text(to.address)), to.port);
}

}  // namespace

struct Fetcher::Fetch {
    Fetcher* owner = nullptr;
    uint64_t ticket = 0;
    Clock::time_point deadline;
    PixelUrl url;
    std::vector<std::string> visited;  // addresses of pages, for circles
    std::vector<IpAddress> addresses;  // checked ones, the next to dial first
    Dialled dialled;
    size_t header_bytes = 0;
    size_t body_bytes = 0;
    bool cut = false;  // we have read enough
    std::unique_ptr<curl_slist, FreeList> connect_to;
    std::unique_ptr<CURL, FreeEasy> easy;
    char detail[CURL_ERROR_SIZE] = "";

    milliseconds left() const {
        return std::chrono::duration_cast<milliseconds>(deadline - Clock::now());
    }
};

std::optional<AllowedNetwork> parse_allowed(const std::string& text) {
    const size_t slash = text.find('/');
    const size_t colon = slash == text.npos ? text.npos : text.find(':', slash);
    AllowedNetwork allowed;
    std::string error;
    const auto network = NetworkList::parse(text.substr(0, colon), error);
    if (!network || network->size() != 1) {
        return std::nullopt;
    }
    allowed.network = *network;
    if (colon != text.npos) {
        const char* end = text.data() + text.size();
        const auto [stop, wrong] = std::from_chars(text.data() + colon + 1, end, allowed.port);
        if (wrong != std::errc() || stop != end || allowed.port == 0) {
            return std::nullopt;
        }
    }
    return allowed;
}

// The resolver's threads may only use what outlives this: a multi handle that is
// being cleaned up is not woken, since `wake` is taken away first.
Fetcher::Fetcher(FetchLimits limits, Resolver resolve)
    : limits_(std::move(limits)),
      multi_(new_multi(), curl_multi_cleanup),
      resolving_(std::move(resolve), [multi = multi_.get()] { curl_multi_wakeup(multi); }) {
    curl_multi_setopt(multi_.get(), CURLMOPT_PIPELINING, CURLPIPE_NOTHING);
}

Fetcher::~Fetcher() {
    for (const auto& [ticket, fetch] : fetches_) {
        if (fetch->easy) {
            curl_multi_remove_handle(multi_.get(), fetch->easy.get());
        }
    }
}

uint16_t Fetcher::port_of(const IpAddress& address) const {
    for (const auto& allowed : limits_.allowed) {
        if (allowed.network.contains(address)) {
            return allowed.port;
        }
    }
    return 443;
}

std::string Fetcher::fault_of(const IpAddress& address) const {
    for (const auto& allowed : limits_.allowed) {
        if (allowed.network.contains(address)) {
            return {};
        }
    }
    return address_fault(address);
}

// ---- from an address of a page to one of a machine ----

void Fetcher::start(uint64_t ticket, const std::string& url) {
    auto& fetch = fetches_[ticket];
    fetch = std::make_unique<Fetch>();
    fetch->owner = this;
    fetch->ticket = ticket;
    fetch->deadline = Clock::now() + limits_.timeout;
    begin(*fetch, url);
}

void Fetcher::begin(Fetch& fetch, const std::string& url) {
    const std::string hop =
        fetch.visited.empty() ? std::string() : fmt::format("redirected to {}: ", printable(url));
    if (std::find(fetch.visited.begin(), fetch.visited.end(), url) != fetch.visited.end()) {
        return finish(fetch, Verdict::dead, Host::well, hop + "redirect loop");
    }
    fetch.visited.push_back(url);
    fetch.url = parse_pixel_url(url);
    if (!fetch.url.fault.empty()) {
        return finish(fetch, Verdict::dead, Host::untried,
                      fmt::format("blocked: {}{}", hop, fetch.url.fault));
    }
    if (fetch.url.literal) {
        fetch.addresses = {*fetch.url.literal};
        return dial(fetch);
    }
    const std::string& host = fetch.url.host;
    const auto known = known_.find(host);
    if (known != known_.end() && known->second.until > Clock::now()) {
        return resolved(fetch, known->second.answers);
    }
    auto& waiting = asked_[host];
    waiting.push_back(fetch.ticket);
    if (waiting.size() == 1) {
        resolving_.ask(host);
    }
}

void Fetcher::take_answers() {
    for (auto& [host, answers] : resolving_.answered()) {
        if (known_.size() >= kMostNames) {
            known_.clear();
        }
        const bool good = answers.fault.empty() && !answers.addresses.empty();
        known_[host] = {answers, Clock::now() + (good ? kNamesLive : kNoNamesLive)};
        const auto waiting = asked_.extract(host);
        if (waiting.empty()) {
            continue;
        }
        for (const uint64_t ticket : waiting.mapped()) {
            // It may have given up meanwhile.
            if (const auto at = fetches_.find(ticket); at != fetches_.end()) {
                resolved(*at->second, answers);
            }
        }
    }
}

void Fetcher::resolved(Fetch& fetch, const Answers& answers) {
    if (!answers.fault.empty()) {
        return finish(fetch, Verdict::retry, Host::failing, answers.fault);
    }
    if (answers.addresses.empty()) {
        return finish(fetch, Verdict::retry, Host::failing,
                      "no address found for " + fetch.url.host);
    }
    // One that is not public tells enough about the others.
    for (const auto& address : answers.addresses) {
        if (const std::string fault = fault_of(address); !fault.empty()) {
            return finish(fetch, Verdict::dead, Host::untried,
                          fmt::format("blocked: {}: {}", fetch.url.host, fault));
        }
    }
    fetch.addresses = answers.addresses;
    dial(fetch);
}

// ---- one connection, one answer ----

// Only checked addresses, regardless of libcurl's own resolution.
curl_socket_t Fetcher::open_socket(void* data, curlsocktype purpose, curl_sockaddr* address) {
    const auto& fetch = *static_cast<const Fetch*>(data);
    const auto to = dialled_of(*address);
    if (purpose != CURLSOCKTYPE_IPCXN || !to || *to != fetch.dialled) {
        return CURL_SOCKET_BAD;
    }
    if (fetch.owner->limits_.verbose) {
        log_line("dispatch", fmt::format("connecting to {} for {}", shown(*to), fetch.url.host));
    }
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

size_t Fetcher::on_body(char*, size_t, size_t size, void* data) {
    auto& fetch = *static_cast<Fetch*>(data);
    fetch.body_bytes += size;
    fetch.cut = fetch.body_bytes > fetch.owner->limits_.most_bytes;
    return fetch.cut ? 0 : size;
}

size_t Fetcher::on_header(char*, size_t, size_t size, void* data) {
    auto& fetch = *static_cast<Fetch*>(data);
    fetch.header_bytes += size;
    return fetch.header_bytes > kMostHeaders ? 0 : size;
}

void Fetcher::dial(Fetch& fetch) {
    const milliseconds left = fetch.left();
    if (left.count() <= 0) {
        return finish(fetch, Verdict::retry, Host::failing, "timed out");
    }
    fetch.dialled = {fetch.addresses.front(), port_of(fetch.addresses.front())};
    fetch.addresses.erase(fetch.addresses.begin());
    fetch.header_bytes = fetch.body_bytes = 0;
    fetch.cut = false;
    fetch.easy.reset(curl_easy_init());
    const std::string host = in_brackets(fetch.url.host);
    fetch.connect_to.reset(
        curl_slist_append(nullptr, fmt::format("{}:443:{}", host, shown(fetch.dialled)).c_str()));
    if (fetch.easy == nullptr || fetch.connect_to == nullptr) {
        throw std::bad_alloc();
    }
    const auto set = [&](CURLoption option, auto value) {
        if (curl_easy_setopt(fetch.easy.get(), option, value) != CURLE_OK) {
            throw Failure(Exit::failed, "libcurl is too old.");
        }
    };
    // Put together from what was checked: libcurl must not read another host out of it.
    set(CURLOPT_URL, fmt::format("https://{}{}", host, fetch.url.target).c_str());
    set(CURLOPT_PATH_AS_IS, 1L);
    set(CURLOPT_CONNECT_TO, fetch.connect_to.get());
    set(CURLOPT_OPENSOCKETFUNCTION, &Fetcher::open_socket);
    set(CURLOPT_OPENSOCKETDATA, static_cast<void*>(&fetch));
    set(CURLOPT_PROTOCOLS_STR, "https");
    set(CURLOPT_FOLLOWLOCATION, 0L);
    set(CURLOPT_PROXY, "");  // not even the environment's
    set(CURLOPT_NOPROXY, "*");
    set(CURLOPT_NETRC, static_cast<long>(CURL_NETRC_IGNORED));
    set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
    set(CURLOPT_USERAGENT, "nginx-ads/" ADS_VERSION);
    set(CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
    set(CURLOPT_SSL_VERIFYPEER, 1L);
    set(CURLOPT_SSL_VERIFYHOST, 2L);
    if (!limits_.ca_file.empty()) {
        set(CURLOPT_CAINFO, limits_.ca_file.c_str());
    }
    // The list is one file, which libcurl then reads once for all connections.
    set(CURLOPT_CAPATH, static_cast<char*>(nullptr));
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_TIMEOUT_MS, static_cast<long>(left.count()));
    if (!fetch.addresses.empty()) {
        set(CURLOPT_CONNECTTIMEOUT_MS,
            static_cast<long>(
                std::max(milliseconds(1), std::min(kFirstConnect, left / 2)).count()));
    }
    set(CURLOPT_ERRORBUFFER, fetch.detail);
    set(CURLOPT_WRITEFUNCTION, &Fetcher::on_body);
    set(CURLOPT_WRITEDATA, static_cast<void*>(&fetch));
    set(CURLOPT_HEADERFUNCTION, &Fetcher::on_header);
    set(CURLOPT_HEADERDATA, static_cast<void*>(&fetch));
    set(CURLOPT_PRIVATE, static_cast<void*>(&fetch));
    curl_multi_add_handle(multi_.get(), fetch.easy.get());
}

void Fetcher::ended(Fetch& fetch, CURLcode code) {
    long status = 0;
    curl_easy_getinfo(fetch.easy.get(), CURLINFO_RESPONSE_CODE, &status);
    if (code == CURLE_OK || fetch.cut) {
        return answered(fetch, status);
    }
    if (fetch.header_bytes > kMostHeaders) {
        return finish(fetch, Verdict::retry, Host::failing, "the response headers are too long");
    }
    curl_off_t connected = 0;
    curl_easy_getinfo(fetch.easy.get(), CURLINFO_CONNECT_TIME_T, &connected);
    const bool timed_out = code == CURLE_OPERATION_TIMEDOUT;
    if ((code == CURLE_COULDNT_CONNECT || (timed_out && connected == 0)) &&
        !fetch.addresses.empty()) {
        return dial(fetch);
    }
    finish(fetch, Verdict::retry, Host::failing,
           timed_out               ? "timed out"
           : *fetch.detail != '\0' ? printable(fetch.detail)
                                   : std::string(curl_easy_strerror(code)));
}

void Fetcher::answered(Fetch& fetch, long status) {
    if (status >= 200 && status < 300) {
        return finish(fetch, Verdict::sent, Host::well, {});
    }
    const char* target = nullptr;
    curl_easy_getinfo(fetch.easy.get(), CURLINFO_REDIRECT_URL, &target);
    if (target != nullptr) {
        if (static_cast<int>(fetch.visited.size()) > limits_.redirects) {
            return finish(
                fetch, Verdict::dead, Host::well,
                limits_.redirects == 0
                    ? fmt::format("status {}, and redirects are not followed", status)
                    : fmt::format("more than {}",
                                  counted(static_cast<uint64_t>(limits_.redirects), "redirect")));
        }
        const std::string url = target;  // it goes with the handle
        fetch.easy.reset();
        return begin(fetch, url);
    }
    // These three say "not now".
    const bool later = status >= 500 || status == 408 || status == 425 || status == 429;
    finish(fetch, later ? Verdict::retry : Verdict::dead, status < 500 ? Host::well : Host::failing,
           fmt::format("status {}", status));
}

void Fetcher::finish(Fetch& fetch, Verdict verdict, Host host, std::string error) {
    done_.push_back({fetch.ticket, verdict, host, std::move(error)});
    fetches_.erase(fetch.ticket);
}

// ---- all of them ----

void Fetcher::take_ended() {
    int rest = 0;
    while (const CURLMsg* message = curl_multi_info_read(multi_.get(), &rest)) {
        if (message->msg != CURLMSG_DONE) {
            continue;
        }
        const CURLcode code = message->data.result;
        CURL* easy = message->easy_handle;
        Fetch* fetch = nullptr;
        curl_easy_getinfo(easy, CURLINFO_PRIVATE, &fetch);
        curl_multi_remove_handle(multi_.get(), easy);
        ended(*fetch, code);
    }
}

// libcurl keeps the time of those that it has; these still wait for DNS.
void Fetcher::give_up_late() {
    const auto now = Clock::now();
    std::vector<Fetch*> late;
    for (const auto& [ticket, fetch] : fetches_) {
        if (fetch->easy == nullptr && fetch->deadline <= now) {
            late.push_back(fetch.get());
        }
    }
    for (Fetch* fetch : late) {
        finish(*fetch, Verdict::retry, Host::failing, "DNS timed out");
    }
}

std::vector<Fetched> Fetcher::wait(milliseconds time) {
    take_answers();
    int running = 0;
    curl_multi_perform(multi_.get(), &running);
    take_ended();
    if (done_.empty() && !fetches_.empty()) {
        curl_multi_poll(multi_.get(), nullptr, 0, static_cast<int>(time.count()), nullptr);
        take_answers();
        curl_multi_perform(multi_.get(), &running);
        take_ended();
    }
    give_up_late();
    return std::exchange(done_, {});
}

}  // namespace ads::cli
