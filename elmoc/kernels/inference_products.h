// Products of inference: rows of numbers times a panel of a weight, in vector registers or AMX tiles, and the arithmetic
// of the gates. Part of inference.cpp, which says what S and a panel are.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "inference_batch.h"
#include "numbers.h"

namespace {

constexpr int64_t COLUMNS = 64, CELLS = 16, MOST_ROWS = 32;
constexpr int64_t HOISTED_WORDS = 256;  // whose input products are made at once

// In int8 a row of factors ends with its scale; a panel ends with the scales of its columns, and with what sums begin with
// where factors are `MADE_LARGER`. All that counts as this depth.
template <typename S>
constexpr int64_t SCALE = sizeof(S) == 1 ? 32 : 0;
// Depth of the projection's products at once: its factors stay in the second cache. In int8 a row has one scale.
template <typename S>
constexpr int64_t CHUNK = sizeof(S) == 1 ? INT64_MAX : 512;
// As what products are added up.
template <typename S>
using Sum = std::conditional_t<sizeof(S) == 1, int32_t, float>;
// As what σ(o)·tanh(c) is kept until a row's scale is known.
template <typename S>
using Gated = std::conditional_t<sizeof(S) == 1, float, S>;

// 16 cells of a row, S is `Gated`: c = clip(σ(i)·tanh(g) + σ(f)·c), and σ(o)·tanh(c).
template <typename S>
inline void gates(const float *sums, const float *bias, float *cell, S *gated, float limit) {
    constexpr float LOG2E = 1.44269504088896341f;
    const Numbers one = repeated(1.0f);
    const auto exponential = [&](int gate, float factor) {
        return power(load(sums + 16 * gate) + load(bias + 16 * gate), factor);
    };
    const Numbers i = exponential(0, -LOG2E), f = exponential(1, -LOG2E);
    const Numbers g = exponential(2, -2 * LOG2E), o = exponential(3, -LOG2E);
    const Numbers candidate = (one - g) * reciprocal((one + i) * (one + g));
    const Numbers c = clipped(multiply_add(reciprocal(one + f), load(cell), candidate), limit);
    store(cell, c);
    const Numbers t = power(c, -2 * LOG2E);
    store(gated, (one - t) * reciprocal((one + o) * (one + t)));
}

// What is done while a product waits for its tiles: gates of the rows whose sums are there, and weights of the next
// panel on their way to the second cache.
template <typename S>
struct Between {
    const float *sums = nullptr, *bias = nullptr;
    float *cell = nullptr;
    S *gated = nullptr;
    int64_t gated_stride = 0, done = 0, count = 0;
    float limit = INFINITY;
    const char *line = nullptr, *last_line = nullptr;

    void advance(int64_t part, int64_t parts) {
        for (const int64_t end = count * (part + 1) / parts; done < end; ++done)
            gates(sums + done * COLUMNS, bias, cell + done * CELLS, gated + done * gated_stride, limit);
        fetch(parts - part);
    }
    void fetch(int64_t parts) {
        const int64_t lines = (last_line - line + 63) / 64 / parts;
        for (int64_t each = 0; each < lines; ++each, line += 64) _mm_prefetch(line, _MM_HINT_T1);
    }
    void finish() { advance(0, 1); }
};

// Factors in memory, from a row and a number of it on: number k is `k / 32 * block_stride + k % 32` further, the next
// row `stride`.
template <typename S>
struct Factors {
    S *start;
    int64_t stride, block_stride;

