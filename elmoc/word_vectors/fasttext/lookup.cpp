// Look-up of fastText vectors in a file that is mapped into memory.
//
// A word's vector is the mean of its own row, where the dictionary has it, and of the rows of its character n-grams
// (Bojanowski et al. 2017, Section 3.2). N-grams are hashed into buckets; their characters are those of UTF-8. Compiled
// on the user's machine by vectors.py; file.py has checked the sizes before. Additions are the library's, in its order
// and in float, so that vectors are equal to its own bit for bit.

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace {

struct Entry {
    int64_t offset;  // where it begins in the content
    uint32_t hash;
    uint32_t number;
};

struct File {
    const char *content;
    int64_t dictionary_end;
    const char *matrix;  // the floats of its rows may lie at any byte
    int64_t dim, words, bucket, shortest, longest;
    const Entry *entries;  // of the dictionary, by ascending hashes
    int64_t count;
};

constexpr int64_t ABSENT = -1, WITHOUT_VECTOR = -2;
constexpr int64_t WAITING = 1024;  // rows that are known before they are added
constexpr int64_t AHEAD = 16;  // rows: how early the pages of a row are looked for, which takes as long as adding some
constexpr uint32_t BASIS = 2166136261u;

inline uint32_t folded(uint32_t hash, char byte) {
    return (hash ^ uint32_t(int32_t(static_cast<signed char>(byte)))) * 16777619u;
}

inline uint32_t hash_of(const char *word, int64_t length) {
    uint32_t hash = BASIS;
    for (int64_t i = 0; i < length; ++i) hash = folded(hash, word[i]);
    return hash;
}

inline bool continues(char byte) { return (byte & 0xC0) == 0x80; }

inline bool is(const char *word, int64_t length, const char *other) {
    return length == int64_t(std::strlen(other)) && std::memcmp(word, other, size_t(length)) == 0;
}

// The row of a word; of those that are there twice the library finds the last one. A label has no row.
int64_t own_row(const File &file, const char *word, int64_t length) {
    if (std::memchr(word, 0, size_t(length))) return ABSENT;  // it would run over the end of an entry
    const uint32_t hash = hash_of(word, length);
    const Entry *found = std::upper_bound(file.entries, file.entries + file.count, hash,
                                          [](uint32_t hash, const Entry &entry) { return hash < entry.hash; });
    while (found != file.entries && (--found)->hash == hash) {
        if (length < file.dictionary_end - found->offset && file.content[found->offset + length] == 0 &&
            std::memcmp(file.content + found->offset, word, size_t(length)) == 0)
            return found->number < file.words ? int64_t(found->number) : WITHOUT_VECTOR;
    }
    return ABSENT;
}

// Rows that wait to be added to the vectors of their words, while the pages of those behind them are looked for.
class Additions {
  public:
    explicit Additions(const File &file) : file_(file), bytes_(file.dim * int64_t(sizeof(float))) {}

    void push(int64_t row, float *vector) {
        if (waiting_ == WAITING) add();
        rows_[waiting_] = file_.matrix + row * bytes_;
        vectors_[waiting_++] = vector;
    }

    void add() {
        for (int64_t i = 0; i < std::min(AHEAD, waiting_); ++i) fetch(rows_[i]);
        for (int64_t i = 0; i < waiting_; ++i) {
            if (i + AHEAD < waiting_) fetch(rows_[i + AHEAD]);
            const char *row = rows_[i];
            float *vector = vectors_[i];
            for (int64_t j = 0; j < file_.dim; ++j) {
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
#ifdef __GNUC__
        __builtin_prefetch(row);
        __builtin_prefetch(row + bytes_ - 1);
#endif
    }

    const File &file_;
    const int64_t bytes_;
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

// The hashes of `count` words, which begin and end at these places of the content.
extern "C" void hash_entries(const char *content, const int64_t *begins, const int64_t *ends, int64_t count,
                             uint32_t *hashes) {
    for (int64_t i = 0; i < count; ++i) hashes[i] = hash_of(content + begins[i], ends[i] - begins[i]);
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
            if (own != WITHOUT_VECTOR && !is(word + 1, length - 2, "</s>"))
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
