#include "core/decide/match.hpp"

#include <algorithm>
#include <cstring>

#include "core/base/fixed_vector.hpp"

namespace ads {

namespace {

using Words = std::span<uint64_t>;
using Row = std::span<const uint64_t>;

// Rows of one length, to be ANDed in one pass.
class Rows {
public:
    void add(Row row) noexcept { rows_.push_back(row.data()); }

    void store(Words to) const noexcept {
        uint64_t* out = to.data();
        size_t i = 0;
        for (; i + 8 <= to.size(); i += 8) {
            Pair a = load(rows_[0] + i);
            Pair b = load(rows_[0] + i + 2);
            Pair c = load(rows_[0] + i + 4);
            Pair d = load(rows_[0] + i + 6);
            for (size_t r = 1; r < rows_.size(); r++) {
                const uint64_t* row = rows_[r] + i;
                a &= load(row);
                b &= load(row + 2);
                c &= load(row + 4);
                d &= load(row + 6);
            }
            save(a, out + i);
            save(b, out + i + 2);
            save(c, out + i + 4);
            save(d, out + i + 6);
        }
        for (; i < to.size(); i++) {
            uint64_t word = rows_[0][i];
            for (size_t r = 1; r < rows_.size(); r++) {
                word &= rows_[r][i];
            }
            out[i] = word;
        }
    }

private:
    // Two words, in a register of any machine.
    using Pair [[gnu::vector_size(2 * sizeof(uint64_t))]] = uint64_t;

    static Pair load(const uint64_t* from) noexcept {
        Pair pair;
        std::memcpy(&pair, from, sizeof pair);
        return pair;
    }
    static void save(const Pair& pair, uint64_t* to) noexcept {
        std::memcpy(to, &pair, sizeof pair);
    }

