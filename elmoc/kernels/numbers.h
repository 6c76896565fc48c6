// Sixteen floats at once: a register of AVX-512, or two of AVX2, which needs FMA beside it. A product to which a number
// is added is a `multiply_add`; were it not, the compiler would choose whether it is rounded, in each copy of the code.

#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <immintrin.h>

namespace {

using bf16 = uint16_t;

inline bf16 rounded(float value) {  // to the nearest, ties to even; NaN stays NaN
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return value != value ? bf16(0x7FC0u) : bf16((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}

// Neighbours in memory, to be repeated: a pair of bfloat16, or four of int8.
inline int32_t four_bytes(const void *place) {
    int32_t bits;
    std::memcpy(&bits, place, sizeof bits);
    return bits;
}

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)

struct Numbers {
    __m512 all;
};
struct Integers {
    __m512i all;
};

constexpr int REGISTERS = 32;  // each of which holds `Numbers`

inline Numbers load(const float *place) { return {_mm512_loadu_ps(place)}; }
inline void store(float *place, Numbers x) { _mm512_storeu_ps(place, x.all); }
inline void store(bf16 *place, Numbers x) {
    const __m512i bits = _mm512_castps_si512(x.all);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i bias = _mm512_add_epi32(odd, _mm512_set1_epi32(0x7FFF));
    const __m512i near = _mm512_srli_epi32(_mm512_add_epi32(bits, bias), 16);
    const __mmask16 nan = _mm512_cmp_ps_mask(x.all, x.all, _CMP_UNORD_Q);
    const __m512i kept = _mm512_mask_blend_epi32(nan, near, _mm512_set1_epi32(0x7FC0));
    _mm256_storeu_si256(reinterpret_cast<__m256i *>(place), _mm512_cvtepi32_epi16(kept));
}
inline Numbers repeated(float value) { return {_mm512_set1_ps(value)}; }
inline Numbers operator+(Numbers x, Numbers y) { return {_mm512_add_ps(x.all, y.all)}; }
inline Numbers operator-(Numbers x, Numbers y) { return {_mm512_sub_ps(x.all, y.all)}; }
inline Numbers operator*(Numbers x, Numbers y) { return {_mm512_mul_ps(x.all, y.all)}; }
inline Numbers multiply_add(Numbers x, Numbers y, Numbers z) { return {_mm512_fmadd_ps(x.all, y.all, z.all)}; }
inline Numbers subtract_product(Numbers z, Numbers x, Numbers y) { return {_mm512_fnmadd_ps(x.all, y.all, z.all)}; }
// Where the second is NaN, so is the result.
inline Numbers smaller(Numbers x, Numbers y) { return {_mm512_min_ps(x.all, y.all)}; }
inline Numbers larger(Numbers x, Numbers y) { return {_mm512_max_ps(x.all, y.all)}; }
inline Numbers nearest_integer(Numbers x) { return {_mm512_roundscale_ps(x.all, 0)}; }
// x 2^n, for x from 1/2 to 2 and integers n within ±62
inline Numbers times_power_of_two(Numbers x, Numbers n) { return {_mm512_scalef_ps(x.all, n.all)}; }
inline Numbers rough_reciprocal(Numbers x) { return {_mm512_rcp14_ps(x.all)}; }

// sum + x[0] y[4 j] + … + x[3] y[4 j + 3] for 16 columns j. Instructions multiply numbers without a sign by those with one:
// x is made 128 larger, for which sums begin with less, or y takes the sign of x.
#ifdef __AVX512VNNI__
constexpr bool MADE_LARGER = true;
#else
constexpr bool MADE_LARGER = false;
#endif
inline Integers four_products(const int8_t *x, const int8_t *y, Integers sum) {
    const __m512i xs = _mm512_set1_epi32(four_bytes(x)), ys = _mm512_loadu_si512(y);
#ifdef __AVX512VNNI__
    const __m512i larger = _mm512_xor_si512(xs, _mm512_set1_epi8(-128));
    return {_mm512_dpbusd_epi32(sum.all, larger, ys)};
#else
    const __m512i turned = _mm512_mask_sub_epi8(ys, _mm512_movepi8_mask(xs), _mm512_setzero_si512(), ys);
    const __m512i pairs = _mm512_maddubs_epi16(_mm512_abs_epi8(xs), turned);  // at most 2 * 127 * 127
    return {_mm512_add_epi32(sum.all, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)))};
#endif
}
inline Integers load(const int32_t *place) { return {_mm512_loadu_si512(place)}; }
inline void store(int32_t *place, Integers x) { _mm512_storeu_si512(place, x.all); }
inline Numbers as_numbers(Integers x) { return {_mm512_cvtepi32_ps(x.all)}; }

