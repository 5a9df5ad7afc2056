#include "workers/tokenizer/nfc.h"

#include <stdlib.h>

#include "common/base/utf8.h"

enum {
    HANGUL_FIRST = 0xac00,
    HANGUL_COUNT = 11172,
    L_FIRST = 0x1100,
    V_FIRST = 0x1161,
    T_FIRST = 0x11a7,
    L_COUNT = 19,
    V_COUNT = 21,
    T_COUNT = 28,
    LONGEST = 18,    /* of one character, decomposed: no more than that, by Unicode's own word */
    MARKS_MAX = 1024 /* in a row: ordering them takes the square of it */
};

static const struct {
    uint32_t whole, first, second;
} decompositions[] = {
#include "workers/tokenizer/nfc_decompositions.def"
};

static const struct {
    uint32_t first, second, whole;
} compositions[] = {
#include "workers/tokenizer/nfc_compositions.def"
};

static const struct {
    uint32_t first, last, class;
} classes[] = {
#include "workers/tokenizer/nfc_classes.def"
};

struct characters {
    uint32_t *list;
    size_t count, capacity;
};

static bool add(struct characters *characters, uint32_t c)
{
    if (characters->count == characters->capacity) {
        const size_t wanted = characters->capacity ? characters->capacity * 2 : 256;
        uint32_t *larger = reallocarray(characters->list, wanted, sizeof(*larger));
        if (!larger)
            return false;
        characters->list = larger;
        characters->capacity = wanted;
    }
    characters->list[characters->count++] = c;
    return true;
}

static unsigned class_of(uint32_t c)
{
    size_t from = 0, to = sizeof(classes) / sizeof(*classes);
    while (from < to) {
        const size_t middle = (from + to) / 2;
        if (c > classes[middle].last)
            from = middle + 1;
        else
            to = middle;
    }
    const bool is_in = from < sizeof(classes) / sizeof(*classes) && c >= classes[from].first;
    return is_in ? classes[from].class : 0;
}

/* ---- taken apart ----------------------------------------------------------------------------------------------- */

static bool decompose_hangul(struct characters *out, uint32_t c)
{
    const uint32_t at = c - HANGUL_FIRST, t = at % T_COUNT;
    return add(out, L_FIRST + at / (V_COUNT * T_COUNT)) && add(out, V_FIRST + at % (V_COUNT * T_COUNT) / T_COUNT) &&
           (t == 0 || add(out, T_FIRST + t));
}

static size_t find_decomposition(uint32_t c)
{
    size_t from = 0, to = sizeof(decompositions) / sizeof(*decompositions);
    while (from < to) {
        const size_t middle = (from + to) / 2;
        if (decompositions[middle].whole < c)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

/* The first of two may be made of others itself. */
static bool decompose(struct characters *out, uint32_t c)
{
    uint32_t behind[LONGEST];
    size_t count = 0;
    if (c >= HANGUL_FIRST && c < HANGUL_FIRST + HANGUL_COUNT)
        return decompose_hangul(out, c);
    for (;;) {
        const size_t at = find_decomposition(c);
        if (at == sizeof(decompositions) / sizeof(*decompositions) || decompositions[at].whole != c || count == LONGEST)
            break;
        if (decompositions[at].second)
            behind[count++] = decompositions[at].second;
        c = decompositions[at].first;
    }
    bool ok = add(out, c);
    while (ok && count > 0)
        ok = add(out, behind[--count]);
    return ok;
}

/* Marks behind a character are ordered by their classes; those of one class stay as they were. False: too many. */
static bool order(struct characters *characters)
{
    size_t row = 0;
    for (size_t i = 1; i < characters->count; i++) {
        const uint32_t c = characters->list[i];
        const unsigned class = class_of(c);
        size_t at = i;
        row = class ? row + 1 : 0;
        if (row > MARKS_MAX)
            return false;
        for (; class && at > 0 && class_of(characters->list[at - 1]) > class; at--)
            characters->list[at] = characters->list[at - 1];
        characters->list[at] = c;
    }
    return true;
}

/* ---- put together ------------------------------------------------------------------------------------------------ */

/* 0: they do not become one. */
static uint32_t compose_hangul(uint32_t a, uint32_t b)
{
    if (a >= L_FIRST && a < L_FIRST + L_COUNT && b >= V_FIRST && b < V_FIRST + V_COUNT)
        return HANGUL_FIRST + ((a - L_FIRST) * V_COUNT + (b - V_FIRST)) * T_COUNT;
    const bool is_lv = a >= HANGUL_FIRST && a < HANGUL_FIRST + HANGUL_COUNT && (a - HANGUL_FIRST) % T_COUNT == 0;
    return is_lv && b > T_FIRST && b < T_FIRST + T_COUNT ? a + (b - T_FIRST) : 0;
}

static uint32_t compose(uint32_t a, uint32_t b)
{
    size_t from = 0, to = sizeof(compositions) / sizeof(*compositions);
    const uint32_t hangul = compose_hangul(a, b);
    while (!hangul && from < to) {
        const size_t middle = (from + to) / 2;
        if (compositions[middle].first < a || (compositions[middle].first == a && compositions[middle].second < b))
            from = middle + 1;
        else
            to = middle;
    }
    const bool is_there = !hangul && from < sizeof(compositions) / sizeof(*compositions) &&
                          compositions[from].first == a && compositions[from].second == b;
    return is_there ? compositions[from].whole : hangul;
}

/* In place. A mark joins the last starter unless one of its class or above stands between. */
static void compose_all(struct characters *characters)
{
    size_t count = 0, starter = SIZE_MAX;
    unsigned last = 0;
    for (size_t i = 0; i < characters->count; i++) {
        const uint32_t c = characters->list[i];
        const unsigned class = class_of(c);
        const bool is_near = starter != SIZE_MAX && (count == starter + 1 || last < class);
        const uint32_t whole = is_near ? compose(characters->list[starter], c) : 0;
        if (whole) {
            characters->list[starter] = whole;
            continue;
        }
        if (class == 0)
            starter = count;
        last = class;
        characters->list[count++] = c;
    }
    characters->count = count;
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

static void write_character(struct buffer *out, uint32_t c)
{
    const size_t len = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const uint8_t lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    uint8_t bytes[4];
    for (size_t i = len; i > 1; i--, c >>= 6)
        bytes[i - 1] = (uint8_t)(0x80 | (c & 0x3f));
    bytes[0] = (uint8_t)(lead[len] | c);
    buffer_append(out, bytes, len);
}

bool nfc_append(struct buffer *out, struct slice text)
{
    struct characters characters = {0};
    bool ok = true;
    for (size_t at = 0, len; ok && at < text.len; at += len) {
        len = utf8_sequence(slice_of(text.data + at, text.len - at));
        ok = len > 0 && decompose(&characters, utf8_character(text.data + at, len));
        len += len == 0;
    }
    ok = ok && order(&characters);
    if (ok)
        compose_all(&characters);
    for (size_t i = 0; ok && i < characters.count; i++)
        write_character(out, characters.list[i]);
    free(characters.list);
    return ok && !out->failed;
}
