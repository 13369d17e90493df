#include "ledger/zone.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <thread>
#include <vector>

#include "ledger_memory.hpp"

namespace {

using namespace ads;
using ledger_test::alive;
using ledger_test::dead;
using ledger_test::Memory;
using ledger_test::process;

// An image that is nothing but a head and words that tell the head's hash.
std::vector<char> fake_image(uint64_t hash, size_t words = 512) {
    std::vector<char> bytes(sizeof(ImageHead) + words * sizeof(uint64_t));
    ImageHead head;
    head.magic = kImageMagic;
    head.length = bytes.size();
    head.hash = hash;
    std::memcpy(bytes.data(), &head, sizeof head);
    for (size_t i = 0; i < words; i++) {
        store(bytes.data() + sizeof head + 8 * i, mix13(hash + i));
    }
    return bytes;
}

// Whether all that is seen belongs to one publication.
bool is_whole(const Image& image) {
    const ImageHead head = image.head();
    const char* body = reinterpret_cast<const char*>(&image.head()) + sizeof(ImageHead);
    const size_t words = (head.length - sizeof(ImageHead)) / sizeof(uint64_t);
    for (size_t i = 0; i < words; i++) {
        if (load<uint64_t>(body + 8 * i) != mix13(head.hash + i)) {
            return false;
        }
    }
    return image.head().hash == head.hash;
}

class LedgerZone : public testing::Test {
protected:
    LedgerZone() : memory_(Zone::needed(16384)) {
        ledger_test::revive_all();
        Zone::format(memory_.span());
        zone_ = Zone::attach(memory_.data());
    }

    Publish publish(uint64_t hash, uint32_t pid = 1, int64_t now = 5) {
        return zone_.publish(fake_image(hash), process(pid), zone_.term(), now, alive,
                             [](char*) { return true; });
    }

    uint64_t hash_seen(uint32_t pin) {
        uint64_t generation = 0;
        const Image image = zone_.pin(pin, generation);
        EXPECT_TRUE(!image || is_whole(image));
        return image ? image.head().hash : 0;
    }

