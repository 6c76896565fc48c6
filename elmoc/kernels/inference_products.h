// Products of inference: rows of numbers times a panel of a weight, in vector registers or AMX tiles, and the arithmetic
// of the gates. Part of inference.cpp, which says what S and a panel are; it needs AVX-512.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <immintrin.h>

namespace {

using bf16 = uint16_t;
constexpr int64_t COLUMNS = 64, CELLS = 16, MOST_ROWS = 32;
constexpr int64_t CHUNK = 512;         // of the projection's products: its factors stay in the second cache
constexpr int64_t HOISTED_WORDS = 256;  // whose input products are made at once

int64_t padded(int64_t size, int64_t to) { return (size + to - 1) / to * to; }

// ---- numbers ----

// 2^(x factor), to 1e-7 of its value. The exponent is held within ±62, so that products of two sums are finite.
inline __m512 power(__m512 x, float factor) {
    __m512 t = _mm512_mul_ps(x, _mm512_set1_ps(factor));
    t = _mm512_max_ps(_mm512_set1_ps(-62.0f), _mm512_min_ps(_mm512_set1_ps(62.0f), t));  // NaN stays NaN
    const __m512 n = _mm512_roundscale_ps(t, 0);
    const __m512 r = _mm512_sub_ps(t, n);
    __m512 y = _mm512_set1_ps(0.000154667207f);
    y = _mm512_fmadd_ps(y, r, _mm512_set1_ps(0.0013397246f));
    y = _mm512_fmadd_ps(y, r, _mm512_set1_ps(0.00961804129f));
    y = _mm512_fmadd_ps(y, r, _mm512_set1_ps(0.0555034258f));
    y = _mm512_fmadd_ps(y, r, _mm512_set1_ps(0.24022651f));
    y = _mm512_fmadd_ps(y, r, _mm512_set1_ps(0.693147192f));
    y = _mm512_fmadd_ps(y, r, _mm512_set1_ps(1.0f));
    return _mm512_scalef_ps(y, n);
}

inline __m512 reciprocal(__m512 x) {  // one step of Newton's method: a division takes four times as long
    const __m512 r = _mm512_rcp14_ps(x);
    return _mm512_mul_ps(r, _mm512_fnmadd_ps(x, r, _mm512_set1_ps(2.0f)));
}

inline bf16 rounded(float value) {  // to the nearest, ties to even; NaN stays NaN
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return value != value ? bf16(0x7FC0u) : bf16((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}

inline void store(float *place, __m512 value) { _mm512_storeu_ps(place, value); }
inline void store(bf16 *place, __m512 value) {
    const __m512i bits = _mm512_castps_si512(value);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i near = _mm512_srli_epi32(_mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7FFF))), 16);
    const __mmask16 nan = _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q);
    const __m512i kept = _mm512_mask_blend_epi32(nan, near, _mm512_set1_epi32(0x7FC0));
    _mm256_storeu_si256(reinterpret_cast<__m256i *>(place), _mm512_cvtepi32_epi16(kept));
}
inline void store(float *place, float value) { *place = value; }
inline void store(bf16 *place, float value) { *place = rounded(value); }

