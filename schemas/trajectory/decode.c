#include <lz4.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/utf8.h"
#include "schemas/messages/reader.h"
#include "schemas/trajectory/trajectory_wire.h"

/* Four maps deep at most, as the tables are; what is counted is counted over all traces. */
struct decoder {
    struct reader in;
    struct refusal *no;
    const char *what; /* is read, for sentences */
    uint32_t version; /* of the record; 0: not read yet */
    char path[128];   /* where we are: "traces[0].turns[3]" */
    size_t tokens, turns, column_bytes;
};

static bool decode_map(struct decoder *decoder, enum record_map_id id, void *base);

static size_t __attribute__((format(printf, 2, 3))) enter(struct decoder *decoder, const char *format, ...)
{
    size_t len = strlen(decoder->path);
    va_list args;
    va_start(args, format);
    vsnprintf(decoder->path + len, sizeof(decoder->path) - len, format, args);
    va_end(args);
    return len;
}

static void leave(struct decoder *decoder, size_t len) { decoder->path[len] = '\0'; }

static bool refuse_here(const struct decoder *decoder, enum refusal_reason reason, const char *why)
{
    return refuse(decoder->no, reason, decoder->path, "%s: %s %s", decoder->what,
                  decoder->path[0] ? decoder->path : "it", why);
}

/* ---- values ----------------------------------------------------------------------------- */

static bool decode_text(struct decoder *decoder, size_t room, struct slice *ret)
{
    if (!reader_str(&decoder->in, ret))
        return refuse_here(decoder, REFUSAL_WRONG_TYPE, "is not a string or is cut short");
    if (!utf8_is_valid(*ret))
        return refuse_here(decoder, REFUSAL_NOT_UTF8, "is not UTF-8 text");
    return ret->len < room || refuse_here(decoder, REFUSAL_TOO_LARGE, "is too long");
}

static bool decode_fixed_text(struct decoder *decoder, size_t room, char *ret)
{
    struct slice text;
    if (!decode_text(decoder, room, &text))
        return false;
    memcpy(ret, text.data, text.len);
    ret[text.len] = '\0';
    return true;
}

static bool decode_string(struct decoder *decoder, char **ret)
{
    struct slice text;
    if (!decode_text(decoder, RECORD_BYTES_MAX, &text))
        return false;
    *ret = strndup((const char *)text.data, text.len);
    return *ret || refuse_here(decoder, REFUSAL_TOO_LARGE, "cannot be held: out of memory");
}

static bool decode_bin(struct decoder *decoder, struct slice *ret)
{
    return reader_bin(&decoder->in, ret) || refuse_here(decoder, REFUSAL_WRONG_TYPE, "is not a bin or is cut short");
}

static bool decode_real(struct decoder *decoder, double *ret)
{
    return reader_real(&decoder->in, ret) || refuse_here(decoder, REFUSAL_WRONG_TYPE, "is not a float or is cut short");
}

static bool decode_u32(struct decoder *decoder, uint32_t *ret)
{
    uint64_t value;
    if (!reader_uint(&decoder->in, &value))
        return refuse_here(decoder, REFUSAL_WRONG_TYPE, "is not a number from 0 or is cut short");
    *ret = (uint32_t)value;
    return value <= UINT32_MAX || refuse_here(decoder, REFUSAL_TOO_LARGE, "is above 32 bits");
}

static bool decode_u64(struct decoder *decoder, uint64_t *ret)
{
    return reader_uint(&decoder->in, ret) ||
           refuse_here(decoder, REFUSAL_WRONG_TYPE, "is not a number from 0 or is cut short");
}

static bool decode_optional_real(struct decoder *decoder, struct record_seconds *ret)
{
    ret->is_known = true;
    return decode_real(decoder, &ret->value);
}

static bool decode_i32(struct decoder *decoder, int32_t *ret)
{
    msgpack_object object;
    if (!reader_scalar(&decoder->in, &object) ||
        (object.type != MSGPACK_OBJECT_POSITIVE_INTEGER && object.type != MSGPACK_OBJECT_NEGATIVE_INTEGER))
        return refuse_here(decoder, REFUSAL_WRONG_TYPE, "is not a whole number or is cut short");
    *ret = (int32_t)object.via.i64;
    return *ret == object.via.i64 || refuse_here(decoder, REFUSAL_TOO_LARGE, "is beyond 32 bits");
}

