#include "client/cli/print/print.h"

#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/base/sanitize.h"

void columns_add(struct columns *columns, const char *format, ...)
{
    if (columns->cell_count == columns->capacity) {
        size_t capacity = columns->capacity ? columns->capacity * 2 : 64;
        char **cells = realloc(columns->cells, capacity * sizeof(*cells));
        columns->failed |= !cells;
        if (!cells)
            return;
        columns->cells = cells;
        columns->capacity = capacity;
    }
    va_list args;
    va_start(args, format);
    char *cell = NULL;
    int len = vasprintf(&cell, format, args);
    va_end(args);
    columns->failed |= len < 0;
    if (len >= 0)
        columns->cells[columns->cell_count++] = cell;
}

/* Characters, for text that is mostly one column a character. */
static size_t width_of(const char *text)
{
    size_t width = 0;
    for (; *text; text++)
        width += ((unsigned char)*text & 0xc0) != 0x80;
    return width;
}

void columns_print(const struct columns *columns, FILE *out)
{
    size_t widths[16] = {0}, count = columns->count;
    for (size_t i = 0; i < columns->cell_count; i++) {
        size_t width = width_of(columns->cells[i]);
        if (width > widths[i % count])
            widths[i % count] = width;
    }
    for (size_t i = 0; i < columns->cell_count; i++) {
        bool last = i % count == count - 1 || i == columns->cell_count - 1;
        size_t pad = last ? 0 : widths[i % count] - width_of(columns->cells[i]) + 2;
        sanitize_print(out, "%s", columns->cells[i]);
        fprintf(out, "%*s", (int)pad, "");
        if (last)
            putc('\n', out);
    }
}

void columns_finish(struct columns *columns)
{
    for (size_t i = 0; i < columns->cell_count; i++)
        free(columns->cells[i]);
    free(columns->cells);
    *columns = (struct columns){.count = columns->count};
}

bool has_colour(FILE *out)
{
    const char *no = getenv("NO_COLOR");
    return isatty(fileno(out)) && !(no && *no);
}

void print_reward(const struct sluice_trajectory *trajectory, char *ret, size_t size)
{
    if (trajectory->has_reward)
        snprintf(ret, size, "%.4g", trajectory->reward);
    else
        snprintf(ret, size, "-");
}

void print_duration(uint64_t ms, char *ret, size_t size)
{
    if (ms < 1000)
        snprintf(ret, size, "%u ms", (unsigned)ms);
    else if (ms < 120000)
        snprintf(ret, size, "%.1f s", (double)ms / 1000.0);
    else
        snprintf(ret, size, "%llu min %llu s", (unsigned long long)(ms / 60000), (unsigned long long)(ms / 1000 % 60));
}

void count_tokens(const struct sluice_trajectory *trajectory, size_t *all, size_t *sampled)
{
    *all = *sampled = 0;
    for (size_t i = 0; i < trajectory->trace_count; i++)
        for (size_t k = 0; k < trajectory->traces[i].token_count; k++) {
            ++*all;
            *sampled += trajectory->traces[i].mask[k];
        }
}