// 16 cells of a row: c = clip(σ(i)·tanh(g) + σ(f)·c), and σ(o)·tanh(c).
template <typename S>
inline void gates(const float *sums, const float *bias, float *cell, S *gated, float limit) {
    constexpr float LOG2E = 1.44269504088896341f;
    const __m512 one = _mm512_set1_ps(1.0f), most = _mm512_set1_ps(limit), least = _mm512_set1_ps(-limit);
    const auto exponential = [&](int gate, float factor) {
        return power(_mm512_add_ps(_mm512_loadu_ps(sums + 16 * gate), _mm512_loadu_ps(bias + 16 * gate)), factor);
    };
    const __m512 i = exponential(0, -LOG2E), f = exponential(1, -LOG2E);
    const __m512 g = exponential(2, -2 * LOG2E), o = exponential(3, -LOG2E);
    const __m512 candidate = _mm512_mul_ps(
        _mm512_sub_ps(one, g), reciprocal(_mm512_mul_ps(_mm512_add_ps(one, i), _mm512_add_ps(one, g))));
    __m512 c = _mm512_fmadd_ps(reciprocal(_mm512_add_ps(one, f)), _mm512_loadu_ps(cell), candidate);
    c = _mm512_max_ps(least, _mm512_min_ps(most, c));
    _mm512_storeu_ps(cell, c);
    const __m512 t = power(c, -2 * LOG2E);
    store(gated, _mm512_mul_ps(_mm512_sub_ps(one, t),
                               reciprocal(_mm512_mul_ps(_mm512_add_ps(one, o), _mm512_add_ps(one, t)))));
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

// ---- products: sums [rows, 64] (+)= a [rows, depth] times a panel ----

inline __m512 product(const float *a, const float *panel, int64_t k, int gate, __m512 sum) {
    return _mm512_fmadd_ps(_mm512_set1_ps(a[k]), _mm512_loadu_ps(panel + k * COLUMNS + 16 * gate), sum);
}

// A panel in bfloat16 is [depth / 32, 4, 16 pairs, 16 columns, 2], the layout of AMX's tiles.
inline __m512 product(const bf16 *a, const bf16 *panel, int64_t pair, int gate, __m512 sum) {
    const bf16 *place = panel + pair / 16 * 32 * COLUMNS + gate * 512 + pair % 16 * 32;
    int32_t both;
    std::memcpy(&both, a + 2 * pair, sizeof both);
    const __m512i x = _mm512_set1_epi32(both), y = _mm512_loadu_si512(place);
#ifdef __AVX512BF16__
    return _mm512_dpbf16_ps(sum, (__m512bh)x, (__m512bh)y);
#else
    const auto odd = [](__m512i v) { return _mm512_castsi512_ps(_mm512_and_si512(v, _mm512_set1_epi32(0xFFFF0000))); };
    const auto even = [](__m512i v) { return _mm512_castsi512_ps(_mm512_slli_epi32(v, 16)); };
    return _mm512_fmadd_ps(odd(x), odd(y), _mm512_fmadd_ps(even(x), even(y), sum));
#endif
}

template <typename S, int ROWS>
void multiply_rows(Factors<S> factors, const S *panel, int64_t depth, float *sums, bool add, Between<S> *between) {
    const S *const a = factors.start;
    const int64_t stride = factors.stride;
    __m512 sum[ROWS][4];
#pragma GCC unroll 8
    for (int row = 0; row < ROWS; ++row)
#pragma GCC unroll 4
        for (int gate = 0; gate < 4; ++gate)
            sum[row][gate] = add ? _mm512_loadu_ps(sums + row * COLUMNS + 16 * gate) : _mm512_setzero_ps();
    const int64_t steps = depth * int64_t(sizeof(S)) / 4;  // a pair of bfloat16 at once
    for (int64_t start = 0; start < steps; start += 16) {
        if (between) between->fetch((steps - start) / 16);
        for (int64_t k = start; k < start + 16; ++k)
#pragma GCC unroll 8
            for (int row = 0; row < ROWS; ++row)
#pragma GCC unroll 4
                for (int gate = 0; gate < 4; ++gate)
                    sum[row][gate] = product(a + row * stride, panel, k, gate, sum[row][gate]);
    }
#pragma GCC unroll 8
    for (int row = 0; row < ROWS; ++row)
#pragma GCC unroll 4
        for (int gate = 0; gate < 4; ++gate) _mm512_storeu_ps(sums + row * COLUMNS + 16 * gate, sum[row][gate]);
}

// In the vector registers: 6 rows of sums fill them.
template <typename S>
struct Vectors {
    static constexpr int64_t ROWS = 6;
    static void start() {}
    static void stop() {}
    // Rows are no power of two apart: they would share sets of the cache.
    static Factors<S> factors(S *memory, int64_t width, int64_t row) {
        return {memory + row * (width + 32), width + 32, 32};
    }
    static void multiply(Factors<S> a, int64_t rows, const S *panel, int64_t depth, float *sums, bool add,
                         Between<S> *between) {
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

#ifdef __AMX_BF16__

// In AMX's tiles: 32 rows, whatever the number of rows is; those that are not there are read and written, too.
struct Tiles {
    static constexpr int64_t ROWS = 32;
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
    static Factors<bf16> factors(bf16 *memory, int64_t width, int64_t row) {
        return {memory + row / 32 * 32 * width + row % 32 * 32, 32, 1024};
    }
    static void multiply(Factors<bf16> a, int64_t rows, const bf16 *panel, int64_t depth, float *sums, bool add,
                         Between<bf16> *between) {
        constexpr int64_t row = COLUMNS * int64_t(sizeof(float));
        const int64_t bytes = a.stride * int64_t(sizeof(bf16)), parts = depth / 16;
        int64_t part = 0;
        for (int64_t half = 0; half < 2; ++half) {
            float *upper_sums = sums + 32 * half, *lower_sums = upper_sums + 16 * COLUMNS;
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
            const bf16 *weights = panel + 1024 * half, *upper = a.start, *lower = upper + 16 * a.stride;
            for (int64_t k = 0; k < depth; k += 32, weights += 32 * COLUMNS) {
                _tile_loadd(4, upper, bytes);
                _tile_loadd(6, weights, 64);
                _tile_dpbf16ps(0, 4, 6);
                _tile_loadd(7, weights + 512, 64);
                _tile_dpbf16ps(1, 4, 7);
                if (rows > 16) {
                    _tile_loadd(5, lower, bytes);
                    _tile_dpbf16ps(2, 5, 6);
                    _tile_dpbf16ps(3, 5, 7);
                }
                upper += a.block_stride;
                lower += a.block_stride;
                if (between) between->advance(part++, parts);
            }
            _tile_stored(0, upper_sums, row);
            _tile_stored(1, upper_sums + 16, row);
            _tile_stored(2, lower_sums, row);
            _tile_stored(3, lower_sums + 16, row);
        }
    }
};

#endif

}  // namespace