    // Open, device, geo, language and the keys.
    FixedVector<const uint64_t*, 4 + kIndexedKeys> rows_;
};

void and_row(Words words, Row row) noexcept {
    Rows rows;
    rows.add(words);
    rows.add(row);
    rows.store(words);
}

bool bit(Row row, uint32_t at) noexcept {
    return (row[at / 64] >> (at % 64) & 1) != 0;
}

// The first value whose hash is not less. Hashes lie evenly, so a few values are
// stepped through from where this one would be; among many that place is too far off.
size_t first_of_hash(std::span<const ValueRecord> values, uint64_t hash) noexcept {
    constexpr size_t kFew = 256;
    if (values.size() > kFew) {
        const auto at =
            std::lower_bound(values.begin(), values.end(), hash,
                             [](const ValueRecord& v, uint64_t h) { return v.hash < h; });
        return static_cast<size_t>(at - values.begin());
    }
    auto at = static_cast<size_t>((hash >> 32) * values.size() >> 32);
    while (at < values.size() && values[at].hash < hash) {
        at++;
    }
    while (at > 0 && values[at - 1].hash >= hash) {
        at--;
    }
    return at;
}

const ValueRecord* find_value(const Image& image, const Dimension& dimension,
                              std::string_view text) noexcept {
    const auto values = image.get(dimension.values);
    const uint64_t hash = text_hash(text);
    for (size_t at = first_of_hash(values, hash); at < values.size() && values[at].hash == hash;
         at++) {
        if (image.text(values[at].text) == text) {
            return &values[at];
        }
    }
    return nullptr;
}

// The named value or the nearest one that it is a part of: US-CA, then US.
const ValueRecord* find_nested(const Image& image, const Dimension& dimension,
                               std::string_view text) noexcept {
    while (!text.empty()) {
        if (const auto* value = find_value(image, dimension, text)) {
            return value;
        }
        const size_t dash = text.rfind('-');
        text = text.substr(0, dash == std::string_view::npos ? 0 : dash);
    }
    return nullptr;
}

// Whether the value's row, or `any` without a value, has the position.
bool accepts(const Image& image, const Dimension& dimension, const ValueRecord* value,
             uint32_t position) noexcept {
    if (value == nullptr) {
        return bit(image.get(dimension.any), position);
    }
    if (value->dense.count > 0) {
        return bit(image.get(value->dense), position);
    }
    const auto has = [&](const Slice<uint32_t>& list) {
        const auto positions = image.get(list);
        return std::binary_search(positions.begin(), positions.end(), position);
    };
    return has(value->added) || (bit(image.get(dimension.any), position) && !has(value->removed));
}

// row |= the value's positions. Only for dimensions without exclusions.
void or_value(const Image& image, const ValueRecord& value, Words row) noexcept {
    if (value.dense.count > 0) {
        const auto dense = image.get(value.dense);
        for (size_t i = 0; i < row.size(); i++) {
            row[i] |= dense[i];
        }
    }
    for (const uint32_t at : image.get(value.added)) {
        row[at / 64] |= uint64_t{1} << (at % 64);
    }
}

// words &= any + added - removed. `kept` has room for what was added: where it
// would not, the compiler made a row.
void and_sparse(const Image& image, Row any, const ValueRecord& value, Words words,
                std::span<uint32_t> kept) noexcept {
    size_t n = 0;
    for (const uint32_t at : image.get(value.added)) {
        kept[n] = at;
        n += bit(words, at) ? 1 : 0;
    }
    and_row(words, any);
    for (const uint32_t at : kept.first(n)) {
        words[at / 64] |= uint64_t{1} << (at % 64);
    }
    for (const uint32_t at : image.get(value.removed)) {
        words[at / 64] &= ~(uint64_t{1} << (at % 64));
    }
}

// The request's values of a key; each is one way to match.
template <class F>
void each_value(const Request& request, std::string_view name, F f) noexcept {
    for (const auto& key : request.keys) {
        if (key.name == name) {
            f(key.value);
        }
    }
}

// Several values of one key: any of them will do.
void and_any_of(const Image& image, const Request& request, const KeyDimension& key, Words words,
                Words spare) noexcept {
    const auto any = image.get(key.dimension.any);
    std::memcpy(spare.data(), any.data(), any.size_bytes());
    each_value(request, image.text(key.name), [&](std::string_view value) {
        if (const auto* record = find_value(image, key.dimension, value)) {
            or_value(image, *record, spare);
        }
    });
    and_row(words, spare);
}

bool key_matches(const Image& image, const Request& request, const RareKey& key) noexcept {
    bool matches = false;
    each_value(request, image.text(key.name), [&](std::string_view value) {
        for (const auto& text : image.get(key.values)) {
            matches = matches || image.text(text) == value;
        }
    });
    return matches;
}

// Without a URL no pattern matches.
bool url_matches(View& view, const Request& request, const GroupRecord& group) noexcept {
    const Image& image = view.image();
    const auto include = image.get(group.include_urls);
    if (request.url.empty()) {
        return include.empty();
    }
    const auto is = [&](Match wanted) {
        return [&view, wanted](uint32_t p) { return view.patterns().match(p) == wanted; };
    };
    if (!include.empty() && std::none_of(include.begin(), include.end(), is(Match::yes))) {
        return false;
    }
    const auto exclude = image.get(group.exclude_urls);
    return std::all_of(exclude.begin(), exclude.end(), is(Match::no));
}

// Checks without a row.
Reason check(View& view, const Request& request, const GroupRecord& group) noexcept {
    for (const auto& key : view.image().get(group.rare_keys)) {
        if (!key_matches(view.image(), request, key)) {
            return Reason::key;
        }
    }
    return url_matches(view, request, group) ? Reason::none : Reason::url;
}

}  // namespace

std::span<const uint32_t> filled_words(std::span<const uint64_t> words,
                                       std::span<uint32_t> to) noexcept {
    size_t n = 0;
    const auto stop = static_cast<uint32_t>(words.size());
    uint32_t w = 0;
    for (; w + 4 <= stop; w += 4) {
        if ((words[w] | words[w + 1] | words[w + 2] | words[w + 3]) == 0) {
            continue;
        }
        for (uint32_t i = w; i < w + 4; i++) {
            to[n] = i;
            n += words[i] != 0 ? 1 : 0;
        }
    }
    for (; w < stop; w++) {
        to[n] = w;
        n += words[w] != 0 ? 1 : 0;
    }
    return to.first(n);
}

Bits eligible(View& view, const Request& request, const PlacementRecord& placement) noexcept {
    const Image& image = view.image();
    const Words words = view.scratch(placement);
    const Words spare = view.spare(placement);

    // Rows first, all at once; lists then touch few words.
    struct Sparse {
        const Dimension* dimension;
        const ValueRecord* value;
    };
    Rows rows;
    FixedVector<Sparse, 2 + kIndexedKeys> sparse;
    FixedVector<const KeyDimension*, kIndexedKeys> several;
    const auto add = [&](const Dimension& dimension, const ValueRecord* value) {
        if (value == nullptr) {
            rows.add(image.get(dimension.any));
        } else if (value->dense.count > 0) {
            rows.add(image.get(value->dense));
        } else {
            sparse.push_back({&dimension, value});
        }
    };
    rows.add(view.open(placement));
    if (placement.devices.count > 0) {
        rows.add(image.get(placement.devices).subspan(request.device * words.size(), words.size()));
    }
    if (placement.geo.values.count > 0) {
        add(placement.geo, find_nested(image, placement.geo, request.geo));
    }
    if (placement.language.values.count > 0) {
        add(placement.language, find_nested(image, placement.language, request.language));
    }
    for (const auto& key : image.get(placement.keys)) {
        const ValueRecord* only = nullptr;
        size_t found = 0;
        each_value(request, image.text(key.name), [&](std::string_view value) {
            if (const auto* record = find_value(image, key.dimension, value)) {
                only = record;
                found++;
            }
        });
        if (found <= 1) {
            add(key.dimension, only);
        } else {
            several.push_back(&key);
        }
    }
    rows.store(words);
    for (const auto& [dimension, value] : sparse) {
        and_sparse(image, image.get(dimension->any), *value, words, view.list());
    }
    for (const auto* key : several) {
        and_any_of(image, request, *key, words, spare);
    }
    const Bits bits{words, filled_words(words, view.filled())};
    if (placement.checked.count > 0) {
        const auto checked = image.get(placement.checked);
        const auto groups = image.get(placement.groups);
        each_bit(bits, 0, placement.groups.count, [&](uint32_t at) {
            if (bit(checked, at) &&
                check(view, request, image.groups()[groups[at]]) != Reason::none) {
                bits.clear(at);
            }
            return true;
        });
    }
    return bits;
}

Reason why_not(View& view, const Request& request, const PlacementRecord& placement,
               uint32_t at) noexcept {
    const Image& image = view.image();
    const GroupRecord& group = image.groups()[image.get(placement.groups)[at]];
    if (!bit(view.open(placement), at)) {
        return view.why_closed(group, request.now / 1000);
    }
    if (placement.devices.count > 0 &&
        !bit(image.get(placement.devices)
                 .subspan(request.device * size_t{placement.open.count}, placement.open.count),
             at)) {
        return Reason::device;
    }
    const auto rejects = [&](const Dimension& dimension, std::string_view text) {
        return dimension.values.count > 0 &&
               !accepts(image, dimension, find_nested(image, dimension, text), at);
    };
    if (rejects(placement.geo, request.geo)) {
        return Reason::geo;
    }
    if (rejects(placement.language, request.language)) {
        return Reason::language;
    }
    for (const auto& key : image.get(placement.keys)) {
        bool ok = accepts(image, key.dimension, nullptr, at);
        each_value(request, image.text(key.name), [&](std::string_view value) {
            const auto* record = find_value(image, key.dimension, value);
            ok = ok || (record != nullptr && accepts(image, key.dimension, record, at));
        });
        if (!ok) {
            return Reason::key;
        }
    }
    return check(view, request, group);
}

}  // namespace ads
