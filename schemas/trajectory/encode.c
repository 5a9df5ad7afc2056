#include <lz4.h>

#include "common/base/cleanup.h"
#include "schemas/messages/reader.h"
#include "schemas/trajectory/trajectory_wire.h"

static bool encode_map(struct buffer *out, enum record_map_id id, const void *base);

/* LZ4 where that makes it smaller, or else as it is; `scratch` holds what was compressed. */
static bool make_column(const void *values, size_t length, struct buffer *scratch, struct record_column *ret)
{
    *ret = (struct record_column){"raw", (uint32_t)length, slice_of(values, length)};
    if (length == 0)
        return true;
    int room = LZ4_compressBound((int)length);
    uint8_t *packed = buffer_reserve(scratch, (size_t)room);
    if (!packed)
        return false;
    int len = LZ4_compress_default(values, (char *)packed, (int)length, room);
    if (len > 0 && (size_t)len < length)
        *ret = (struct record_column){"lz4", (uint32_t)length, slice_of(packed, (size_t)len)};
    return true;
}

static bool encode_values(struct buffer *out, const struct record_values *values)
{
    AUTO_BUFFER scratch = {0};
    struct record_column column;
    return make_column(values->data, values->bytes, &scratch, &column) && encode_map(out, MAP_record_column, &column);
}

static void encode_shape(msgpack_packer *packer, const struct record_shape *shape)
{
    msgpack_pack_array(packer, shape->count);
    for (uint32_t i = 0; i < shape->count; i++)
        msgpack_pack_uint32(packer, shape->sizes[i]);
}

static bool encode_column(struct buffer *out, const struct record_field *field, const struct record_trace *trace)
{
    AUTO_BUFFER scratch = {0};
    struct record_column column;
    const void *values = *(void *const *)((const char *)trace + field->offset);
    return make_column(values, trace->token_count * field->size, &scratch, &column) &&
           encode_map(out, MAP_record_column, &column);
}

static bool encode_list(struct buffer *out, const struct record_field *field, const void *base)
{
    msgpack_packer packer;
    packer_init(&packer, out);
    const char *elements = *(char *const *)((const char *)base + field->offset);
    size_t count = *(const size_t *)((const char *)base + field->count_offset);
    msgpack_pack_array(&packer, count);
    for (size_t i = 0; i < count; i++)
        if (!encode_map(out, field->element, elements + i * record_map_get(field->element)->size))
            return false;
    return true;
}

static bool encode_value(struct buffer *out, const struct record_field *field, const void *base)
{
    const void *value = (const char *)base + field->offset;
    msgpack_packer packer;
    packer_init(&packer, out);
    switch (field->type) {
    case RECORD_TEXT:
    case RECORD_OPTIONAL_TEXT: packer_str(&packer, slice_from_str(value)); break;
    case RECORD_STRING:
    case RECORD_OPTIONAL_STRING: packer_str(&packer, slice_from_str(*(char *const *)value)); break;
    case RECORD_BIN: packer_bin(&packer, *(const struct slice *)value); break;
    case RECORD_U32: msgpack_pack_uint32(&packer, *(const uint32_t *)value); break;
    case RECORD_U64: msgpack_pack_uint64(&packer, *(const uint64_t *)value); break;
    case RECORD_I32: msgpack_pack_int32(&packer, *(const int32_t *)value); break;
    case RECORD_REAL: msgpack_pack_double(&packer, *(const double *)value); break;
    case RECORD_OPTIONAL_REAL: msgpack_pack_double(&packer, ((const struct record_seconds *)value)->value); break;
    case RECORD_BOOL: *(const bool *)value ? msgpack_pack_true(&packer) : msgpack_pack_false(&packer); break;
    case RECORD_OPTIONAL_I64: msgpack_pack_int64(&packer, *(const int64_t *)value); break;
    case RECORD_SHAPE: encode_shape(&packer, value); break;
    case RECORD_VALUES:
    case RECORD_OPTIONAL_VALUES: return encode_values(out, value);
    case RECORD_COLUMN: return encode_column(out, field, base);
    case RECORD_LIST:
    case RECORD_OPTIONAL_LIST: return encode_list(out, field, base);
    case RECORD_OPTIONAL: return encode_map(out, field->element, *(void *const *)value);
    }
    return !out->failed;
}

static bool is_absent(const struct record_field *field, const void *base)
{
    const void *value = (const char *)base + field->offset;
    if (field->type == RECORD_OPTIONAL_TEXT)
        return !*(const char *)value;
    if (field->type == RECORD_OPTIONAL_LIST)
        return *(const size_t *)((const char *)base + field->count_offset) == 0;
    if (field->type == RECORD_OPTIONAL_REAL)
        return !((const struct record_seconds *)value)->is_known;
    if (field->type == RECORD_OPTIONAL_I64)
        return *(const int64_t *)value < 0;
    if (field->type == RECORD_OPTIONAL_VALUES)
        return !((const struct record_values *)value)->data;
    return record_field_is_optional(field) && !*(void *const *)value;
}

static bool encode_map(struct buffer *out, enum record_map_id id, const void *base)
{
    const struct record_map *map = record_map_get(id);
    size_t pairs = 0;
    for (size_t i = 0; i < map->field_count; i++)
        pairs += !is_absent(&map->fields[i], base);
    msgpack_packer packer;
    packer_init(&packer, out);
    msgpack_pack_map(&packer, pairs);
    for (size_t i = 0; i < map->field_count; i++) {
        if (is_absent(&map->fields[i], base))
            continue;
        packer_str(&packer, slice_from_str(map->fields[i].key));
        if (!encode_value(out, &map->fields[i], base))
            return false;
    }
    return !out->failed;
}

bool record_map_encode(struct buffer *out, enum record_map_id id, const void *base)
{
    return encode_map(out, id, base);
}

bool record_encode(const struct record *record, struct buffer *out, struct refusal *no)
{
    size_t start = out->len;
    if (!record_check(record, no))
        return false;
    bool encoded = encode_map(out, MAP_record, record);
    size_t len = out->len - start;
    if (encoded && len <= RECORD_BYTES_MAX)
        return true;
    out->len = start;
    if (!encoded)
        return refuse(no, REFUSAL_TOO_LARGE, "", "trajectory record: out of memory");
    return refuse(no, REFUSAL_TOO_LARGE, "", "trajectory record: %zu bytes; the maximum is %d", len, RECORD_BYTES_MAX);
}
