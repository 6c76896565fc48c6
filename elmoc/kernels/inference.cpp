// LSTM layers for inference, one direction of an encoder: all steps of a batch of sentences, each read from zero state,
// the matrix products and what stands between them.
//
// Called by lstm_inference.py, which has the layouts of weights and states.
// S is how the factors of products are stored (float, bfloat16 as its upper 16 bits, or int8 with a scale of each row and
// column); sums, cell state and what is computed of them are in float. A panel is 64 columns of a weight: 4 gates of 16
// cells, or 64 of the projection.
// It needs AVX-512, or AVX2 and FMA; products in bfloat16 and int8 run on AMX tiles where there are any. Elsewhere
// `support` says that there is nothing here.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include <omp.h>

// As `_Weights` in lstm_inference.py. P and C are the sizes, which buffers pad to Pp (to 64), Hp (P to 32) and Cp; in int8
// scales stand behind rows and panels, whose depths Hp and Cp are 32 larger for them.
struct Weights {
    const void *step;           // S [Cp / 16 panels, Hp + Hp, 64], [W_x W_h]
    const void *projection;     // S [Pp / 64 panels, Cp, 64], W_p
    const float *bias;          // [Cp / 16, 64]
    const float *norm_weight;   // [P], or null: without layer normalisation
    const float *norm_bias;     // [P]
    int64_t projection_size, cell_size;
    float cell_clip, projection_clip, epsilon;
};

// As `_Arguments` in lstm_inference.py.
struct Arguments {
    const Weights *weights;     // of each layer
    const int64_t *lengths;     // of the sentences
    float *states;              // [layers + 1, M, P]: layer 0 is read, the others are written
    int64_t layer_stride;       // from a state to that of the next layer
    int64_t word_stride;        // and to that of the next word
    int64_t layers, sentences;
    int64_t most_rows;          // that are read at once
    int64_t backward;           // whether sentences are read from their last word to their first
    int64_t residual;           // whether layers but the first add the states of the layer below
    int64_t threads;
};

#if defined(__AVX2__) && defined(__FMA__)  // which processors with AVX-512 have, too

#include <sys/syscall.h>
#include <unistd.h>

#include "inference_products.h"

namespace {

template <typename S, typename Product>
class Layer {
public:
    // `number` of the layer, from 1 on; `read` is S [words + 32, Hp], what it reads, and its output in the end.
    Layer(const Arguments &given, const Batch &sentences, int64_t number, S *read)
        : g(given),
          w(given.weights[number - 1]),
          batch(sentences),
          number(number),
          inputs(read),
          step_weight(static_cast<const S *>(w.step)),
          projection(static_cast<const S *>(w.projection)),
          width(input_width(w)),
          depth(2 * width),
          cells(padded(w.cell_size, 32)),
          gated_depth(cells + SCALE<S>),
          panels(cells / CELLS),
          projection_panels(padded(w.projection_size, COLUMNS) / COLUMNS),
          rows(padded(batch.rows, Product::ROWS)),
          row_stride(projection_panels * COLUMNS),
          few_rows(sizeof(S) == 2 ? 32 : 16),
          hoisted_rows(std::min(HOISTED_WORDS, batch.count) + Product::ROWS) {}

    // Hp
    static int64_t input_width(const Weights &weights) { return padded(weights.projection_size, 32) + SCALE<S>; }

    bool allocate() {
        return joined.make(rows * (depth + 32)) && gated.make(rows * (cells + 32)) && cell.make(rows * cells) &&
               projected.make(rows * row_stride) && scratch.make(g.threads * scratch_size()) &&
               (!SCALE<S> || gated_factors.make(rows * (gated_depth + 32))) &&
               (!hoists() || hoisted.make(panels * hoisted_rows * COLUMNS));
    }

