// Requests at a fixed rate over kept connections, and how long they took:
//
//   load PORT RATE SECONDS CONNECTIONS PATH_FILE [HEADER …]
//
// The paths of the file are asked for in turn, once over if there are enough.
// A request's time runs from the moment it was due, not from when it could be
// sent: a server that stalls is charged for all that waited. But the clock stands still
// while this program does not run, on a machine that others use too: what it could not
// ask for was not late. The typical p99 is the median of those of all quarters of a
// second: what comes again and again is in it, a machine's rare stall is not. RATE 0: as fast as
// answers come, to find out what "half load" is. SIGINT ends it early. Prints one line of JSON.
//
//   load slices PORT[,PORT] WORKER[,WORKER] COUNT CONNECTIONS OURS_FILE FLOOR_FILE [HEADER …]
//
// COUNT times a fiftieth of a second of the one file's paths, then of the other's,
// as fast as answers come, and what the worker, a process id, spent on the CPU
// for each: what slows the machine for seconds slows both alike. With two workers
// each side has its own, and is charged for what that does while the other is at
// work. Prints a line of JSON with requests and nanoseconds of each slice.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

namespace {

using Nanos = int64_t;

volatile std::sig_atomic_t interrupted = 0;

Nanos monotonic() {
    timespec t{};
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<Nanos>(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}

// Time in which this program ran. Between two looks at it there are two system calls at most, and
// none that waits: what took longer was somebody else's.
class Clock {
public:
    Nanos now() {
        const Nanos t = monotonic();
        if (t - last_ > kStall) {
            stalled_ += t - last_;
        }
        last_ = t;
        return t - stalled_;
    }

    // After a wait.
    void resume() { last_ = monotonic(); }
    Nanos stalled() const { return stalled_; }

private:
    static constexpr Nanos kStall = 300'000;
    Nanos last_ = monotonic();
    Nanos stalled_ = 0;
};

[[noreturn]] void fail(const std::string& why) {
    std::fprintf(stderr, "load: %s\n", why.c_str());
    std::exit(1);
}

class Requests {
public:
    Requests(const char* file, const std::string& headers) {
        std::ifstream paths(file);
        for (std::string path; std::getline(paths, path);) {
            texts_.push_back("GET " + path + " HTTP/1.1\r\nHost: localhost\r\n" + headers + "\r\n");
        }
        if (texts_.empty()) {
            fail(std::string(file) + " has no paths");
        }
    }

    const std::string& next() { return texts_[next_++ % texts_.size()]; }

private:
    std::vector<std::string> texts_;
    size_t next_ = 0;
};

// Nanoseconds on a CPU, of all threads of a process.
Nanos on_cpu(const std::string& process) {
    Nanos sum = 0;
    for (const auto& task : std::filesystem::directory_iterator("/proc/" + process + "/task")) {
        Nanos nanos = 0;
        std::ifstream(task.path() / "schedstat") >> nanos;
        sum += nanos;
    }
    return sum;
}

struct Connection {
    int fd = -1;
    Nanos due = 0;  // of the request that is under way
    std::string in;
    size_t wanted = 0;  // bytes of the whole answer, 0: the head is not there yet
};

class Load {
public:
    Load(uint16_t port, size_t connections) : port_(port), connections_(connections) {
        epoll_ = epoll_create1(EPOLL_CLOEXEC);
        for (auto& connection : connections_) {
            open(connection);
            idle_.push_back(&connection);
        }
    }

    // Goes on in the requests where the run before, of the same, ended.
    void run(Requests& requests, double rate, double seconds) {
        requests_ = &requests;
        clock_.resume();
        const Nanos begin = begin_ = clock_.now();
        Nanos end = begin + static_cast<Nanos>(seconds * 1e9);
        const double step = rate > 0 ? 1e9 / rate : 0;
        uint64_t due = 0;
        for (;;) {
            const Nanos t = clock_.now();
            if (interrupted != 0) {
                end = std::min(end, t);
            }
            if (t >= end && idle_.size() == connections_.size()) {
                break;
            }
            if (t > end + 10'000'000'000) {
                fail("requests are not answered");
            }
            while (t < end && (rate > 0 ? begin + static_cast<Nanos>(step * double(due)) <= t
                                        : !idle_.empty())) {
                waiting_.push_back(rate > 0 ? begin + static_cast<Nanos>(step * double(due)) : t);
                due++;
                if (rate == 0) {
                    dispatch();
                }
            }
            dispatch();
            epoll_event events[256];
            const int timeout = rate > 0 && t < end ? 0 : 10;
            const int n = epoll_wait(epoll_, events, 256, timeout);
            if (timeout > 0) {
                clock_.resume();
            }
            for (int i = 0; i < n; i++) {
                read(*static_cast<Connection*>(events[i].data.ptr));
            }
        }
        seconds_ = double(clock_.now() - begin) / 1e9;
    }

    size_t answered() const { return times_.size(); }
    size_t errors() const { return errors_; }

    void print() {
        std::vector<Nanos> of_parts;
        for (auto& [number, times] : parts_) {
            std::sort(times.begin(), times.end());
            of_parts.push_back(at(times, 0.99));
        }
        std::sort(of_parts.begin(), of_parts.end());
        std::sort(times_.begin(), times_.end());
        const auto us = [&](double share) { return double(at(times_, share)) / 1000; };
        std::printf(
            "{\"requests\":%zu,\"errors\":%zu,\"per_second\":%.0f,\"p50_us\":%.1f,"
            "\"p99_us\":%.1f,\"p999_us\":%.1f,\"max_us\":%.1f,\"typical_p99_us\":%.1f,"
            "\"stalled_ms\":%.1f}\n",
            times_.size(), errors_, double(times_.size()) / seconds_, us(0.5), us(0.99), us(0.999),
            us(1), double(at(of_parts, 0.5)) / 1000, double(clock_.stalled()) / 1e6);
    }

private:
    static constexpr Nanos kPart = 250'000'000;

    static Nanos at(const std::vector<Nanos>& sorted, double share) {
        return sorted.empty()
                   ? 0
                   : sorted[std::min(sorted.size() - 1, size_t(share * double(sorted.size())))];
    }

    void open(Connection& c) {
        c.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        sockaddr_in to{};
        to.sin_family = AF_INET;
        to.sin_port = htons(port_);
        to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        if (connect(c.fd, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) {
            fail("cannot connect");
        }
        const int on = 1;
        setsockopt(c.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        fcntl(c.fd, F_SETFL, O_NONBLOCK);
        epoll_event event{};
        event.events = EPOLLIN;
        event.data.ptr = &c;
        epoll_ctl(epoll_, EPOLL_CTL_ADD, c.fd, &event);
    }

    void dispatch() {
        while (!waiting_.empty() && !idle_.empty()) {
            Connection& c = *idle_.front();
            idle_.pop_front();
            c.due = waiting_.front();
            waiting_.pop_front();
            c.in.clear();
            c.wanted = 0;
            const std::string& request = requests_->next();
            clock_.now();
            if (write(c.fd, request.data(), request.size()) != ssize_t(request.size())) {
                fail("a request could not be sent");
            }
        }
    }

    void read(Connection& c) {
        char buffer[16384];
        clock_.now();
        const ssize_t n = ::read(c.fd, buffer, sizeof buffer);
        if (n <= 0) {
            fail("the server closed a connection");
        }
        c.in.append(buffer, size_t(n));
        if (c.wanted == 0) {
            const size_t head = c.in.find("\r\n\r\n");
            if (head == std::string::npos) {
                return;
            }
            size_t length = 0;
            const size_t at = c.in.find("Content-Length: ");
            if (at != std::string::npos && at < head) {
                std::from_chars(c.in.data() + at + 16, c.in.data() + head, length);
            }
            c.wanted = head + 4 + length;
        }
        if (c.in.size() >= c.wanted) {
            const Nanos t = clock_.now();
            times_.push_back(t - c.due);
            parts_[static_cast<size_t>((c.due - begin_) / kPart)].push_back(t - c.due);
            errors_ += c.in.compare(9, 3, "200") == 0 ? 0 : 1;
            idle_.push_back(&c);
        }
    }

    Clock clock_;
    Nanos begin_ = 0;                             // of the run
    std::map<size_t, std::vector<Nanos>> parts_;  // times by the part of the run they were due in
    uint16_t port_;
    Requests* requests_ = nullptr;
    std::vector<Connection> connections_;
    std::deque<Connection*> idle_;
    std::deque<Nanos> waiting_;  // due, but no connection was free
    std::vector<Nanos> times_;
    size_t errors_ = 0;
    double seconds_ = 0;
    int epoll_ = -1;
};

std::string headers_of(int argc, char** argv, int first) {
    std::string headers;
    for (int i = first; i < argc; i++) {
        headers += std::string(argv[i]) + "\r\n";
    }
    return headers;
}

uint16_t port_of(const char* text) {
    return static_cast<uint16_t>(std::atoi(text));
}
size_t count_of(const char* text) {
    return static_cast<size_t>(std::atoi(text));
}

void slices(int argc, char** argv) {
    if (argc < 8) {
        fail("usage: load slices PORT WORKER COUNT CONNECTIONS OURS_FILE FLOOR_FILE [HEADER …]");
    }
    constexpr double kSlice = 0.02;  // seconds
    const std::string headers = headers_of(argc, argv, 8);
    Requests requests[2] = {{argv[6], headers}, {argv[7], headers}};
    const char* const names[2] = {"ours", "floor"};
    const auto both = [](const std::string& text) {
        const size_t comma = text.find(',');
        return std::array<std::string, 2>{
            text.substr(0, comma), comma == std::string::npos ? text : text.substr(comma + 1)};
    };
    const auto ports = both(argv[2]);
    const auto workers = both(argv[3]);
    const bool two = workers[0] != workers[1];
    Load first(port_of(ports[0].c_str()), count_of(argv[5]));
    Load second(port_of(ports[1].c_str()), count_of(argv[5]));
    Nanos cpu[2] = {on_cpu(workers[0]), on_cpu(workers[1])};
    std::printf("[");
    for (size_t i = 0; i < 2 * count_of(argv[4]); i++) {
        const size_t side = i % 2;
        Load& load = side == 0 ? first : second;
        const size_t before = load.answered();
        if (!two) {
            cpu[side] = on_cpu(workers[side]);
        }
        load.run(requests[side], 0, kSlice);
        const Nanos after = on_cpu(workers[side]);
        std::printf("%s{\"side\":\"%s\",\"requests\":%zu,\"nanoseconds\":%lld}", i > 0 ? "," : "",
                    names[side], load.answered() - before,
                    static_cast<long long>(after - cpu[side]));
        cpu[side] = after;
    }
    std::printf("]\n");
    if (first.errors() + second.errors() > 0) {
        fail(std::to_string(first.errors() + second.errors()) + " answers were not 200");
    }
}

}  // namespace

int main(int argc, char** argv) {
    if (argc > 1 && std::strcmp(argv[1], "slices") == 0) {
        slices(argc, argv);
        return 0;
    }
    if (argc < 6) {
        fail("usage: load PORT RATE SECONDS CONNECTIONS PATH_FILE [HEADER …]");
    }
    std::signal(SIGINT, [](int) { interrupted = 1; });
    Requests requests(argv[5], headers_of(argc, argv, 6));
    Load load(port_of(argv[1]), count_of(argv[4]));
    load.run(requests, std::atof(argv[2]), std::atof(argv[3]));
    load.print();
}
