#include "common/base/nearest.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static size_t least_of(size_t a, size_t b, size_t c)
{
    const size_t ab = a < b ? a : b;
    return ab < c ? ab : c;
}

static int folded(uint8_t c) { return c == '-' ? '_' : tolower(c); }

static bool are_same(struct slice a, struct slice b)
{
    for (size_t i = 0; i < a.len; i++)
        if (folded(a.data[i]) != folded(b.data[i]))
            return false;
    return true;
}

static bool contains(struct slice whole, struct slice part)
{
    for (size_t at = 0; part.len > 0 && at + part.len <= whole.len; at++)
        if (are_same(part, (struct slice){whole.data + at, part.len}))
            return true;
    return false;
}

/* Levenshtein's, a row at a time. */
static size_t edits(struct slice a, struct slice b)
{
    size_t row[NAME_DISTANCE_MAX + 1];
    for (size_t j = 0; j <= b.len; j++)
        row[j] = j;
    for (size_t i = 1; i <= a.len; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b.len; j++) {
            const size_t above = row[j];
            const size_t change = folded(a.data[i - 1]) != folded(b.data[j - 1]);
            row[j] = least_of(above + 1, row[j - 1] + 1, diagonal + change);
            diagonal = above;
        }
    }
    return row[b.len];
}

static struct slice bounded(struct slice name)
{
    return (struct slice){name.data, name.len < NAME_DISTANCE_MAX ? name.len : NAME_DISTANCE_MAX};
}

size_t name_distance(struct slice a, struct slice b)
{
    a = bounded(a);
    b = bounded(b);
    const size_t distance = edits(a, b);
    return distance > 1 && (contains(a, b) || contains(b, a)) ? 1 : distance;
}

void nearest_offer(struct nearest *nearest, struct slice name)
{
    const size_t distance = name_distance(nearest->wanted, name);
    if (nearest->name.data && distance >= nearest->distance)
        return;
    nearest->name = name;
    nearest->distance = distance;
}

void nearest_offer_str(struct nearest *nearest, const char *name) { nearest_offer(nearest, slice_from_str(name)); }

bool nearest_is_likely(const struct nearest *nearest)
{
    const size_t len = nearest->wanted.len;
    return nearest->name.data && len > 1 && nearest->distance <= (len < 5 ? 1 : len < 7 ? 2 : len / 3);
}

const char *nearest_text(const struct nearest *nearest, const char *before, char ret[static NEAREST_TEXT_SIZE])
{
    const struct slice name = bounded(nearest->name);
    ret[0] = '\0';
    if (nearest_is_likely(nearest))
        snprintf(ret, NEAREST_TEXT_SIZE, "; did you mean '%s%.*s'?", before, SLICE_ARG(name));
    return ret;
}