    void run() {
#pragma omp parallel num_threads(int(g.threads))
        {
            Product::start();
            if (number == 1) read_words();
            read_first();
            int64_t start = 0, hoisted_until = 0, hoisted_from = 0;
            for (int64_t step = 0; step < batch.steps; ++step) {
                const int64_t now = batch.active[step];
                const bool hoist = now <= few_rows;
                if (hoist && step >= hoisted_until) {
                    hoisted_from = start;
                    hoisted_until = hoist_inputs(step, start);
                }
                step_gates(now, hoist ? start - hoisted_from : -1, step % 2);
#pragma omp barrier
                if constexpr (SCALE<S> > 0) {
                    put_gated(now);
#pragma omp barrier
                }
                project(now);
#pragma omp barrier
                output(step, start, now);
                start += now;
#pragma omp barrier
            }
            Product::stop();
        }
    }

private:
    int64_t scratch_size() const { return 2 * MOST_ROWS * COLUMNS + row_stride; }
    float *own_scratch() const { return scratch + omp_get_thread_num() * scratch_size(); }
    bool hoists() const { return batch.active[batch.steps - 1] <= few_rows; }

    // The part [first, last) of `count` pieces of work that is this thread's.
    static void own_part(int64_t count, int64_t &first, int64_t &last) {
        const int64_t threads = omp_get_num_threads(), thread = omp_get_thread_num();
        first = count * thread / threads;
        last = count * (thread + 1) / threads;
    }

    Factors<S> joined_row(int64_t row) const { return Product::factors(joined.start, depth, row); }

    void put_hidden(int64_t row, const float *hidden) {
        put_numbers(joined_row(row).from(width), hidden, w.projection_size, depth - width);
    }

    void put_gated(int64_t now) {
        int64_t first, last;
        own_part(now, first, last);
        for (int64_t row = first; row < last; ++row)
            put_numbers(Product::factors(gated_factors.start, gated_depth, row),
                        Product::factors(gated.start, cells, row).start, w.cell_size, gated_depth);
    }

    void forget(int64_t row) {
        const Factors<S> place = joined_row(row).from(width);
        for (int64_t k = 0; k < depth - width; k += 32) std::memset(place.from(k).start, 0, 32 * sizeof(S));
        for (int64_t panel = 0; panel < panels; ++panel)
            std::memset(cell + (panel * rows + row) * CELLS, 0, CELLS * sizeof(float));
    }

    void read_words() {
        int64_t first, last;
        own_part(batch.count, first, last);
        for (int64_t word = first; word < last; ++word)
            put_numbers(Factors<S>{inputs + word * width, width, 32}, g.states + batch.words[word] * g.word_stride,
                        w.projection_size, width);
#pragma omp barrier
    }

    // All rows begin with a word.
    void read_first() {
        int64_t first, last;
        own_part(batch.rows, first, last);
        for (int64_t row = first; row < last; ++row) joined_row(row).put(inputs + row * width, width);
#pragma omp barrier
    }

    // W_x a for some steps from `step` on, whose words begin at `start`; returns the step after them. With few rows a
    // step takes as long as reading its weights: this reads W_x once for all of them.
    int64_t hoist_inputs(int64_t step, int64_t start) {
        int64_t words = 0;
        for (; step < batch.steps && words + batch.active[step] <= HOISTED_WORDS; ++step) words += batch.active[step];
        int64_t first, last;
        own_part(panels, first, last);
        for (int64_t panel = first; panel < last; ++panel)
            for (int64_t word = 0; word < words; word += Product::ROWS)
                Product::multiply({inputs + (start + word) * width, width, 32}, std::min(Product::ROWS, words - word),
                                  step_weight + panel * depth * COLUMNS, width,
                                  hoisted + (panel * hoisted_rows + word) * COLUMNS, false, nullptr);
        return step;
    }

    // The sums of some words of a panel; those of the next panel, which are far away, are fetched.
    void take_hoisted(float *sums, int64_t panel, int64_t next, int64_t word, int64_t count) {
        const auto place = [&](int64_t each) { return hoisted + (each * hoisted_rows + word) * COLUMNS; };
        std::memcpy(sums, place(panel), count * COLUMNS * sizeof(float));
        for (int64_t j = 0; j < count * COLUMNS; j += 16) _mm_prefetch((const char *)(place(next) + j), _MM_HINT_T0);
    }

