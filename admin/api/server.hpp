// The process behind scgi_pass: threads that take connections of one unix socket, each with its
// own connections to PostgreSQL.
#pragma once

#include <string>
#include <thread>
#include <vector>

#include "api/route.hpp"
#include "io/file.hpp"

namespace ads::api {

class Server {
public:
    // The socket is made with mode 0660. One that nobody listens to is replaced. Throws Failure.
    Server(Config config, std::string path, unsigned threads);
    // Ends when the requests that are being answered are.
    ~Server();
    Server(const Server&) = delete;

private:
    void serve();
    void serve_one(int fd, Connections& connections) const;

    const Config config_;
    const std::string path_;
    Fd listener_;
    Fd stop_;
    std::vector<std::thread> threads_;
};

}  // namespace ads::api