    Memory memory_;
    Zone zone_;
};

TEST(LedgerZoneSize, NeededHoldsWhatWasAskedFor) {
    size_t before = 0;
    for (size_t image = 1; image < size_t{1} << 32; image += image / 7 + 1) {
        const size_t bytes = Zone::needed(image);
        ASSERT_GE(Zone::capacity(bytes), image);
        ASSERT_GE(bytes, before) << "a larger image needs no smaller zone";
        ASSERT_LE(bytes, image * 3 + Zone::kSmallest) << "and not absurdly much";
        before = bytes;
    }
}

TEST(LedgerZoneSize, AllPartsAreInside) {
    EXPECT_EQ(Zone::capacity(0), 0u);
    EXPECT_EQ(Zone::capacity(4096), 0u);
    for (size_t bytes = 32 << 10; bytes < size_t{8} << 20; bytes += bytes / 5 + 999) {
        if (Zone::capacity(bytes) == 0) {
            continue;
        }
        Memory memory(bytes);
        Zone::format(memory.span().first(bytes));
        const Zone zone = Zone::attach(memory.data());
        const ZoneHead& head = zone.head();
        EXPECT_GE(head.half_size, Zone::capacity(bytes)) << "what nginx keeps is set aside";
        EXPECT_GE(head.state_offset, sizeof(ZoneHead));
        EXPECT_GE(head.half_offset[0], head.state_offset + head.state_size);
        EXPECT_GE(head.half_offset[1], head.half_offset[0] + head.half_size);
        EXPECT_LE(head.half_offset[1] + head.half_size, bytes);
        for (const uint64_t offset :
             {head.state_offset, head.half_offset[0], head.half_offset[1]}) {
            EXPECT_EQ(offset % 4096, 0u);
        }
        EXPECT_EQ(zone.state().data(), memory.data() + head.state_offset);
        EXPECT_EQ(zone.state().size(), head.state_size);
    }
}

TEST(LedgerZoneSize, MorePagesHoldNoLess) {
    for (size_t pages = 1; pages < 5000; pages++) {
        EXPECT_LE(Zone::capacity(pages * 4096), Zone::capacity((pages + 1) * 4096)) << pages;
    }
}

TEST_F(LedgerZone, NothingBeforeTheFirst) {
    EXPECT_TRUE(static_cast<bool>(zone_));
    EXPECT_FALSE(static_cast<bool>(Zone()));
    EXPECT_EQ(zone_.generation(), 0u);
    const uint32_t pin = zone_.enter(process(2), alive);
    uint64_t generation = 99;
    EXPECT_FALSE(static_cast<bool>(zone_.pin(pin, generation)));
    EXPECT_EQ(generation, 0u);
    EXPECT_LE(zone_.used(), memory_.size());
}

TEST_F(LedgerZone, PublishesAndIsRead) {
    const size_t empty = zone_.used();
    const uint32_t pin = zone_.enter(process(2), alive);
    EXPECT_EQ(publish(11, 1, 1000), Publish::done);
    EXPECT_EQ(zone_.generation(), 1u);
    EXPECT_TRUE(zone_.publishes(11, 0));
    EXPECT_EQ(zone_.head().published_at.load(), 1000);
    EXPECT_EQ(zone_.head().publisher.load(), 0u);
    EXPECT_EQ(zone_.used(), empty + fake_image(11).size());
    EXPECT_EQ(hash_seen(pin), 11u);
    EXPECT_EQ(publish(12), Publish::done);
    EXPECT_EQ(hash_seen(pin), 12u);
    EXPECT_EQ(zone_.generation(), 2u);
}

TEST_F(LedgerZone, TheFinisherCompletesTheCopyBeforeItIsSeen) {
    const auto image = fake_image(11);
    const Publish result =
        zone_.publish(image, process(1), zone_.term(), 5, alive, [&](char* half) {
            EXPECT_EQ(zone_.generation(), 0u);
            EXPECT_EQ(std::memcmp(half, image.data(), image.size()), 0);
            reinterpret_cast<ImageHead*>(half)->compiled_at = 77;
            return true;
        });
    EXPECT_EQ(result, Publish::done);
    uint64_t generation = 0;
    EXPECT_EQ(zone_.pin(zone_.enter(process(2), alive), generation).head().compiled_at, 77);
}

TEST_F(LedgerZone, TooLargeIsRefused) {
    const size_t capacity = zone_.head().half_size;
    auto image = fake_image(1, (capacity - sizeof(ImageHead)) / 8);
    image.resize(capacity);
    EXPECT_EQ(zone_.publish(image, process(1), zone_.term(), 5, alive, [](char*) { return true; }),
              Publish::done);
    image.resize(capacity + 1);
    EXPECT_EQ(zone_.publish(image, process(1), zone_.term(), 5, alive, [](char*) { return true; }),
              Publish::too_large);
    EXPECT_EQ(zone_.generation(), 1u);
    EXPECT_EQ(zone_.head().publisher.load(), 0u);
}

TEST_F(LedgerZone, AStuckReaderBlocksAndADeadOneDoesNot) {
    const uint32_t follower = zone_.enter(process(2), alive);
    const uint32_t stuck = zone_.enter(process(3), alive);
    ASSERT_EQ(publish(11), Publish::done);
    EXPECT_EQ(hash_seen(follower), 11u);
    EXPECT_EQ(hash_seen(stuck), 11u);
    ASSERT_EQ(publish(12), Publish::done);
    EXPECT_EQ(hash_seen(follower), 12u);

    uint64_t generation = 0;
    EXPECT_EQ(publish(13), Publish::waits);
    EXPECT_EQ(zone_.head().waits_for.load(), process(3));
    EXPECT_EQ(zone_.head().publisher.load(), 0u) << "whoever waits holds nothing";
    EXPECT_TRUE(zone_.publishes(12, 0));
    EXPECT_EQ(hash_seen(follower), 12u);

    dead[3] = true;
    EXPECT_EQ(publish(13), Publish::done);
    EXPECT_EQ(zone_.head().waits_for.load(), 0u);
    EXPECT_TRUE(static_cast<bool>(zone_.pin(follower, generation)));
    EXPECT_EQ(generation, 3u);
}

TEST_F(LedgerZone, ABlockedPublicationGoesOnWhenTheReaderFollows) {
    const uint32_t pin = zone_.enter(process(2), alive);
    ASSERT_EQ(publish(11), Publish::done);
    ASSERT_EQ(publish(12), Publish::waits) << "it has not pinned anything yet";
    hash_seen(pin);
    ASSERT_EQ(publish(12), Publish::done);
    ASSERT_EQ(publish(13), Publish::waits);
    zone_.leave(pin);
    EXPECT_EQ(publish(13), Publish::done) << "whoever has left reads nothing";
}

TEST_F(LedgerZone, AReaderThatJustCameIsWaitedFor) {
    ASSERT_EQ(publish(11), Publish::done);
    const uint32_t pin = zone_.enter(process(2), alive);
    EXPECT_EQ(publish(12), Publish::waits);
    EXPECT_EQ(hash_seen(pin), 11u);
    EXPECT_EQ(publish(12), Publish::done);
}

TEST_F(LedgerZone, OnePublisherAtATime) {
    const auto image = fake_image(1);
    zone_.publish(image, process(1), zone_.term(), 5, alive, [&](char*) {
        EXPECT_EQ(
            zone_.publish(image, process(2), zone_.term(), 5, alive, [](char*) { return true; }),
            Publish::busy);
        return true;
    });
    EXPECT_EQ(zone_.generation(), 1u);
}

TEST_F(LedgerZone, ADeadPublisherIsReplaced) {
    ASSERT_EQ(publish(11), Publish::done);
    zone_.head().publisher.store(process(9));  // died in the middle of its copy
    EXPECT_EQ(publish(12), Publish::busy);
    dead[9] = true;
    EXPECT_EQ(publish(12), Publish::done);
    EXPECT_EQ(hash_seen(zone_.enter(process(2), alive)), 12u);
}

TEST_F(LedgerZone, PinsAreGivenOutAndTakenBack) {
    std::vector<uint32_t> pins;
    for (uint32_t i = 0; i < kMaxPins; i++) {
        pins.push_back(zone_.enter(process(i + 1), alive));
        ASSERT_LT(pins.back(), kMaxPins);
    }
    EXPECT_EQ(zone_.enter(process(900), alive), kNone);
    zone_.leave(pins[7]);
    EXPECT_EQ(zone_.enter(process(901), alive), pins[7]);
    dead[10] = true;
    EXPECT_EQ(zone_.enter(process(902), alive), pins[9]) << "the place of the dead";
    EXPECT_EQ(zone_.enter(process(903), alive), kNone);
}

// Readers check every byte they are given while a writer replaces it as fast
// as it may. One of them comes and goes all the time.
TEST_F(LedgerZone, ReadersNeverSeeATornImage) {
    constexpr uint64_t kTimes = 10'000;
    std::atomic<bool> stop{false};
    std::atomic<int> torn{0};
    std::atomic<int> backwards{0};
    std::vector<std::thread> readers;
    for (uint32_t pid = 2; pid <= 5; pid++) {
        readers.emplace_back([&, pid] {
            uint32_t pin = zone_.enter(process(pid), alive);
            uint64_t last = 0;
            for (uint64_t turn = 0; !stop.load(std::memory_order_relaxed); turn++) {
                if (pid == 5 && turn % 16 == 0) {
                    zone_.leave(pin);
                    pin = zone_.enter(process(pid), alive);
                }
                uint64_t generation = 0;
                const Image image = zone_.pin(pin, generation);
                torn += image && !(is_whole(image) && image.head().hash == generation);
                backwards += generation < last;
                last = generation;
                if (zone_.generation() == generation) {
                    std::this_thread::yield();
                }
            }
            zone_.leave(pin);
        });
    }
    for (uint64_t i = 1; i <= kTimes;) {
        // Of changing size, so that one image's end lies over another's middle.
        const auto image = fake_image(i, 8 + i % 128);
        const Publish result =
            zone_.publish(image, process(1), zone_.term(), 5, alive, [](char*) { return true; });
        ASSERT_NE(result, Publish::busy);
        ASSERT_NE(result, Publish::too_large);
        if (result == Publish::done) {
            i++;
        } else {
            std::this_thread::yield();
        }
    }
    stop = true;
    for (auto& reader : readers) {
        reader.join();
    }
    EXPECT_EQ(torn, 0);
    EXPECT_EQ(backwards, 0);
    EXPECT_EQ(zone_.generation(), kTimes);
}

// Several want to publish: each success is one whole image, in turn.
TEST_F(LedgerZone, PublishersTakeTurns) {
    constexpr uint64_t kTimes = 500;
    std::atomic<uint64_t> published{0};
    std::atomic<bool> stop{false};
    std::atomic<int> torn{0};
    std::thread reader([&] {
        const uint32_t pin = zone_.enter(process(50), alive);
        while (!stop) {
            uint64_t generation = 0;
            const Image image = zone_.pin(pin, generation);
            torn += image && !is_whole(image);
            std::this_thread::yield();
        }
        zone_.leave(pin);
    });
    std::vector<std::thread> writers;
    for (uint32_t pid = 1; pid <= 3; pid++) {
        writers.emplace_back([&, pid] {
            for (uint64_t i = 0; i < kTimes;) {
                if (publish(pid * 1000 + i, pid) == Publish::done) {
                    published++;
                    i++;
                } else {
                    std::this_thread::yield();
                }
            }
        });
    }
    for (auto& writer : writers) {
        writer.join();
    }
    stop = true;
    reader.join();
    EXPECT_EQ(zone_.generation(), published);
    EXPECT_EQ(published, 3 * kTimes);
    EXPECT_EQ(torn, 0);
}

// It was stopped for as long as another keeper took over and published.
TEST_F(LedgerZone, APublisherOfAnEarlierTermIsRefused) {
    const auto publish_in = [&](Term term, uint64_t hash, auto finish) {
        return zone_.publish(fake_image(hash), process(1), term, 5, alive, finish);
    };
    const Term late = zone_.next_term();
    const Term now = zone_.next_term();
    ASSERT_EQ(publish_in(now, 2, [](char*) { return true; }), Publish::done);
    const uint32_t pin = zone_.enter(process(3), alive);
    EXPECT_EQ(hash_seen(pin), 2u);
    EXPECT_EQ(publish_in(late, 1, [](char*) { return true; }), Publish::outdated);
    EXPECT_EQ(hash_seen(pin), 2u) << "the newer one stays";
    EXPECT_EQ(zone_.generation(), 1u);
    EXPECT_TRUE(zone_.publishes(2, 0));

    // While the half was being filled.
    EXPECT_EQ(publish_in(now, 3, [&](char*) { return zone_.next_term() > now; }),
              Publish::outdated);
    EXPECT_EQ(hash_seen(pin), 2u);
    EXPECT_TRUE(zone_.publishes(2, 0));
    EXPECT_EQ(publish_in(zone_.term(), 3, [](char*) { return true; }), Publish::done);
    EXPECT_EQ(hash_seen(pin), 3u);
}

std::string error_of(const Zone& zone, size_t room = 2000) {
    std::string text(room, '\0');
    text.resize(zone.error(text));
    return text;
}

TEST_F(LedgerZone, TheErrorIsKept) {
    EXPECT_EQ(error_of(zone_), "");
    zone_.set_error("$.campaigns[0]: bad");
    EXPECT_EQ(error_of(zone_), "$.campaigns[0]: bad");
    EXPECT_EQ(error_of(Zone::attach(memory_.data())), "$.campaigns[0]: bad");
    EXPECT_EQ(error_of(zone_, 5), "$.cam");
    zone_.set_error("short");
    EXPECT_EQ(error_of(zone_), "short");
    zone_.set_error(std::string(5000, 'x'));
    EXPECT_EQ(error_of(zone_), std::string(1024, 'x'));
    zone_.set_error("");
    EXPECT_EQ(error_of(zone_), "");
}

TEST_F(LedgerZone, AWriterThatDiedLeavesTheErrorWritable) {
    zone_.set_error("first");
    zone_.head().error.version.fetch_add(1);  // in the middle of it
    EXPECT_EQ(error_of(zone_), "") << "unreadable, but it returns";
    zone_.set_error("second");
    EXPECT_EQ(error_of(zone_), "second");
}

TEST_F(LedgerZone, AnErrorIsNeverReadTorn) {
    std::atomic<bool> stop{false};
    std::atomic<int> torn{0};
    std::atomic<int> read{0};
    std::vector<std::thread> readers;
    for (int t = 0; t < 3; t++) {
        readers.emplace_back([&] {
            while (!stop) {
                const std::string text = error_of(zone_);
                if (!text.empty()) {
                    read++;
                    const size_t expected = 10 + static_cast<size_t>(text[0] - 'a') * 30;
                    torn += text != std::string(expected, text[0]);
                }
            }
        });
    }
    for (int i = 0; i < 5'000 || read.load() < 100; i++) {
        const char c = static_cast<char>('a' + i % 26);
        zone_.set_error(std::string(10 + static_cast<size_t>(i % 26) * 30, c));
        if (i % 64 == 0) {
            std::this_thread::yield();
        }
    }
    stop = true;
    for (auto& reader : readers) {
        reader.join();
    }
    EXPECT_EQ(torn, 0);
}

}  // namespace