    // c and σ(o)·tanh(c) of all cells of a step; `word` is the first of its rows in `hoisted`, or -1. Every other step goes
    // through the panels back: those that were read last are still in the second cache.
    void step_gates(int64_t now, int64_t word, bool back) {
        const int64_t blocks = (now + Product::ROWS - 1) / Product::ROWS;
        // W_x a was hoisted, or is in int8 a product of its own, because a has its own scale.
        const bool apart = SCALE<S> && word < 0;
        const int64_t skipped = word < 0 && !apart ? 0 : width;
        // With few rows of int8 the processor itself fetches the next panel as early.
        const bool fetches = !SCALE<S> || apart;
        const int64_t bytes = (depth - skipped) * COLUMNS * int64_t(sizeof(S));
        float *sums = own_scratch(), *other = sums + MOST_ROWS * COLUMNS;
        Between<Gated<S>> between;
        between.limit = w.cell_clip > 0 ? w.cell_clip : INFINITY;
        int64_t first, last;
        own_part(panels, first, last);
        for (int64_t turn = first; turn < last; ++turn) {
            const int64_t panel = back ? first + last - 1 - turn : turn;
            const S *weights = step_weight + (panel * depth + skipped) * COLUMNS;
            const char *next = reinterpret_cast<const char *>(weights + (back ? -depth : depth) * COLUMNS);
            for (int64_t block = 0; block < blocks; ++block) {
                const int64_t row = block * Product::ROWS, count = std::min(Product::ROWS, now - row);
                if (apart)
                    Product::multiply(joined_row(row), count, weights - width * COLUMNS, width, sums, false, nullptr);
                else if (skipped)
                    take_hoisted(sums, panel, panel + (back ? -1 : 1), word + row, count);
                if (fetches && turn + 1 < last) {
                    between.line = next + block * bytes / blocks;
                    between.last_line = next + (block + 1) * bytes / blocks;
                }
                Product::multiply(joined_row(row).from(skipped), count, weights, depth - skipped, sums, skipped,
                                  &between);
                between.finish();
                const auto place = Product::factors(gated.start, cells, row).from(panel * CELLS);
                between.sums = sums;
                between.bias = w.bias + panel * COLUMNS;
                between.cell = cell + (panel * rows + row) * CELLS;
                between.gated = place.start + panel * CELLS % 32;
                between.gated_stride = place.stride;
                between.done = 0;
                between.count = count;
                std::swap(sums, other);
            }
        }
        between.finish();
    }

    // u = W_p σ(o)·tanh(c) [panels, rows, 64]
    void project(int64_t now) {
        constexpr int64_t GROUP = 96;  // rows of a piece of work
        const int64_t groups = (now + GROUP - 1) / GROUP;
        int64_t first, last;
        own_part(projection_panels * groups, first, last);
        S *factors = gated_factors.start;
        if constexpr (!SCALE<S>) factors = gated.start;
        for (int64_t k = 0; k < gated_depth; k += CHUNK<S>)
            for (int64_t piece = first; piece < last; ++piece) {
                const int64_t panel = piece / groups, end = std::min(now, (piece % groups + 1) * GROUP);
                for (int64_t row = piece % groups * GROUP; row < end; row += Product::ROWS)
                    Product::multiply(Product::factors(factors, gated_depth, row).from(k),
                                      std::min(Product::ROWS, end - row),
                                      projection + (panel * gated_depth + k) * COLUMNS, std::min(CHUNK<S>, gated_depth - k),
                                      projected + (panel * rows + row) * COLUMNS, k > 0, nullptr);
            }
    }

    // h of the rows of a step: to the recurrence, the next layer and the layer states.
    void output(int64_t step, int64_t start, int64_t now) {
        const int64_t size = w.projection_size, next = step + 1 < batch.steps ? batch.active[step + 1] : 0;
        float *h = own_scratch() + MOST_ROWS * COLUMNS;
        int64_t first, last;
        own_part(now, first, last);
        for (int64_t row = first; row < last; ++row) {
            normalise(row, h);
            S *given = inputs + (start + row) * width;
            float *out = g.states + number * g.layer_stride + batch.words[start + row] * g.word_stride;
            const float *below = out - g.layer_stride;
            put_hidden(row, h);
            if (g.residual && number > 1)
                for (int64_t j = 0; j < size; ++j) h[j] += below[j];
            std::memcpy(out, h, size * sizeof(float));
            if (row < next) {
                joined_row(row).put(inputs + (start + now + row) * width, width);
                if (batch.begins[start + now + row]) forget(row);
            }
            // what the next layer reads
            put_numbers(Factors<S>{given, width, 32}, h, size, width);
        }
    }

