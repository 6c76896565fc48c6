// Look-up of fastText vectors in a file that is mapped into memory.
//
// A word's vector is the mean of its own row, where the dictionary has it, and of the rows of its character n-grams
// (Bojanowski et al. 2017, Section 3.2). N-grams are hashed into buckets; their characters are those of UTF-8. Called
// by fasttext.py, which has checked the sizes before. Additions are the library's, in its order
// and in float, so that vectors are equal to its own bit for bit.

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace {

// A place of the hash table, with the entry that stands there: its hash, and its number from 1 on; 0 is an empty one.
struct Slot {
    uint32_t hash, number;
};

// Eight bytes a field, as `_compiled_lookup` in fasttext.py fills them.
struct File {
    const char *content;
    int64_t length;
    int64_t dim, words, bucket, shortest, longest, entries;
    int64_t *begins;  // [entries]: where the word of each begins
    Slot *slots;  // [mask + 1], a power of two; an entry stands in the first free one from its hash on
    int64_t mask;
    int64_t end;  // of the dictionary
};

constexpr int64_t ABSENT = -1, LABEL = -2;
constexpr int64_t COUNT_AND_TYPE = 9, MATRIX_HEADER = 17;  // bytes behind a word, and before the rows
constexpr int64_t WAITING = 1024;  // rows that are known before they are added
constexpr int64_t AHEAD = 16;  // rows, or entries: how early their memory is looked for, which takes as long as using some
constexpr uint32_t BASIS = 2166136261u;

inline uint32_t folded(uint32_t hash, char byte) {
    return (hash ^ uint32_t(int32_t(static_cast<signed char>(byte)))) * 16777619u;
}

inline uint32_t hash_of(const char *word, int64_t length) {
    uint32_t hash = BASIS;
    for (int64_t i = 0; i < length; ++i) hash = folded(hash, word[i]);
    return hash;
}

inline void prefetch(const void *place) {
#ifdef __GNUC__
    __builtin_prefetch(place);
#endif
}

inline bool continues(char byte) { return (byte & 0xC0) == 0x80; }

inline bool is(const char *word, int64_t length, const char *other) {
    return length == int64_t(std::strlen(other)) && std::memcmp(word, other, size_t(length)) == 0;
}

// The place in the table of a word without a zero byte: its own, or the first free one where it has none.
int64_t place_of(const File &file, const char *word, int64_t length, uint32_t hash) {
    int64_t place = hash & file.mask;
    for (; file.slots[place].number; place = (place + 1) & file.mask) {
        const int64_t begin = file.begins[file.slots[place].number - 1];
        if (file.slots[place].hash == hash && length < file.length - begin && file.content[begin + length] == 0 &&
            std::memcmp(file.content + begin, word, size_t(length)) == 0)
            break;
    }
    return place;
}

int64_t own_row(const File &file, const char *word, int64_t length) {
    if (std::memchr(word, 0, size_t(length))) return ABSENT;
    const int64_t number = int64_t(file.slots[place_of(file, word, length, hash_of(word, length))].number) - 1;
    return number < file.words ? number : LABEL;
}

// Rows that wait to be added to the vectors of their words, while the pages of those behind them are looked for.
class Additions {
  public:
    explicit Additions(const File &file)
        : matrix_(file.content + file.end + MATRIX_HEADER), dim_(file.dim), bytes_(dim_ * int64_t(sizeof(float))) {}

    void push(int64_t row, float *vector) {
        if (waiting_ == WAITING) add();
        rows_[waiting_] = matrix_ + row * bytes_;
        vectors_[waiting_++] = vector;
    }

    void add() {
        for (int64_t i = 0; i < std::min(AHEAD, waiting_); ++i) fetch(rows_[i]);
        for (int64_t i = 0; i < waiting_; ++i) {
            if (i + AHEAD < waiting_) fetch(rows_[i + AHEAD]);
            const char *row = rows_[i];
            float *vector = vectors_[i];
            for (int64_t j = 0; j < dim_; ++j) {
                float number;
                std::memcpy(&number, row + j * int64_t(sizeof number), sizeof number);
                vector[j] += number;
            }
        }
        waiting_ = 0;
    }

  private:
    // Both ends of a row, which may lie on two pages; what is between, the processor fetches by itself.
    void fetch(const char *row) const {
        prefetch(row);
        prefetch(row + bytes_ - 1);
    }

    const char *const matrix_;  // the floats of its rows may lie at any byte
    const int64_t dim_, bytes_;
    const char *rows_[WAITING];
    float *vectors_[WAITING];
    int64_t waiting_ = 0;
};

// Push the rows of the n-grams of a word, which stands between < and >; returns how many they are.
int64_t push_subwords(const File &file, const char *word, int64_t length, float *vector, Additions &additions) {
    int64_t pushed = 0;
    for (int64_t begin = 0; begin < length; ++begin) {
        if (continues(word[begin])) continue;
        uint32_t hash = BASIS;
        int64_t end = begin;
        for (int64_t characters = 1; end < length && characters <= file.longest; ++characters) {
            do hash = folded(hash, word[end++]);
            while (end < length && continues(word[end]));
            const bool boundary = characters == 1 && (begin == 0 || end == length);  // < or > alone
            if (characters < file.shortest || boundary) continue;
            additions.push(file.words + hash % uint32_t(file.bucket), vector);
            ++pushed;
        }
    }
    return pushed;
}

}  // namespace

