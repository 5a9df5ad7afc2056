#include "workers/tools/name_distance.h"

#include <ctype.h>
#include <string.h>

static size_t least_of(size_t a, size_t b, size_t c)
{
    const size_t ab = a < b ? a : b;
    return ab < c ? ab : c;
}

/* Levenshtein's, a row at a time. */
static size_t edits(const char *a, size_t a_len, const char *b, size_t b_len)
{
    size_t row[NAME_DISTANCE_MAX + 1];
    for (size_t j = 0; j <= b_len; j++)
        row[j] = j;
    for (size_t i = 1; i <= a_len; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b_len; j++) {
            const size_t above = row[j];
            const size_t change = tolower((unsigned char)a[i - 1]) != tolower((unsigned char)b[j - 1]);
            row[j] = least_of(above + 1, row[j - 1] + 1, diagonal + change);
            diagonal = above;
        }
    }
    return row[b_len];
}

size_t name_distance(const char *a, const char *b)
{
    const size_t a_len = strnlen(a, NAME_DISTANCE_MAX), b_len = strnlen(b, NAME_DISTANCE_MAX);
    const size_t distance = edits(a, a_len, b, b_len);
    const int is_part = a_len > 0 && b_len > 0 && (strcasestr(a, b) || strcasestr(b, a));
    return distance > 1 && is_part ? 1 : distance;
}