    // A sum over a row, by add(sum, number): 16 sums side by side, the first of which takes what is left over, and then
    // their sum. It is written out: a compiler that could choose the order took another for the last step of a batch.
    template <typename Add>
    float total(const float *row, Add add) const {
        Numbers sums = repeated(0.0f);
        int64_t j = 0;
        for (; j + 16 <= w.projection_size; j += 16) sums = add(sums, load(row + j));
        float each[16], sum = 0.0f;
        store(each, sums);
        for (; j < w.projection_size; ++j) each[0] = add(each[0], row[j]);
        for (const float one : each) sum += one;
        return sum;
    }

    void normalise(int64_t row, float *h) const {
        const float limit = w.projection_clip > 0 ? w.projection_clip : INFINITY, size = float(w.projection_size);
        for (int64_t panel = 0; panel < projection_panels; ++panel)
            for (int64_t j = 0; j < COLUMNS; j += 16)
                store(h + panel * COLUMNS + j, clipped(load(projected + (panel * rows + row) * COLUMNS + j), limit));
        if (!w.norm_weight) return;
        const float mean = total(h, [](auto sum, auto x) { return sum + x; }) / size;
        const float squares = total(h, [mean](auto sum, auto x) { return multiply_add(x - mean, x - mean, sum); });
        const float scale = 1.0f / std::sqrt(squares / size + w.epsilon);
        const auto normal = [mean, scale](auto x, auto weight, auto bias) {
            return multiply_add((x - mean) * scale, weight, bias);
        };
        int64_t j = 0;
        for (; j + 16 <= w.projection_size; j += 16)
            store(h + j, normal(load(h + j), load(w.norm_weight + j), load(w.norm_bias + j)));
        for (; j < w.projection_size; ++j) h[j] = normal(h[j], w.norm_weight[j], w.norm_bias[j]);
    }

    const Arguments &g;
    const Weights &w;
    const Batch &batch;
    const int64_t number;
    S *const inputs;
    const S *const step_weight, *const projection;
    const int64_t width, depth, cells, gated_depth, panels, projection_panels, rows, row_stride;
    const int64_t few_rows, hoisted_rows;
    Array<S> joined;          // the factors of [W_x W_h]
    Array<Gated<S>> gated;    // of W_p, in int8 not yet…
    Array<S> gated_factors;   // …but here
    Array<float> cell;        // [panels, rows, 16]
    Array<float> projected;   // [panels of the projection, rows, 64]
    Array<float> scratch;     // of each thread: sums of a panel, and a row
    Array<float> hoisted;     // [panels, words, 64]
};

// 1 where memory is lacking.
template <typename S, typename Product>
int run(const Arguments *arguments) {
    const Arguments &given = *arguments;
    Batch batch;
    if (!batch.make(given.lengths, given.sentences, given.most_rows, given.backward)) return 1;
    if (!batch.count) return 0;
    Array<S> inputs;
    // products read a block of rows at once
    if (!inputs.make((batch.count + MOST_ROWS) * Layer<S, Product>::input_width(given.weights[0]))) return 1;
    for (int64_t number = 1; number <= given.layers; ++number) {
        Layer<S, Product> layer(given, batch, number, inputs);
        if (!layer.allocate()) return 1;
        layer.run();
    }
    return 0;
}

}  // namespace

// 0: nothing runs here, 1: vectors, 2: products in bfloat16 and int8 on tiles, which the system has to allow.
extern "C" int support() {
#if defined(__AMX_TILE__) && defined(__linux__)
    constexpr long REQUEST = 0x1023, TILES = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
    if (syscall(SYS_arch_prctl, REQUEST, TILES) == 0) return 2;
#endif
    return 1;
}

extern "C" int lstm_float32(const Arguments *arguments) { return run<float, Vectors<float>>(arguments); }
extern "C" int lstm_bfloat16(const Arguments *arguments) { return run<bf16, Vectors<bf16>>(arguments); }
extern "C" int lstm_int8(const Arguments *arguments) { return run<int8_t, ScaledVectors>(arguments); }
#ifdef __AMX_TILE__
extern "C" int lstm_bfloat16_tiles(const Arguments *arguments) { return run<bf16, Tiles<bf16>>(arguments); }
extern "C" int lstm_int8_tiles(const Arguments *arguments) { return run<int8_t, ScaledTiles>(arguments); }
#endif

#else

extern "C" int support() { return 0; }

#endif
