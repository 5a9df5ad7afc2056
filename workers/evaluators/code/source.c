#include "workers/evaluators/code/source.h"
#include "common/base/text.h"

#include <string.h>

/* How many backquotes the line begins with, blanks before them apart. */
static size_t fence_of(struct slice line, bool *is_bare)
{
    size_t at = 0, ticks = 0;
    while (at < line.len && (line.data[at] == ' ' || line.data[at] == '\t'))
        at++;
    while (at + ticks < line.len && line.data[at + ticks] == '`')
        ticks++;
    *is_bare = true;
    for (size_t i = at + ticks; i < line.len; i++)
        *is_bare &= line.data[i] == ' ' || line.data[i] == '\t' || line.data[i] == '\r';
    return ticks >= 3 ? ticks : 0;
}

bool source_find(struct slice answer, struct slice *ret)
{
    struct slice rest = text_behind_last(answer, "</think>");
    size_t open = 0; /* backquotes of the block that is open */
    const uint8_t *begin = NULL;
    bool found = false;
    while (rest.len > 0) {
        const uint8_t *end = memchr(rest.data, '\n', rest.len);
        struct slice line = slice_of(rest.data, end ? (size_t)(end - rest.data) : rest.len);
        bool is_bare;
        const size_t ticks = fence_of(line, &is_bare);
        rest = end ? slice_of(end + 1, rest.len - line.len - 1) : slice_of(NULL, 0);
        if (open == 0 && ticks) {
            open = ticks;
            begin = rest.data;
            if (rest.len > 0) /* should it not be closed */
                *ret = rest;
            found |= rest.len > 0;
        } else if (open && ticks >= open && is_bare) {
            *ret = slice_of(begin, (size_t)(line.data - begin));
            open = 0;
            found = true;
        }
    }
    return found;
}