// sum + x[0] y[2 j] + x[1] y[2 j + 1] for 16 columns j
inline Numbers pair_product(const bf16 *x, const bf16 *y, Numbers sum) {
    const __m512i xs = _mm512_set1_epi32(four_bytes(x)), ys = _mm512_loadu_si512(y);
#ifdef __AVX512BF16__
    return {_mm512_dpbf16_ps(sum.all, (__m512bh)xs, (__m512bh)ys)};
#else
    const auto odd = [](__m512i v) { return _mm512_castsi512_ps(_mm512_and_si512(v, _mm512_set1_epi32(0xFFFF0000))); };
    const auto even = [](__m512i v) { return _mm512_castsi512_ps(_mm512_slli_epi32(v, 16)); };
    return {_mm512_fmadd_ps(odd(xs), odd(ys), _mm512_fmadd_ps(even(xs), even(ys), sum.all))};
#endif
}

#else

struct Numbers {
    __m256 first, last;
};
struct Integers {
    __m256i first, last;
};

constexpr int REGISTERS = 8;
constexpr bool MADE_LARGER = false;

inline Numbers load(const float *place) { return {_mm256_loadu_ps(place), _mm256_loadu_ps(place + 8)}; }
inline void store(float *place, Numbers x) {
    _mm256_storeu_ps(place, x.first);
    _mm256_storeu_ps(place + 8, x.last);
}
inline __m256i rounded(__m256 x) {  // 8 of bf16 in 32 bits each
    const __m256i bits = _mm256_castps_si256(x);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i bias = _mm256_add_epi32(odd, _mm256_set1_epi32(0x7FFF));
    const __m256i near = _mm256_srli_epi32(_mm256_add_epi32(bits, bias), 16);
    const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
    return _mm256_blendv_epi8(near, _mm256_set1_epi32(0x7FC0), nan);
}
inline void store(bf16 *place, Numbers x) {
    const __m256i mixed = _mm256_packus_epi32(rounded(x.first), rounded(x.last));  // quarters 0, 2, 1, 3
    _mm256_storeu_si256(reinterpret_cast<__m256i *>(place), _mm256_permute4x64_epi64(mixed, 0b11011000));
}
inline Numbers repeated(float value) { return {_mm256_set1_ps(value), _mm256_set1_ps(value)}; }
inline Numbers operator+(Numbers x, Numbers y) {
    return {_mm256_add_ps(x.first, y.first), _mm256_add_ps(x.last, y.last)};
}
inline Numbers operator-(Numbers x, Numbers y) {
    return {_mm256_sub_ps(x.first, y.first), _mm256_sub_ps(x.last, y.last)};
}
inline Numbers operator*(Numbers x, Numbers y) {
    return {_mm256_mul_ps(x.first, y.first), _mm256_mul_ps(x.last, y.last)};
}
inline Numbers multiply_add(Numbers x, Numbers y, Numbers z) {
    return {_mm256_fmadd_ps(x.first, y.first, z.first), _mm256_fmadd_ps(x.last, y.last, z.last)};
}
inline Numbers subtract_product(Numbers z, Numbers x, Numbers y) {
    return {_mm256_fnmadd_ps(x.first, y.first, z.first), _mm256_fnmadd_ps(x.last, y.last, z.last)};
}
inline Numbers smaller(Numbers x, Numbers y) {
    return {_mm256_min_ps(x.first, y.first), _mm256_min_ps(x.last, y.last)};
}
inline Numbers larger(Numbers x, Numbers y) {
    return {_mm256_max_ps(x.first, y.first), _mm256_max_ps(x.last, y.last)};
}
inline Numbers nearest_integer(Numbers x) {
    return {_mm256_round_ps(x.first, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC),
            _mm256_round_ps(x.last, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}
inline __m256 times_power_of_two(__m256 x, __m256 n) {  // its exponent is n larger
    const __m256i exponent = _mm256_slli_epi32(_mm256_cvtps_epi32(n), 23);
    return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(x), exponent));
}
inline Numbers times_power_of_two(Numbers x, Numbers n) {
    return {times_power_of_two(x.first, n.first), times_power_of_two(x.last, n.last)};
}
inline Numbers rough_reciprocal(Numbers x) { return {_mm256_rcp_ps(x.first), _mm256_rcp_ps(x.last)}; }