static bool decode_bool(struct decoder *decoder, bool *ret)
{
    msgpack_object object;
    if (!reader_scalar(&decoder->in, &object) || object.type != MSGPACK_OBJECT_BOOLEAN)
        return refuse_here(decoder, REFUSAL_WRONG_TYPE, "is not true or false or is cut short");
    *ret = object.via.boolean;
    return true;
}

static bool decode_optional_i64(struct decoder *decoder, int64_t *ret)
{
    uint64_t value;
    if (!decode_u64(decoder, &value))
        return false;
    *ret = (int64_t)value;
    return value <= INT64_MAX || refuse_here(decoder, REFUSAL_TOO_LARGE, "is above 63 bits");
}

static bool decode_shape(struct decoder *decoder, struct record_shape *ret)
{
    uint32_t count;
    if (!reader_array(&decoder->in, &count))
        return refuse_here(decoder, REFUSAL_WRONG_TYPE, "is not an array or is cut short");
    if (count > RECORD_DIMENSIONS_MAX)
        return refuse_here(decoder, REFUSAL_TOO_LARGE, "has more dimensions than a row may");
    for (ret->count = 0; ret->count < count; ret->count++)
        if (!decode_u32(decoder, &ret->sizes[ret->count]))
            return false;
    return true;
}

/* ---- columns ------------------------------------------------------------------------------ */

/* The first column of a trace says how many tokens it has; the others must agree. */
static bool count_tokens(struct decoder *decoder, struct record_trace *trace, size_t count)
{
    if (trace->token_ids || trace->mask || trace->logprobs)
        return count == trace->token_count ||
               refuse_here(decoder, REFUSAL_WRONG_TYPE, "is not as long as the trace's others");
    if (count > RECORD_TOKENS_MAX - decoder->tokens)
        return refuse_here(decoder, REFUSAL_TOO_LARGE, "holds more tokens than a record may");
    decoder->tokens += count;
    trace->token_count = trace->token_capacity = count;
    return true;
}

/* No LZ4 block grows more than 255 times: a length beyond that is a lie, and nothing is allocated. */
static bool check_column(struct decoder *decoder, const struct record_column *column, size_t size)
{
    bool raw = strcmp(column->codec, "raw") == 0;
    if (!raw && strcmp(column->codec, "lz4") != 0)
        return refuse_here(decoder, REFUSAL_WRONG_TYPE, "has an unknown codec");
    if (column->length % size)
        return refuse_here(decoder, REFUSAL_WRONG_TYPE, "is not a whole number of values");
    if (raw ? column->length != column->data.len : column->length / 255 > column->data.len)
        return refuse_here(decoder, REFUSAL_MALFORMED, "does not have the length it says");
    return true;
}

static bool unpack(const struct record_column *column, void *values)
{
    if (strcmp(column->codec, "raw") == 0) {
        memcpy(values, column->data.data, column->length);
        return true;
    }
    return column->data.len <= INT32_MAX && column->length <= INT32_MAX &&
           LZ4_decompress_safe((const char *)column->data.data, values, (int)column->data.len, (int)column->length) ==
               (int)column->length;
}

static bool decode_column(struct decoder *decoder, const struct record_field *field, struct record_trace *trace)
{
    struct record_column column = {0};
    if (!decode_map(decoder, MAP_record_column, &column) || !check_column(decoder, &column, field->size) ||
        !count_tokens(decoder, trace, column.length / field->size))
        return false;
    void **values = (void **)((char *)trace + field->offset);
    *values = malloc(column.length ? column.length : 1);
    if (!*values)
        return refuse_here(decoder, REFUSAL_TOO_LARGE, "cannot be held: out of memory");
    return unpack(&column, *values) || refuse_here(decoder, REFUSAL_MALFORMED, "is damaged LZ4");
}

