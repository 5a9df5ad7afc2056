/* The columns of a trace that some engines tell and some trainers want: values of any shape, by name. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "schemas/trajectory/trajectory_wire.h"

static const struct {
    const char *name;
    size_t size;
} types[] = {{"u8", 1}, {"i8", 1}, {"u16", 2}, {"i16", 2}, {"u32", 4}, {"i32", 4}, {"f16", 2}, {"f32", 4}};

size_t record_type_size(const char *type)
{
    for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
        if (strcmp(types[i].name, type) == 0)
            return types[i].size;
    return 0;
}

/* ---- what is refused ------------------------------------------------------------------ */

/* A column's place, for the refusal: "traces[0].columns[1].shape". */
struct spot {
    const char *path;
    size_t i;
    struct refusal *no;
};

static bool refuse_at(const struct spot *spot, const char *key, enum refusal_reason reason, const char *why)
{
    char field[128];
    snprintf(field, sizeof(field), "%.60scolumns[%zu].%s", spot->path, spot->i, key);
    return refuse(spot->no, reason, field, "trajectory record: %s %s", field, why);
}

static bool is_name(const char *text)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789_";
    return text[0] >= 'a' && text[0] <= 'z' && strspn(text, allowed) == strlen(text);
}

static bool check_name(const struct spot *spot, const struct record_trace *trace)
{
    const struct record_extra *column = &trace->columns[spot->i];
    if (!memchr(column->name, '\0', sizeof(column->name)) || !is_name(column->name))
        return refuse_at(spot, "name", REFUSAL_BAD_NAME, "is not of a to z, 0 to 9 and _, a letter first");
    for (size_t k = 0; k < spot->i; k++)
        if (strcmp(trace->columns[k].name, column->name) == 0)
            return refuse_at(spot, "name", REFUSAL_DUPLICATE_FIELD, "is given twice");
    if (!memchr(column->type, '\0', sizeof(column->type)) || record_type_size(column->type) == 0)
        return refuse_at(spot, "type", REFUSAL_WRONG_TYPE, "is not a known type of numbers");
    return true;
}

/* Bytes of one element; false: no row could be so large. */
static bool take_element_size(const struct record_extra *column, uint64_t *ret)
{
    *ret = record_type_size(column->type);
    for (uint32_t i = 0; i < column->shape.count && i < RECORD_DIMENSIONS_MAX; i++) {
        const uint32_t size = column->shape.sizes[i];
        if (size == 0 || size > RECORD_COLUMN_BYTES_MAX / *ret)
            return false;
        *ret *= size;
    }
    return column->shape.count <= RECORD_DIMENSIONS_MAX;
}

/* How many elements the rows have together. */
static bool take_count(const struct spot *spot, const struct record_extra *column, uint64_t *ret)
{
    *ret = column->rows;
    if (!column->counts.data)
        return true;
    if (column->counts.bytes != (size_t)column->rows * sizeof(uint32_t))
        return refuse_at(spot, "counts", REFUSAL_WRONG_TYPE, "is not one for each row");
    *ret = 0;
    for (uint32_t i = 0; i < column->rows; i++) {
        uint32_t count;
        memcpy(&count, (const char *)column->counts.data + i * sizeof(count), sizeof(count));
        *ret += count;
    }
    return true;
}

static bool check_shape(const struct spot *spot, const struct record_trace *trace, const struct record_extra *column)
{
    uint64_t size, count;
    if (column->offset > trace->token_count || column->rows > trace->token_count - column->offset)
        return refuse_at(spot, "rows", REFUSAL_TOO_LARGE, "go beyond the trace's tokens");
    if (!take_element_size(column, &size))
        return refuse_at(spot, "shape", REFUSAL_WRONG_TYPE, "is not a shape that a row can have");
    if (!take_count(spot, column, &count))
        return false;
    return (count <= RECORD_COLUMN_BYTES_MAX / size && count * size == column->values.bytes) ||
           refuse_at(spot, "values", REFUSAL_WRONG_TYPE, "are not as many as rows and shape say");
}

static bool all_finite(const struct record_extra *column)
{
    enum { EXPONENT_F16 = 0x7c00 };
    const char *data = column->values.data;
    const bool is_half = strcmp(column->type, "f16") == 0;
    if (!is_half && strcmp(column->type, "f32") != 0)
        return true;
    for (size_t at = 0; at < column->values.bytes; at += is_half ? 2 : 4) {
        uint16_t half;
        float value = 0;
        memcpy(&half, data + at, sizeof(half));
        memcpy(&value, data + at, is_half ? 0 : sizeof(value));
        if (is_half ? (half & EXPONENT_F16) == EXPONENT_F16 : !isfinite(value))
            return false;
    }
    return true;
}

bool record_columns_check(const struct record_trace *trace, const char *path, struct refusal *no)
{
    for (size_t i = 0; i < trace->column_count; i++) {
        const struct spot spot = {path, i, no};
        if (!check_name(&spot, trace) || !check_shape(&spot, trace, &trace->columns[i]))
            return false;
        if (!all_finite(&trace->columns[i]))
            return refuse_at(&spot, "values", REFUSAL_NOT_FINITE, "hold a number that is not finite");
    }
    return true;
}

/* ---- making --------------------------------------------------------------------------- */

static bool copy_values(struct record_values *to, const struct record_values *from)
{
    *to = (struct record_values){.bytes = from->bytes};
    if (!from->data)
        return true;
    to->data = malloc(from->bytes ? from->bytes : 1);
    if (to->data && from->bytes)
        memcpy(to->data, from->data, from->bytes);
    return to->data;
}

bool record_add_column(struct record_trace *trace, const struct record_extra *column)
{
    struct record_extra *added = record_list_add(&trace->columns, &trace->column_count, &trace->column_capacity,
                                                 sizeof(*added), RECORD_COLUMNS_MAX);
    if (!added)
        return false;
    *added = *column;
    if (copy_values(&added->values, &column->values) && copy_values(&added->counts, &column->counts))
        return true;
    free(added->values.data);
    trace->column_count--;
    return false;
}
