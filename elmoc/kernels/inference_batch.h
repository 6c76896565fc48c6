// Batches of inference: which row reads each sentence, and in which order the words lie. Part of inference.cpp.

#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <numeric>

namespace {

int64_t padded(int64_t size, int64_t to) { return (size + to - 1) / to * to; }

// Numbers in memory, where vector registers read them at once.
template <typename T>
struct Array {
    T *start = nullptr;

    Array() = default;
    Array(const Array &) = delete;
    ~Array() { std::free(start); }
    operator T *() const { return start; }
    // Zeros; false where memory is lacking.
    bool make(int64_t count) {
        const size_t bytes = size_t(std::max(padded(count * int64_t(sizeof(T)), 64), int64_t(64)));
        start = static_cast<T *>(std::aligned_alloc(64, bytes));
        if (start) std::memset(start, 0, bytes);
        return start;
    }
};

// Sentences that are read together. A row reads one sentence behind the other, so that nearly all rows end together, and
// words are packed: step t holds the rows that have more than t words, which are the first ones.
struct Batch {
    Array<int64_t> active;  // [steps]: rows that go on at each step
    Array<int64_t> words;   // [count]: which word of the text each is
    Array<uint8_t> begins;  // [count]: whether it is read from zero state, behind other words of its row
    int64_t steps = 0, count = 0, rows = 0;

    // `lengths` of sentences, `most` rows, and whether each sentence is read from its last word to its first.
    bool make(const int64_t *lengths, int64_t sentences, int64_t most, bool backward) {
        struct Row {
            int64_t words, number;
        };
        const auto is_longer = [](Row a, Row b) { return a.words > b.words || (a.words == b.words && a.number > b.number); };
        count = std::accumulate(lengths, lengths + sentences, int64_t(0));
        if (!count) return true;
        const int64_t longest = *std::max_element(lengths, lengths + sentences);
        // as many as there have to be so that none is longer than the longest sentence
        rows = std::min(most, (count + longest - 1) / longest);
        Array<Row> filled, sorted;
        Array<int64_t> row_of, start_of, rank, first;
        if (!(filled.make(rows) && sorted.make(sentences) && row_of.make(sentences) && start_of.make(sentences) &&
              rank.make(rows) && words.make(count) && begins.make(count)))
            return false;
        for (int64_t row = 0; row < rows; ++row) filled[row] = {0, row};
        for (int64_t each = 0; each < sentences; ++each) sorted[each] = {-lengths[each], each};
        std::sort(sorted.start, sorted + sentences, [&](Row a, Row b) { return is_longer(b, a); });
        // the longest sentence first, each to the row with the fewest words, which is the top of a heap
        for (int64_t turn = 0; turn < sentences; ++turn) {
            const int64_t each = sorted[turn].number;
            std::pop_heap(filled.start, filled + rows, is_longer);
            Row &row = filled[rows - 1];
            row_of[each] = row.number;
            start_of[each] = row.words;
            row.words += lengths[each];
            std::push_heap(filled.start, filled + rows, is_longer);
        }
        std::sort(filled.start, filled + rows, is_longer);
        steps = filled[0].words;
        if (!(active.make(steps) && first.make(steps))) return false;
        for (int64_t row = 0; row < rows; ++row) {
            rank[filled[row].number] = row;
            for (int64_t step = 0; step < filled[row].words; ++step) ++active[step];
        }
        std::partial_sum(active.start, active + steps - 1, first + 1);
        int64_t before = 0;
        for (int64_t each = 0; each < sentences; before += lengths[each++])
            for (int64_t word = 0; word < lengths[each]; ++word) {
                const int64_t step = start_of[each] + word, place = first[step] + rank[row_of[each]];
                words[place] = before + (backward ? lengths[each] - 1 - word : word);
                begins[place] = step > 0 && word == 0;
            }
        return true;
    }
};

}  // namespace
