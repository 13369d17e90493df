-- For wrk: wrk -s wrk.lua URL [-- TOKENS]
-- With a file of tokens, a line each, the URL is a prefix that each request
-- completes with the next token. Ends with one line for scripts/bench.

local token_size = 96

function init(args)
    if not args[1] then
        return
    end
    local file = assert(io.open(args[1], "rb"))
    local tokens = file:read("*a")
    file:close()

    local head = "GET " .. wrk.path
    local tail = " HTTP/1.1\r\nHost: " .. wrk.host .. ":" .. wrk.port .. "\r\n\r\n"
    local at = 1
    request = function()
        if at > #tokens then
            at = 1 -- used twice: scripts/bench sees it in the status
        end
        local token = tokens:sub(at, at + token_size - 1)
        at = at + token_size + 1
        return head .. token .. tail
    end
end

function done(summary, latency, requests)
    local e = summary.errors
    io.write(string.format("bench requests=%d microseconds=%d errors=%d p99=%d\n",
        summary.requests, summary.duration,
        e.connect + e.read + e.write + e.status + e.timeout, latency:percentile(99)))
end
