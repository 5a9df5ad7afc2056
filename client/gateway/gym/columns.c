#include "client/gateway/gym/columns.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/gateway/json_text.h"

static struct column *find(struct columns *columns, const char *name)
{
    size_t at = columns->next;
    if (at >= columns->count || strcmp(columns->list[at].name, name) != 0) {
        const struct column *known = table_find(&columns->by_name, slice_from_str(name));
        at = known ? (size_t)(known - columns->list) : columns->count;
    }
    if (at == COLUMNS_MAX)
        return NULL;
    if (at == columns->count) {
        columns->list[at].name = name;
        if (!table_put(&columns->by_name, slice_from_str(name), &columns->list[at]))
            return NULL;
        columns->count++;
    }
    columns->next = at + 1 < columns->count ? at + 1 : 0;
    return &columns->list[at];
}

static bool add(struct column *column, double value)
{
    if (column->count == column->capacity) {
        const size_t capacity = column->capacity ? 2 * column->capacity : 16;
        double *values = realloc(column->values, capacity * sizeof(*values));
        if (!values)
            return false;
        column->values = values;
        column->capacity = capacity;
    }
    column->values[column->count++] = value;
    return true;
}

static bool is_among(const char *name, const char *const *names)
{
    for (; *names; names++)
        if (strcmp(name, *names) == 0)
            return true;
    return false;
}

bool row_columns_add(struct columns *columns, const json_t *object, const char *const *but)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)object, name, value)
    {
        if ((!json_is_number(value) && !json_is_boolean(value)) || is_among(name, but))
            continue;
        struct column *column = find(columns, name);
        if (column && !add(column, json_is_number(value) ? json_number_value(value) : (double)json_is_true(value)))
            return false;
    }
    return true;
}

static int compare_values(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct column *)a)->name, ((const struct column *)b)->name);
}

static double mean_of(const struct column *column)
{
    double sum = 0;
    for (size_t i = 0; i < column->count; i++)
        sum += column->values[i];
    return sum / (double)column->count;
}

/* Of a sample; 0 of one value. */
static double deviation_of(const struct column *column, double mean)
{
    double sum = 0;
    for (size_t i = 0; i < column->count; i++)
        sum += (column->values[i] - mean) * (column->values[i] - mean);
    return column->count > 1 ? sqrt(sum / (double)(column->count - 1)) : 0;
}

static void append(struct buffer *out, const char *joint, const char *what, const char *name, double value)
{
    struct buffer whole = {0};
    buffer_append_str(out, joint);
    buffer_printf(&whole, "%s/%s", what, name);
    json_text_append(out, buffer_peek(&whole));
    buffer_append_str(out, ":");
    json_text_append_number(out, value);
    buffer_finish(&whole);
}

static void append_column(struct column *column, bool only_means, const char *joint, struct buffer *out)
{
    const double mean = mean_of(column);
    const size_t count = column->count, half = count / 2;
    append(out, joint, "mean", column->name, mean);
    if (only_means)
        return;
    qsort(column->values, count, sizeof(*column->values), compare_values);
    const double *sorted = column->values;
    append(out, ",", "max", column->name, sorted[count - 1]);
    append(out, ",", "min", column->name, sorted[0]);
    append(out, ",", "median", column->name, count % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2);
    append(out, ",", "std", column->name, deviation_of(column, mean));
}

void columns_append(struct columns *columns, bool only_means, struct buffer *out)
{
    qsort(columns->list, columns->count, sizeof(*columns->list), compare_names);
    for (size_t i = 0; i < columns->count; i++)
        append_column(&columns->list[i], only_means, i > 0 ? "," : "", out);
}

void columns_clear(struct columns *columns)
{
    for (size_t i = 0; i < columns->count; i++)
        free(columns->list[i].values);
    table_finish(&columns->by_name);
    memset(columns, 0, sizeof(*columns));
}