// Fill the table with the dictionary, which starts at this place; 0 where that is not what the header says. Of words that
// are there twice the library finds the last one.
extern "C" int read_dictionary(File *file, int64_t start) {
    const char *word = file->content + start, *const end = file->content + file->length;
    int64_t lengths[AHEAD];
    uint32_t hashes[AHEAD];
    for (int64_t number = 0; number < file->entries + AHEAD; ++number) {
        if (number >= AHEAD) {
            const int64_t entry = number - AHEAD, at = number % AHEAD;
            const char *before = file->content + file->begins[entry];
            file->slots[place_of(*file, before, lengths[at], hashes[at])] = {hashes[at], uint32_t(entry + 1)};
        }
        if (number >= file->entries) continue;
        const void *zero = std::memchr(word, 0, size_t(end - word));
        const int64_t length = zero ? static_cast<const char *>(zero) - word : end - word;
        if (end - word - length <= COUNT_AND_TYPE) return 0;
        if (word[length + COUNT_AND_TYPE] != char(number >= file->words)) return 0;
        file->begins[number] = word - file->content;
        lengths[number % AHEAD] = length;
        hashes[number % AHEAD] = hash_of(word, length);
        prefetch(file->slots + (hashes[number % AHEAD] & file->mask));
        word += length + 1 + COUNT_AND_TYPE;
    }
    file->end = word - file->content;
    return 1;
}

// Add the vectors of `count` words to `vectors`, which are zeros; each ends at its place in `ends`.
extern "C" void add_vectors(const File *file, const char *text, const int64_t *ends, int64_t count, float *vectors) {
    constexpr int64_t TOGETHER = 64;  // words that are scaled after their rows are added
    Additions additions(*file);
    int64_t begin = 0, rows[TOGETHER];
    for (int64_t first = 0; first < count; first += TOGETHER) {
        const int64_t words = std::min(TOGETHER, count - first);
        for (int64_t i = 0; i < words; ++i) {
            const char *word = text + begin;
            const int64_t length = ends[first + i] - begin;
            float *vector = vectors + (first + i) * file->dim;
            const int64_t own = own_row(*file, word + 1, length - 2);
            rows[i] = 0;
            if (own >= 0) {
                additions.push(own, vector);
                rows[i] = 1;
            }
            if (own != LABEL && !is(word + 1, length - 2, "</s>"))
                rows[i] += push_subwords(*file, word, length, vector, additions);
            begin = ends[first + i];
        }
        additions.add();
        for (int64_t i = 0; i < words; ++i) {
            if (rows[i] == 0) continue;
            const float scale = float(1.0 / double(rows[i]));
            float *vector = vectors + (first + i) * file->dim;
            for (int64_t j = 0; j < file->dim; ++j) vector[j] *= scale;
        }
    }
}
