// The gradient of a weight, y = x Wᵀ: gᵀ x over all rows of all steps, in instructions that multiply pairs of bfloat16.
// Part of cpu.cpp. Factors are laid out as pairs of rows, sums stay in registers for all rows, and the gradient, in float, is
// written once. Tiles of AMX are faster: there it is PyTorch's.

#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>

#include <omp.h>

#include "numbers.h"

namespace {

constexpr int64_t TALL = 6, WIDE = 64;  // of the gradient, in 24 registers
constexpr int64_t BLOCK = 24 * TALL;    // columns of g whose pairs stay in the second cache (0.7 MB), of so many
constexpr int64_t DEEP = 2560;          // rows: an even number

// Columns of two rows, of which the second may be missing, as pairs; zeros follow up to a width.
inline void put_pairs(const bf16 *row, const bf16 *next, int64_t columns, int64_t width, uint32_t *pairs) {
    if (next)
        for (int64_t j = 0; j < columns; ++j) pairs[j] = uint32_t(next[j]) << 16 | row[j];
    else
        for (int64_t j = 0; j < columns; ++j) pairs[j] = row[j];
    for (int64_t j = columns; j < width; ++j) pairs[j] = 0;
}

// [rows, columns], rows of which lie `stride` apart, as [pairs of rows, width]
inline void put_panel(const bf16 *factors, int64_t stride, int64_t rows, int64_t columns, int64_t width,
                      uint32_t *panel) {
    for (int64_t row = 0; row < rows; row += 2, panel += width) {
        const bf16 *place = factors + row * stride;
        put_pairs(place, row + 1 < rows ? place + stride : nullptr, columns, width, panel);
    }
}

// sums [TALL, WIDE] of pairs [depth, BLOCK], of which TALL count, times pairs [depth, WIDE]
inline void multiply(const uint32_t *tall, const uint32_t *wide, int64_t depth, float *sums) {
    Numbers sum[TALL][4] = {};
    for (int64_t k = 0; k < depth; ++k, tall += BLOCK, wide += WIDE)
#pragma GCC unroll 8
        for (int row = 0; row < TALL; ++row)
#pragma GCC unroll 4
            for (int part = 0; part < 4; ++part)
                sum[row][part] = pair_product(reinterpret_cast<const bf16 *>(tall + row),
                                              reinterpret_cast<const bf16 *>(wide + 16 * part), sum[row][part]);
#pragma GCC unroll 8
    for (int row = 0; row < TALL; ++row)
#pragma GCC unroll 4
        for (int part = 0; part < 4; ++part) store(sums + row * WIDE + 16 * part, sum[row][part]);
}

using Pairs = std::unique_ptr<uint32_t, decltype(&std::free)>;
inline Pairs allocated(int64_t count) { return {static_cast<uint32_t *>(std::malloc(size_t(count) * 4)), &std::free}; }

// grad [rows, N] and inputs [rows, K] give gᵀ x: its first columns are `first` [N, split], the others `rest` [N, K - split].
// Returns whether there was memory.
bool put_weight_gradient(const bf16 *grad, const bf16 *inputs, float *first, float *rest, int64_t rows, int64_t n,
                         int64_t k, int64_t split, int threads) {
    const int64_t depth = (rows + 1) / 2, panels = (k + WIDE - 1) / WIDE, blocks = (n + BLOCK - 1) / BLOCK;
    const Pairs packed = allocated(panels * depth * WIDE), pairs = allocated(threads * DEEP / 2 * BLOCK);
    if (!packed || !pairs) return false;
#pragma omp parallel num_threads(threads)
    {
        uint32_t *block = pairs.get() + omp_get_thread_num() * DEEP / 2 * BLOCK;
        float sums[TALL * WIDE];
#pragma omp for schedule(static)
        for (int64_t panel = 0; panel < panels; ++panel) {
            const int64_t start = panel * WIDE, width = std::min(WIDE, k - start);
            put_panel(inputs + start, k, rows, width, WIDE, packed.get() + start * depth);
        }
#pragma omp for schedule(static)
        for (int64_t each = 0; each < blocks; ++each)
            for (int64_t from = 0; from < rows; from += DEEP) {
                const int64_t start = each * BLOCK, height = std::min(BLOCK, n - start);
                const int64_t count = std::min(DEEP, rows - from);
                put_panel(grad + from * n + start, n, count, height, BLOCK, block);
                for (int64_t column = 0; column < k; column += WIDE) {
                    const uint32_t *wide = packed.get() + column * depth + from / 2 * WIDE;
                    const int64_t width = std::min(WIDE, k - column);
                    const int64_t left = std::clamp(split - column, int64_t(0), width);
                    for (int64_t top = 0; top < height; top += TALL) {
                        multiply(block + top, wide, (count + 1) / 2, sums);
                        for (int64_t row = 0; row < std::min(TALL, height - top); ++row) {
                            const int64_t place = start + top + row;
                            float *own = sums + row * WIDE;
                            float *to_first = first + place * split + column;
                            float *to_rest = rest + place * (k - split) + column - split;
                            if (from) {
                                for (int64_t j = 0; j < left; ++j) own[j] += to_first[j];
                                for (int64_t j = left; j < width; ++j) own[j] += to_rest[j];
                            }
                            std::copy(own, own + left, to_first);
                            std::copy(own + left, own + width, to_rest + left);
                        }
                    }
                }
            }
    }
    return true;
}

}  // namespace
