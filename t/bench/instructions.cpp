// A fixed number of decisions from a compiled image, to be counted by callgrind:
//
//   instructions compile CATALOG IMAGE    outside of valgrind, since it takes long
//   instructions decide IMAGE COUNT       under valgrind --tool=callgrind --instr-atstart=no
//   instructions render IMAGE COUNT       the answer's JSON
//   instructions record IMAGE COUNT       the event's record
//
// Tokens are not among them: OpenSSL chooses its code by the CPU.
#include <sys/resource.h>
#include <valgrind/callgrind.h>

#include <cstring>

#include "core/decide/render.hpp"
#include "core/event/event.hpp"
#include "fixture.hpp"

using namespace ads;

namespace {

// Counts `step`, done `count` times, and nothing around it.
template <class Step>
void counted(long count, Step step) {
    step();  // what happens once is not counted
    CALLGRIND_START_INSTRUMENTATION;
    for (long i = 0; i < count; i++) {
        step();
    }
    CALLGRIND_STOP_INSTRUMENTATION;
}

// Prints what it took, too: seconds of CPU, gigabytes at the peak, and bytes of
// the image for each group, what creatives show aside.
int compile(const char* catalog, const char* path) {
    const std::vector<char> bytes = bench::image_of(catalog);
    std::FILE* file = std::fopen(path, "wb");
    if (file == nullptr || std::fwrite(bytes.data(), bytes.size(), 1, file) != 1 ||
        std::fclose(file) != 0) {
        bench::fail(std::string(path) + " cannot be written");
    }
    const Image image(bytes.data());
    size_t content = 0;
    for (const auto& creative : image.creatives()) {
        for (const Text& text :
             {creative.click_url, creative.json_tail, creative.html_head, creative.html_tail}) {
            content += image.text(text).size();
        }
    }
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    const auto seconds = [](const timeval& t) {
        return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
    };
    std::printf(
        "{\"seconds\":%.3f,\"gigabytes\":%.3f,\"bytes per group\":%.1f}\n",
        seconds(used.ru_utime) + seconds(used.ru_stime), static_cast<double>(used.ru_maxrss) / 1e6,
        static_cast<double>(bytes.size() - content) / static_cast<double>(image.groups().size()));
    return 0;
}

int run(std::string_view what, const char* path, long count) {
    const std::string bytes = bench::text_of(path);
    View view;
    view.bind(Image(bytes.data()));
    view.advance(bench::kNow);
    const Image& image = view.image();
    const uint32_t placement = bench::placement_in(image);
    const Request request = bench::request();
    bench::Ledger ledger(image);
    Rng rng(1);
    Ad ad;
    const auto decide_once = [&] {
        Page page;
        if (!bench::decide_one(view, request, placement, page, rng, ledger)) {
            bench::fail("nothing survives the request");
        }
        ad.pick = page.picks()[0];
    };
    decide_once();
    std::memset(ad.impression, 'i', sizeof ad.impression);
    std::memset(ad.viewable, 'v', sizeof ad.viewable);
    std::memset(ad.click, 'c', sizeof ad.click);
    const Token token = bench::token_of(image, ad.pick.creative, placement, 1, request.now);
    if (what == "decide") {
        counted(count, decide_once);
    } else if (what == "render") {
        counted(count, [&] {
            char memory[4096];
            Out out(memory, sizeof memory);
            render_json(out, image, {&ad, 1}, AdUrls("/spot/"));
        });
    } else if (what == "record") {
        counted(count, [&] {
            char memory[kMaxRecord];
            write_record({.type = EventType::serve,
                          .time = token.issued,
                          .issued = token.issued,
                          .serve = token.serve,
                          .campaign = token.campaign,
                          .ad_group = token.ad_group,
                          .creative = token.creative,
                          .node = token.node,
                          .placement = bench::kPlacement},
                         memory);
        });
    } else {
        bench::fail("unknown: " + std::string(what));
    }
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc == 4) {
        return std::string_view(argv[1]) == "compile" ? compile(argv[2], argv[3])
                                                      : run(argv[1], argv[2], std::atol(argv[3]));
    }
    bench::fail("usage: instructions compile CATALOG IMAGE | decide|render|record IMAGE COUNT");
}
