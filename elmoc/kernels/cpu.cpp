// Kernels of an LSTM step between its matrix products, one pass over memory each.
//
// Called by cpu.py. lstm_step.py has the shapes of the tensors, which come first and in the order
// of its named tuples, and the reason for each clip's gradient; tests/elmoc/kernels/reference.py has the same functions in PyTorch.
// S is how activations are stored (float, or bfloat16 as its upper 16 bits); all arithmetic is in float.

#include <cmath>
#include <cstdint>
#include <cstring>

#include <omp.h>

// Tiles of AMX, which PyTorch multiplies in, are faster.
#if defined(__AVX512BF16__) && !defined(__AMX_BF16__)
#include "weight_gradient.h"
#define HAS_WEIGHT_GRADIENT
#endif

namespace {

inline float from_bits(uint32_t bits) {
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

inline float load(float value) { return value; }
inline float load(uint16_t value) { return from_bits(uint32_t(value) << 16); }

inline void store(float &place, float value) { place = value; }
inline void store(uint16_t &place, float value) {  // to the nearest, ties to even; NaN stays NaN
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    const uint32_t rounded = (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
    place = uint16_t(value != value ? 0x7FC0u : rounded);
}

// e^x to about 1e-7 of its value (the polynomial of Cephes' expf), in operations that a compiler makes vectors of.
inline float exponential(float x) {
    x = x < -87.0f ? -87.0f : x;
    x = x > 88.0f ? 88.0f : x;
    const float shifter = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
    const float n = (x * 1.44269504088896341f + shifter) - shifter;
    const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
    float y = 1.9875691500e-4f;
    y = y * r + 1.3981999507e-3f;
    y = y * r + 8.3334519073e-3f;
    y = y * r + 4.1665795894e-2f;
    y = y * r + 1.6666665459e-1f;
    y = y * r + 5.0000001201e-1f;
    y = y * r * r + r + 1.0f;
    return y * from_bits(uint32_t(int32_t(n) + 127) << 23);
}

inline float sigmoid(float x) { return 1.0f / (1.0f + exponential(-x)); }

// It cancels near zero: the absolute error stays below 2e-7 (three roundings of a float near 1) everywhere, the relative
// one is about 1e-7 / |x|: 1e-5 at 0.01, a tenth at 1e-6. Only the absolute error counts: g is added to the cell (up to 3,
// itself rounded to 1.2e-7), the gated cell is one of C terms of a sum, and the gradients read 1 - t^2, 1 - g^2 and t itself.
inline float tanh_(float x) { return 1.0f - 2.0f / (1.0f + exponential(2.0f * x)); }

inline float clip(float x, float limit) {
    x = x > limit ? limit : x;
    return x < -limit ? -limit : x;
}

// What every kernel takes behind its tensors: the layer's tensors (null where there is none), the shape of its second
// tensor, how far the rows of its third lie apart, and clips (infinity: none).
#define LAYER_ARGUMENTS                                                                                                 \
    const float *bias, const float *norm_weight, const float *norm_bias, const float *mask, int64_t rows, int64_t size, \
        int64_t stride, float cell_limit, float projection_limit, float epsilon, int threads

template <typename S>
void gates_forward(const S *preactivation, const float *cell_before, S *gates, float *cell, S *gated_cell,
                   LAYER_ARGUMENTS) {
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t row = 0; row < rows; ++row) {
        const S *in = preactivation + row * 4 * size;
        const float *before = cell_before + row * size;
        S *out = gates + row * 4 * size;
        float *after = cell + row * size;
        S *m = gated_cell + row * size;
#pragma omp simd
        for (int64_t j = 0; j < size; ++j) {
            const float i = sigmoid(load(in[j]) + bias[j]);
            const float f = sigmoid(load(in[size + j]) + bias[size + j]);
            const float g = tanh_(load(in[2 * size + j]) + bias[2 * size + j]);
            const float o = sigmoid(load(in[3 * size + j]) + bias[3 * size + j]);
            const float c = clip(i * g + f * before[j], cell_limit);
            after[j] = c;
            store(out[j], i);
            store(out[size + j], f);
            store(out[2 * size + j], g);
            store(out[3 * size + j], o);
            store(m[j], o * tanh_(c));
        }
    }
}

template <typename S>
void gates_backward(const S *grad_gated_cell, const float *cell, const float *cell_before, S *gates, S *gated_cell,
                    float *grad_cell, float *grad_bias, LAYER_ARGUMENTS) {
    const int64_t block = 512;  // columns whose sums stay in the first cache
#pragma omp parallel num_threads(threads)
    {
        float *sums = grad_bias + int64_t(omp_get_thread_num()) * 4 * size;
        for (int64_t start = 0; start < size; start += block) {
            const int64_t end = start + block < size ? start + block : size;
#pragma omp for schedule(static) nowait
            for (int64_t row = 0; row < rows; ++row) {
                S *out = gates + row * 4 * size;
                const S *gm = grad_gated_cell + row * size;
                const float *c_t = cell + row * size;
                const float *before = cell_before + row * size;
                float *gc = grad_cell + row * size;
                S *m = gated_cell + row * size;
#pragma omp simd
                for (int64_t j = start; j < end; ++j) {
                    const float i = load(out[j]), f = load(out[size + j]);
                    const float g = load(out[2 * size + j]), o = load(out[3 * size + j]);
                    const float t = tanh_(c_t[j]);
                    const float dm = load(gm[j]);
                    float dc = gc[j] + dm * o * (1.0f - t * t);
                    dc = c_t[j] >= cell_limit || c_t[j] <= -cell_limit ? 0.0f : dc;
                    const float di = dc * g * i * (1.0f - i);
                    const float df = dc * before[j] * f * (1.0f - f);
                    const float dg = dc * i * (1.0f - g * g);
                    const float d_o = dm * t * o * (1.0f - o);
                    gc[j] = dc * f;
                    store(m[j], o * t);
                    store(out[j], di);
                    store(out[size + j], df);
                    store(out[2 * size + j], dg);
                    store(out[3 * size + j], d_o);
                    sums[j] += di;
                    sums[size + j] += df;
                    sums[2 * size + j] += dg;
                    sums[3 * size + j] += d_o;
                }
            }
        }
    }
}

template <typename S>
void output_forward(const S *projected, float *outputs, S *hidden, float *moments, LAYER_ARGUMENTS) {
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t row = 0; row < rows; ++row) {
        const S *u = projected + row * size;
        S *h = hidden + row * stride;
        float *out = outputs + row * size;
        float mean = 0.0f, scale = 1.0f;
        if (norm_weight) {
            float sum = 0.0f, squares = 0.0f;
#pragma omp simd reduction(+ : sum)
            for (int64_t j = 0; j < size; ++j) sum += clip(load(u[j]), projection_limit);
            mean = sum / float(size);
#pragma omp simd reduction(+ : squares)
            for (int64_t j = 0; j < size; ++j) {
                const float d = clip(load(u[j]), projection_limit) - mean;
                squares += d * d;
            }
            scale = 1.0f / std::sqrt(squares / float(size) + epsilon);
        }
        moments[2 * row] = mean;
        moments[2 * row + 1] = scale;
        const float *kept = mask ? mask + row * size : nullptr;
#pragma omp simd
        for (int64_t j = 0; j < size; ++j) {
            float value = (clip(load(u[j]), projection_limit) - mean) * scale;
            value = norm_weight ? value * norm_weight[j] + norm_bias[j] : value;
            value = kept ? value * kept[j] : value;
            out[j] = value;
            store(h[j], value);
        }
    }
}

template <typename S>
void output_backward(const float *grad_outputs, float *grad_hidden, const S *grad_next, const S *projected,
                     const float *moments, S *grad_projected, float *grad_norm, LAYER_ARGUMENTS) {
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t row = 0; row < rows; ++row) {
        float *carry = grad_hidden + row * size;
        const S *u = projected + row * size;
        S *du = grad_projected + row * size;
        float *grad_weight = grad_norm + int64_t(omp_get_thread_num()) * 2 * size;
        float *grad_bias = grad_weight + size;
        if (grad_next) {
            const S *next = grad_next + row * stride;
#pragma omp simd
            for (int64_t j = 0; j < size; ++j) carry[j] = load(next[j]);
        }
        const float *grad = grad_outputs + row * size;
        const float *kept = mask ? mask + row * size : nullptr;
        const float mean = moments[2 * row], scale = moments[2 * row + 1];
        float of_mean = 0.0f, of_scale = 0.0f;
        if (norm_weight) {
#pragma omp simd reduction(+ : of_mean, of_scale)
            for (int64_t j = 0; j < size; ++j) {
                const float x = (clip(load(u[j]), projection_limit) - mean) * scale;
                const float g = (grad[j] + carry[j]) * (kept ? kept[j] : 1.0f);
                grad_weight[j] += g * x;
                grad_bias[j] += g;
                of_mean += g * norm_weight[j];
                of_scale += g * norm_weight[j] * x;
            }
            of_mean /= float(size);
            of_scale /= float(size);
        }
#pragma omp simd
        for (int64_t j = 0; j < size; ++j) {
            const float value = load(u[j]);
            const float x = (clip(value, projection_limit) - mean) * scale;
            const float g = (grad[j] + carry[j]) * (kept ? kept[j] : 1.0f);
            const float d = norm_weight ? scale * (g * norm_weight[j] - of_mean - x * of_scale) : g;
            store(du[j], value > projection_limit || value < -projection_limit ? 0.0f : d);
        }
    }
}

// The gradient of a weight, where there is code for it, as in weight_gradient.h. Returns whether it is made.
template <typename S>
bool weight_gradient(const S *grad, const S *inputs, float *first, float *rest, int64_t rows, int64_t n, int64_t k,
                     int64_t split, int threads) {
#ifdef HAS_WEIGHT_GRADIENT
    if constexpr (sizeof(S) == 2) return put_weight_gradient(grad, inputs, first, rest, rows, n, k, split, threads);
#endif
    return false;
}

}  // namespace

// Pointers to the kernels, under names that ctypes finds.
#define KERNELS(NAME, S)                                                            \
    extern "C" {                                                                    \
    decltype(&gates_forward<S>) gates_forward_##NAME = gates_forward<S>;            \
    decltype(&gates_backward<S>) gates_backward_##NAME = gates_backward<S>;         \
    decltype(&output_forward<S>) output_forward_##NAME = output_forward<S>;         \
    decltype(&output_backward<S>) output_backward_##NAME = output_backward<S>;      \
    decltype(&weight_gradient<S>) weight_gradient_##NAME = weight_gradient<S>;      \
    }

KERNELS(float32, float)
KERNELS(bfloat16, uint16_t)
