// The core alone, without nginx: core [NAME=CATALOG …] [--benchmark_…]
//
// Each catalog adds a decision and a bind under its name; tokens, records and
// answers are measured on the first. scripts/bench --core prepares them.
#include <benchmark/benchmark.h>

#include <memory>

#include "core/decide/render.hpp"
#include "core/event/event.hpp"
#include "fixture.hpp"
#include "ledger/state.hpp"

using namespace ads;

namespace {

constexpr char kSecret[] = "1 7d0bfa5e3c9148a26650d1b7ee43f28c915a0c67d2f38b4e06c7a9e154bb80f3";
constexpr std::string_view kBase = "/spot/";

// A catalog and what was decided from it once.
struct Subject {
    std::string name;
    std::vector<char> bytes;
    View view;
    uint32_t placement = kNone;
    KeyRing ring = bench::ring_of(kSecret);
    Ad ad;

    Subject(std::string name_, const char* path) : name(std::move(name_)) {
        bytes = bench::image_of(path);
        view.bind(Image(bytes.data()));
        view.advance(bench::kNow);
        placement = bench::placement_in(image());
        Rng rng(1);
        Page page;
        bench::Ledger ledger(image());
        if (!bench::decide_one(view, bench::request(), placement, page, rng, ledger)) {
            bench::fail(name + ": nothing survives the request");
        }
        ad.pick = page.picks()[0];
        mint_tokens(ad, image(), token(rng.next()), ring.signer());
    }

    const Image& image() const noexcept { return view.image(); }

    Token token(uint64_t serve) const noexcept {
        return bench::token_of(image(), ad.pick.creative, placement, serve, bench::kNow * 1000);
    }
};

void decide_one(benchmark::State& state, Subject& subject) {
    Rng rng(1);
    bench::Ledger ledger(subject.image());
    const Request request = bench::request();
    for (auto _ : state) {
        Page page;
        benchmark::DoNotOptimize(
            bench::decide_one(subject.view, request, subject.placement, page, rng, ledger));
    }
}

void bind_view(benchmark::State& state, Subject& subject) {
    View view;
    for (auto _ : state) {
        view.bind(subject.image());
        view.advance(bench::kNow);
    }
}

void mint_one(benchmark::State& state, Subject& subject) {
    Token token = subject.token(0);
    char out[kTokenChars];
    for (auto _ : state) {
        token.serve++;
        mint(token, subject.ring.signer(), out);
        benchmark::DoNotOptimize(out);
    }
}

void mint_all(benchmark::State& state, Subject& subject) {
    Token token = subject.token(0);
    Ad ad = subject.ad;
    for (auto _ : state) {
        token.serve++;
        mint_tokens(ad, subject.image(), token, subject.ring.signer());
        benchmark::DoNotOptimize(ad);
    }
}

void verify_one(benchmark::State& state, Subject& subject) {
    const auto text = Ad::text(subject.ad.impression);
    Token token;
    for (auto _ : state) {
        if (verify(text, subject.ring, EventType::impression, bench::kNow * 1000, {}, token) !=
            TokenError::none) {
            state.SkipWithError("the token is refused");
        }
        benchmark::DoNotOptimize(token);
    }
}

void write_event(benchmark::State& state, Subject& subject) {
    const Token token = subject.token(1);
    Event event{.type = EventType::impression,
                .time = token.issued,
                .issued = token.issued,
                .serve = token.serve,
                .campaign = token.campaign,
                .ad_group = token.ad_group,
                .creative = token.creative,
                .price = token.price,
                .node = token.node,
                .placement = bench::kPlacement};
    char out[kMaxRecord];
    for (auto _ : state) {
        event.serve++;
        benchmark::DoNotOptimize(write_record(event, out));
    }
}

void render_answer(benchmark::State& state, Subject& subject) {
    char memory[4096];
    for (auto _ : state) {
        Out out(memory, sizeof memory);
        render_json(out, subject.image(), {&subject.ad, 1}, kBase);
        benchmark::DoNotOptimize(out.size());
    }
}

// In 64 MB, as configured where nothing else is: most claims miss the caches.
void claim_and_complete(benchmark::State& state, Subject&) {
    constexpr uint64_t kEntries = 4 << 20;
    const auto size = State::size(kEntries, 16);
    const std::unique_ptr<std::byte, decltype(&std::free)> memory(
        static_cast<std::byte*>(std::aligned_alloc(4096, (size + 4095) / 4096 * 4096)), &std::free);
    std::fill_n(memory.get(), size, std::byte{0});
    State::format({memory.get(), size}, kEntries, 16, 1);
    State table = State::attach(memory.get());
    const uint32_t place = table.enter(1);
    Rng rng(1);
    for (auto _ : state) {
        uint32_t entry = kNone;
        const uint64_t key = dedupe_key(rng.next(), EventType::impression);
        if (table.dedupe().claim(key, 1000, 5000, place, entry) != Claim::fresh) {
            state.SkipWithError("a fresh key is not fresh");
        }
        table.dedupe().complete(entry, place);
        table.dedupe().clear_pending(place);
    }
}

using Bench = void (*)(benchmark::State&, Subject&);

void add(const std::string& name, Bench bench, Subject& subject) {
    benchmark::RegisterBenchmark(name.c_str(),
                                 [=, &subject](benchmark::State& s) { bench(s, subject); });
}

}  // namespace

int main(int argc, char** argv) {
    benchmark::Initialize(&argc, argv);
    std::vector<std::unique_ptr<Subject>> subjects;
    for (int i = 1; i < argc; i++) {
        const std::string_view argument(argv[i]);
        const size_t equals = argument.find('=');
        if (equals == std::string_view::npos) {
            bench::fail("usage: core NAME=CATALOG … [--benchmark_…]");
        }
        subjects.push_back(std::make_unique<Subject>(std::string(argument.substr(0, equals)),
                                                     argv[i] + equals + 1));
        add("decide/" + subjects.back()->name, decide_one, *subjects.back());
        add("bind/" + subjects.back()->name, bind_view, *subjects.back());
    }
    if (subjects.empty()) {
        bench::fail("usage: core NAME=CATALOG … [--benchmark_…]");
    }
    const std::pair<const char*, Bench> rest[] = {
        {"mint", mint_one},      {"mint/3", mint_all},      {"verify", verify_one},
        {"record", write_event}, {"render", render_answer}, {"claim", claim_and_complete},
    };
    for (const auto& [name, bench] : rest) {
        add(name, bench, *subjects[0]);
    }
    benchmark::RunSpecifiedBenchmarks();
    return 0;
}