/* Of a column more: its rows are counted once all of it is read (columns.c). */
static bool decode_values(struct decoder *decoder, struct record_values *ret)
{
    struct record_column column = {0};
    if (!decode_map(decoder, MAP_record_column, &column) || !check_column(decoder, &column, 1))
        return false;
    if (column.length > RECORD_COLUMN_BYTES_MAX - decoder->column_bytes)
        return refuse_here(decoder, REFUSAL_TOO_LARGE, "holds more than all columns together may");
    decoder->column_bytes += column.length;
    ret->data = malloc(column.length ? column.length : 1);
    ret->bytes = column.length;
    if (!ret->data)
        return refuse_here(decoder, REFUSAL_TOO_LARGE, "cannot be held: out of memory");
    return unpack(&column, ret->data) || refuse_here(decoder, REFUSAL_MALFORMED, "is damaged LZ4");
}

/* ---- lists and maps ------------------------------------------------------------------------- */

static bool decode_list(struct decoder *decoder, const struct record_field *field, void *base)
{
    uint32_t count;
    if (!reader_array(&decoder->in, &count))
        return refuse_here(decoder, REFUSAL_WRONG_TYPE, "is not an array or is cut short");
    bool is_turns = field->element == MAP_record_turn;
    if (count > field->max - (is_turns ? decoder->turns : 0))
        return refuse_here(decoder, REFUSAL_TOO_LARGE, "has more elements than a record may");
    decoder->turns += is_turns ? count : 0;
    size_t size = record_map_get(field->element)->size;
    for (uint32_t i = 0; i < count; i++) {
        void *element = record_list_add((char *)base + field->offset, (size_t *)((char *)base + field->count_offset),
                                        (size_t *)((char *)base + field->capacity_offset), size, field->max);
        if (!element)
            return refuse_here(decoder, REFUSAL_TOO_LARGE, "cannot be held: out of memory");
        size_t outside = enter(decoder, "[%u]", i);
        if (!decode_map(decoder, field->element, element))
            return false;
        leave(decoder, outside);
    }
    return true;
}

/* What an absent key means, where that is not all zero bytes. */
static void begin_map(enum record_map_id id, void *base)
{
    if (id == MAP_record_sampling)
        ((struct record_sampling *)base)->seed = -1;
}

/* The decoder refuses a key given twice, so there is nothing here yet. */
static bool decode_optional(struct decoder *decoder, const struct record_field *field, void *ret)
{
    void *map = calloc(1, record_map_get(field->element)->size);
    *(void **)ret = map;
    if (!map)
        return refuse_here(decoder, REFUSAL_TOO_LARGE, "cannot be held: out of memory");
    begin_map(field->element, map);
    return decode_map(decoder, field->element, map);
}

static bool decode_value(struct decoder *decoder, const struct record_field *field, void *base)
{
    void *value = (char *)base + field->offset;
    switch (field->type) {
    case RECORD_TEXT:
    case RECORD_OPTIONAL_TEXT: return decode_fixed_text(decoder, field->size, value);
    case RECORD_STRING:
    case RECORD_OPTIONAL_STRING: return decode_string(decoder, value);
    case RECORD_BIN: return decode_bin(decoder, value);
    case RECORD_U32: return decode_u32(decoder, value);
    case RECORD_U64: return decode_u64(decoder, value);
    case RECORD_I32: return decode_i32(decoder, value);
    case RECORD_REAL: return decode_real(decoder, value);
    case RECORD_OPTIONAL_REAL: return decode_optional_real(decoder, value);
    case RECORD_BOOL: return decode_bool(decoder, value);
    case RECORD_OPTIONAL_I64: return decode_optional_i64(decoder, value);
    case RECORD_SHAPE: return decode_shape(decoder, value);
    case RECORD_VALUES:
    case RECORD_OPTIONAL_VALUES: return decode_values(decoder, value);
    case RECORD_COLUMN: return decode_column(decoder, field, base);
    case RECORD_LIST:
    case RECORD_OPTIONAL_LIST: return decode_list(decoder, field, base);
    case RECORD_OPTIONAL: return decode_optional(decoder, field, value);
    }
    return false;
}

static const struct record_field *find_field(const struct decoder *decoder, const struct record_map *map,
                                             struct slice key)
{
    for (size_t i = 0; i < map->field_count; i++)
        if (slice_is(key, map->fields[i].key))
            return map->fields[i].since <= decoder->version ? &map->fields[i] : NULL;
    return NULL;
}