    Factors from(int64_t k) const { return {start + k / 32 * block_stride, stride, block_stride}; }
    void put(const S *numbers, int64_t count) const {  // a multiple of 32
        for (int64_t k = 0; k < count; k += 32) std::memcpy(from(k).start, numbers + k, 32 * sizeof(S));
    }
};

// Numbers as the factors of a row, which is `depth` deep.
template <typename S>
void put_numbers(Factors<S> place, const float *numbers, int64_t count, int64_t depth) {
    for (int64_t start = 0; start < count; start += 32)
        for (int64_t j = start; j < std::min(start + 32, count); ++j)
            store(place.from(start).start + j - start, numbers[j]);
}
// As `in_8_bits` in lstm_inference.py. The largest is found by its bits, in whose order NaN is above all numbers.
inline void put_numbers(Factors<int8_t> place, const float *numbers, int64_t count, int64_t depth) {
    constexpr float LEAST = 1e-30f;
    uint32_t most = 0;
    for (int64_t j = 0; j < count; ++j) {
        uint32_t bits;
        std::memcpy(&bits, numbers + j, sizeof bits);
        most = std::max(most, bits & 0x7FFFFFFFu);
    }
    float largest;
    std::memcpy(&largest, &most, sizeof largest);
    const float scale = largest / 127.0f, factor = 127.0f / std::max(largest, LEAST);
    for (int64_t j = 0; j < count; ++j) place.start[j] = int8_t(int32_t(std::nearbyint(numbers[j] * factor)));
    std::memcpy(place.start + depth - SCALE<int8_t>, &scale, sizeof scale);
}

// ---- products: sums [rows, 64] (+)= a [rows, depth] times a panel ----

inline Numbers product(const float *a, const float *panel, int64_t k, int gate, Numbers sum) {
    return multiply_add(repeated(a[k]), load(panel + k * COLUMNS + 16 * gate), sum);
}

// A panel in bfloat16 is [depth / 32, 4, 16 pairs, 16 columns, 2], the layout of AMX's tiles.
inline Numbers product(const bf16 *a, const bf16 *panel, int64_t pair, int gate, Numbers sum) {
    return pair_product(a + 2 * pair, panel + pair / 16 * 32 * COLUMNS + gate * 512 + pair % 16 * 32, sum);
}

// A panel in int8 is [depth / 4, 64 columns, 4].
inline Integers product(const int8_t *a, const int8_t *panel, int64_t four, int gate, Integers sum) {
    return four_products(a + 4 * four, panel + four * 4 * COLUMNS + gate * 64, sum);
}

template <typename S, int ROWS>
void multiply_rows(Factors<S> factors, const S *panel, int64_t depth, Sum<S> *sums, bool add,
                   Between<Gated<S>> *between) {
    using Sums = decltype(load(sums));
    constexpr int64_t BLOCK = std::min(16, int(8 * sizeof(S)));
    constexpr int GATES = REGISTERS >= 6 * 4 ? 4 : 1;  // at once: the sums of 6 rows stay in registers
    const S *const a = factors.start;
    const int64_t stride = factors.stride;
    const int64_t steps = depth * int64_t(sizeof(S)) / 4;  // a pair of bfloat16 at once, or four of int8
    for (int first = 0; first < 4; first += GATES) {
        Sums sum[ROWS][GATES];
#pragma GCC unroll 8
        for (int row = 0; row < ROWS; ++row)
#pragma GCC unroll 4
            for (int gate = 0; gate < GATES; ++gate)
                sum[row][gate] = add ? load(sums + row * COLUMNS + 16 * (first + gate)) : Sums{};
        for (int64_t start = 0; start < steps; start += BLOCK) {
            if (between) between->fetch((steps * ((4 - first) / GATES) - start) / BLOCK);
            for (int64_t k = start; k < start + BLOCK; ++k)
#pragma GCC unroll 8
                for (int row = 0; row < ROWS; ++row)
#pragma GCC unroll 4
                    for (int gate = 0; gate < GATES; ++gate)
                        sum[row][gate] = product(a + row * stride, panel, k, first + gate, sum[row][gate]);
        }
#pragma GCC unroll 8
        for (int row = 0; row < ROWS; ++row)
#pragma GCC unroll 4
            for (int gate = 0; gate < GATES; ++gate)
                store(sums + row * COLUMNS + 16 * (first + gate), sum[row][gate]);
    }
}

// In the vector registers: 6 rows of sums fill them.
template <typename S>
struct Vectors {
    static constexpr int64_t ROWS = 6;
    static void start() {}
    static void stop() {}
    // Rows are no power of two apart: they would share sets of the cache.
    template <typename T>
    static Factors<T> factors(T *memory, int64_t width, int64_t row) {
        return {memory + row * (width + 32), width + 32, 32};
    }
    static void multiply(Factors<S> a, int64_t rows, const S *panel, int64_t depth, Sum<S> *sums, bool add,
                         Between<Gated<S>> *between) {
        switch (rows) {
            case 1: return multiply_rows<S, 1>(a, panel, depth, sums, add, between);
            case 2: return multiply_rows<S, 2>(a, panel, depth, sums, add, between);
            case 3: return multiply_rows<S, 3>(a, panel, depth, sums, add, between);
            case 4: return multiply_rows<S, 4>(a, panel, depth, sums, add, between);
            case 5: return multiply_rows<S, 5>(a, panel, depth, sums, add, between);
            default: return multiply_rows<S, 6>(a, panel, depth, sums, add, between);
        }
    }
};

// Products in int8: sums of integers, which become floats by the scales of their row and column.
struct ScaledVectors : Vectors<int8_t> {
    static void multiply(Factors<int8_t> a, int64_t rows, const int8_t *panel, int64_t depth, float *sums, bool add,
                         Between<float> *) {
        depth -= SCALE<int8_t>;
        const int8_t *corrections = panel + depth * COLUMNS + COLUMNS * sizeof(float);
        int32_t integers[ROWS * COLUMNS];
        for (int64_t row = 0; row < rows; ++row)
            std::memcpy(integers + row * COLUMNS, corrections, COLUMNS * sizeof(int32_t));
        Vectors::multiply(a, rows, panel, depth, integers, MADE_LARGER, nullptr);
        put_scaled(a, rows, panel, depth, integers, sums, add);
    }
    // `depth` is without the scales.
    static void put_scaled(Factors<int8_t> a, int64_t rows, const int8_t *panel, int64_t depth, const int32_t *integers,
                           float *sums, bool add) {
        const auto *scales = reinterpret_cast<const float *>(panel + depth * COLUMNS);
        for (int64_t row = 0; row < rows; ++row) {
            float scale;
            std::memcpy(&scale, a.start + row * a.stride + depth, sizeof scale);
            for (int64_t j = 0; j < COLUMNS; j += 16) {
                float *place = sums + row * COLUMNS + j;
                const Numbers before = add ? load(place) : repeated(0.0f);
                const Numbers sum = as_numbers(load(integers + row * COLUMNS + j));
                store(place, multiply_add(sum, load(scales + j) * scale, before));
            }
        }
    }
};

#ifdef __AMX_TILE__

#define TILE_PRODUCT(sum, a, b)                                \
    if constexpr (sizeof(S) == 1) _tile_dpbssd(sum, a, b); \
    else _tile_dpbf16ps(sum, a, b)

// In AMX's tiles: 32 rows, whatever the number of rows is; those that are not there are read and written, too.
template <typename S>
struct Tiles {
    static constexpr int64_t ROWS = 32;
    static constexpr int64_t DEPTH = 64 / sizeof(S);  // of a tile
    static void start() {
        struct {
            uint8_t palette = 1, start_row = 0, reserved[14] = {};
            uint16_t bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
            uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
        } config;
        _tile_loadconfig(&config);
    }
    static void stop() { _tile_release(); }
    // 32 rows lie together, tile by tile.
    static Factors<S> factors(S *memory, int64_t width, int64_t row) {
        return {memory + row / 32 * 32 * width + row % 32 * 32, 32, 1024};
    }
    // `depth` is a multiple of DEPTH.
    static void multiply(Factors<S> a, int64_t rows, const S *panel, int64_t depth, Sum<S> *sums, bool add,
                         Between<Gated<S>> *between) {
        constexpr int64_t row = COLUMNS * int64_t(sizeof(Sum<S>));
        // of a gate: where its tiles are, and the way from a row of them to the next
        constexpr int64_t GATE = sizeof(S) == 1 ? 64 : 512, ROW_BYTES = sizeof(S) == 1 ? 256 : 64;
        const int64_t bytes = a.stride * int64_t(sizeof(S)), parts = depth / DEPTH * 2;
        int64_t part = 0;
        for (int64_t half = 0; half < 2; ++half) {
            Sum<S> *upper_sums = sums + 32 * half, *lower_sums = upper_sums + 16 * COLUMNS;
            if (add) {
                _tile_loadd(0, upper_sums, row);
                _tile_loadd(1, upper_sums + 16, row);
                _tile_loadd(2, lower_sums, row);
                _tile_loadd(3, lower_sums + 16, row);
            } else {
                _tile_zero(0);
                _tile_zero(1);
                _tile_zero(2);
                _tile_zero(3);
            }
            const S *weights = panel + 2 * GATE * half;
            for (int64_t k = 0; k < depth; k += DEPTH, weights += DEPTH * COLUMNS) {
                const S *upper = a.from(k).start, *lower = upper + 16 * a.stride;
                _tile_loadd(4, upper, bytes);
                _tile_loadd(6, weights, ROW_BYTES);
                TILE_PRODUCT(0, 4, 6);
                _tile_loadd(7, weights + GATE, ROW_BYTES);
                TILE_PRODUCT(1, 4, 7);
                if (rows > 16) {
                    _tile_loadd(5, lower, bytes);
                    TILE_PRODUCT(2, 5, 6);
                    TILE_PRODUCT(3, 5, 7);
                }
                if (between) between->advance(part++, parts);
            }
            _tile_stored(0, upper_sums, row);
            _tile_stored(1, upper_sums + 16, row);
            _tile_stored(2, lower_sums, row);
            _tile_stored(3, lower_sums + 16, row);
        }
    }
};

// In int8 few rows wait for their weights, which vectors read as fast. They take any depth, too.
struct ScaledTiles : Tiles<int8_t> {
    template <typename T>
    static Factors<T> factors(T *memory, int64_t width, int64_t row) {
        return ScaledVectors::factors(memory, width, row);
    }
    static void multiply(Factors<int8_t> a, int64_t rows, const int8_t *panel, int64_t depth, float *sums, bool add,
                         Between<float> *between) {
        const int64_t numbers = depth - SCALE<int8_t>;
        if (rows > ScaledVectors::ROWS && numbers % DEPTH == 0) {
            int32_t integers[ROWS * COLUMNS];
            Tiles::multiply(a, rows, panel, numbers, integers, false, between);
            return ScaledVectors::put_scaled(a, rows, panel, numbers, integers, sums, add);
        }
        for (int64_t row = 0; row < rows; row += ScaledVectors::ROWS) {
            const Factors<int8_t> some{a.start + row * a.stride, a.stride, a.block_stride};
            ScaledVectors::multiply(some, std::min(ScaledVectors::ROWS, rows - row), panel, depth, sums + row * COLUMNS, add,
                                    nullptr);
        }
    }
};

#endif

}  // namespace
