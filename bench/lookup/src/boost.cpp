// boost::unordered_flat_map with the hash function that the Rust maps have (FoldedState).
#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <cstddef>
#include <cstring>

namespace {

std::uint64_t fold(std::uint64_t a, std::uint64_t b) {
    unsigned __int128 product = static_cast<unsigned __int128>(a) * b;
    return static_cast<std::uint64_t>(product >> 64) ^ static_cast<std::uint64_t>(product);
}

constexpr std::uint64_t MULTIPLIER = 0x9E3779B97F4A7C15;
constexpr std::uint64_t LAST_MULTIPLIER = 0xD6E8FEB86659FD93;

struct Text {
    unsigned char bytes[12];
    bool operator==(const Text &other) const { return std::memcmp(bytes, other.bytes, 12) == 0; }
};

struct Hash {
    using is_avalanching = void;
    std::uint64_t seed;
    std::size_t operator()(std::uint64_t key) const {
        return fold(fold(seed ^ key, MULTIPLIER), LAST_MULTIPLIER);
    }
    std::size_t operator()(const Text &key) const {
        std::uint64_t first, last, state = fold(seed ^ 12, MULTIPLIER) + 12;
        std::memcpy(&first, key.bytes, 8);
        std::memcpy(&last, key.bytes + 4, 8);
        state = fold(state ^ first, MULTIPLIER);
        return fold(fold(state ^ last, MULTIPLIER), LAST_MULTIPLIER);
    }
};

template <class K> using Map = boost::unordered_flat_map<K, std::uint64_t, Hash>;

template <class K> void *make(const K *keys, std::size_t count, std::uint64_t seed) {
    auto *map = new Map<K>(0, Hash{seed});
    map->reserve(count);
    for (std::size_t i = 0; i < count; i++) map->emplace(keys[i], i);
    return map;
}

template <class K> std::uint64_t sum(const void *map, const K *keys, std::size_t count) {
    const auto &of = *static_cast<const Map<K> *>(map);
    std::uint64_t total = 0;
    for (std::size_t i = 0; i < count; i++) {
        auto found = of.find(keys[i]);
        if (found != of.end()) total += found->second + 1;
    }
    return total;
}

}  // namespace

extern "C" {
void *boost_map_u64(const std::uint64_t *keys, std::size_t count, std::uint64_t seed) {
    return make(keys, count, seed);
}
std::uint64_t boost_sum_u64(const void *map, const std::uint64_t *keys, std::size_t count) {
    return sum(map, keys, count);
}
void boost_free_u64(void *map) { delete static_cast<Map<std::uint64_t> *>(map); }
void *boost_map_text(const unsigned char *keys, std::size_t count, std::uint64_t seed) {
    return make(reinterpret_cast<const Text *>(keys), count, seed);
}
std::uint64_t boost_sum_text(const void *map, const unsigned char *keys, std::size_t count) {
    return sum(map, reinterpret_cast<const Text *>(keys), count);
}
void boost_free_text(void *map) { delete static_cast<Map<Text> *>(map); }
}