inline __m256 pair_product(__m256i x, __m256i y, __m256 sum) {
    const auto odd = [](__m256i v) { return _mm256_castsi256_ps(_mm256_and_si256(v, _mm256_set1_epi32(0xFFFF0000))); };
    const auto even = [](__m256i v) { return _mm256_castsi256_ps(_mm256_slli_epi32(v, 16)); };
    return _mm256_fmadd_ps(odd(x), odd(y), _mm256_fmadd_ps(even(x), even(y), sum));
}
inline Numbers pair_product(const bf16 *x, const bf16 *y, Numbers sum) {
    const __m256i xs = _mm256_set1_epi32(four_bytes(x)), *ys = reinterpret_cast<const __m256i *>(y);
    return {pair_product(xs, _mm256_loadu_si256(ys), sum.first),
            pair_product(xs, _mm256_loadu_si256(ys + 1), sum.last)};
}

inline __m256i four_products(__m256i x, __m256i y, __m256i sum) {
    const __m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(x), _mm256_sign_epi8(y, x));
    return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}
inline Integers four_products(const int8_t *x, const int8_t *y, Integers sum) {
    const __m256i xs = _mm256_set1_epi32(four_bytes(x)), *ys = reinterpret_cast<const __m256i *>(y);
    return {four_products(xs, _mm256_loadu_si256(ys), sum.first),
            four_products(xs, _mm256_loadu_si256(ys + 1), sum.last)};
}
inline Integers load(const int32_t *place) {
    const auto *halves = reinterpret_cast<const __m256i *>(place);
    return {_mm256_loadu_si256(halves), _mm256_loadu_si256(halves + 1)};
}
inline void store(int32_t *place, Integers x) {
    auto *halves = reinterpret_cast<__m256i *>(place);
    _mm256_storeu_si256(halves, x.first);
    _mm256_storeu_si256(halves + 1, x.last);
}
inline Numbers as_numbers(Integers x) { return {_mm256_cvtepi32_ps(x.first), _mm256_cvtepi32_ps(x.last)}; }

#endif

inline void store(float *place, float value) { *place = value; }
inline void store(bf16 *place, float value) { *place = rounded(value); }
inline float multiply_add(float x, float y, float z) { return std::fma(x, y, z); }
inline Numbers operator-(Numbers x, float y) { return x - repeated(y); }
inline Numbers operator*(Numbers x, float y) { return x * repeated(y); }
inline Numbers clipped(Numbers x, float limit) {  // NaN stays NaN
    return larger(repeated(-limit), smaller(repeated(limit), x));
}

// 2^(x factor), to 1e-7 of its value. The exponent is held within ±62, so that products of two sums are finite.
inline Numbers power(Numbers x, float factor) {
    const Numbers t = clipped(x * factor, 62.0f), n = nearest_integer(t), r = t - n;
    Numbers y = repeated(0.000154667207f);
    y = multiply_add(y, r, repeated(0.0013397246f));
    y = multiply_add(y, r, repeated(0.00961804129f));
    y = multiply_add(y, r, repeated(0.0555034258f));
    y = multiply_add(y, r, repeated(0.24022651f));
    y = multiply_add(y, r, repeated(0.693147192f));
    y = multiply_add(y, r, repeated(1.0f));
    return times_power_of_two(y, n);
}

inline Numbers reciprocal(Numbers x) {  // one step of Newton's method: a division takes four times as long
    const Numbers r = rough_reciprocal(x);
    return r * subtract_product(repeated(2.0f), x, r);
}

}  // namespace