/* Only the version can be read before it is known: the first key of all, and `record` its map. */
static bool learn_version(struct decoder *decoder, const struct record *record)
{
    if (record->version < 1)
        return refuse_here(decoder, REFUSAL_TOO_SMALL, "is not one that is known here");
    if (record->version > RECORD_VERSION)
        return refuse_here(decoder, REFUSAL_TOO_LARGE, "is not one that is known here");
    decoder->version = record->version;
    return true;
}

static bool refuse_key(const struct decoder *decoder)
{
    return decoder->version ? refuse_here(decoder, REFUSAL_UNKNOWN_FIELD, "has a key that is not known here")
                            : refuse_here(decoder, REFUSAL_MISSING_FIELD, "does not begin with its version");
}

static bool decode_pair(struct decoder *decoder, const struct record_map *map, uint32_t *seen, void *base)
{
    struct slice key;
    if (!reader_str(&decoder->in, &key))
        return refuse_here(decoder, REFUSAL_MALFORMED, "has a key that cannot be read");
    const struct record_field *field = find_field(decoder, map, key);
    if (!field)
        return refuse_key(decoder);
    uint32_t bit = 1u << (field - map->fields);
    size_t outside = enter(decoder, "%s%s", decoder->path[0] ? "." : "", field->key);
    if (*seen & bit)
        return refuse_here(decoder, REFUSAL_DUPLICATE_FIELD, "is given twice");
    *seen |= bit;
    if (!decode_value(decoder, field, base))
        return false;
    if (decoder->version == 0 && !learn_version(decoder, base))
        return false;
    leave(decoder, outside);
    return true;
}

static bool is_missing(const struct decoder *decoder, const struct record_field *field, bool seen)
{
    return !seen && !record_field_is_optional(field) && field->since <= decoder->version;
}

static bool decode_map(struct decoder *decoder, enum record_map_id id, void *base)
{
    const struct record_map *map = record_map_get(id);
    uint32_t pairs, seen = 0;
    if (!reader_map(&decoder->in, &pairs))
        return refuse_here(decoder, REFUSAL_MALFORMED, "is not a map or is cut short");
    for (uint32_t i = 0; i < pairs; i++)
        if (!decode_pair(decoder, map, &seen, base))
            return false;
    for (size_t i = 0; i < map->field_count; i++)
        if (is_missing(decoder, &map->fields[i], seen & 1u << i)) {
            enter(decoder, "%s%s", decoder->path[0] ? "." : "", map->fields[i].key);
            return refuse_here(decoder, REFUSAL_MISSING_FIELD, "is missing");
        }
    return true;
}

/* What was sampled was said behind all that was given: as many replies as there are turns of the assistant's. */
static void mark_sampled(struct record *record)
{
    uint64_t left = record_sampled(record).turns;
    for (size_t i = record->message_count; i > 0 && left > 0; i--) {
        struct record_message *message = &record->messages[i - 1];
        message->sampled = strcmp(message->role, "assistant") == 0;
        left -= message->sampled;
    }
}

/* What later versions added and is neither optional nor empty where it is unknown. */
static void upgrade(struct record *record)
{
    if (record->version < 4)
        mark_sampled(record);
    for (size_t i = 0; record->version < 2 && i < record->trace_count; i++)
        memcpy(record->traces[i].template_digest, record->template_digest, sizeof(record->template_digest));
    record->version = RECORD_VERSION;
}

bool record_map_decode(struct slice bytes, enum record_map_id id, uint32_t version, const char *what, void *base,
                       struct refusal *no)
{
    struct decoder decoder = {.in = {bytes, 0}, .no = no, .what = what, .version = version};
    return decode_map(&decoder, id, base) &&
           (!reader_left(&decoder.in) || refuse_here(&decoder, REFUSAL_MALFORMED, "is followed by stray bytes"));
}

bool record_decode(struct slice bytes, struct record *ret, struct refusal *no)
{
    static const char what[] = "trajectory record";
    record_init(ret);
    if (bytes.len > RECORD_BYTES_MAX)
        return refuse(no, REFUSAL_TOO_LARGE, "", "%s: it is longer than a record may be", what);
    if (!record_map_decode(bytes, MAP_record, 0, what, ret, no))
        return false;
    upgrade(ret);
    return record_check(ret, no);
}
