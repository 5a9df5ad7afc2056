#include "schemas/messages/reader.h"

static bool is_container(uint8_t b) { return (b >= 0x80 && b <= 0x9f) || (b >= 0xdc && b <= 0xdf); }

/*
 * Heads 0xc0 to 0xdb (https://github.com/msgpack/msgpack/blob/master/spec.md): a number of so many
 * bytes, or a length of so many and then a body, whose length `fixed` is where the head says it.
 * An extension's body begins with its type. 0xc1 begins nothing.
 */
static const struct head {
    msgpack_object_type type;
    uint8_t bytes, fixed;
} heads[] = {
    {MSGPACK_OBJECT_NIL, 0, 0},
    {MSGPACK_OBJECT_ARRAY, 0, 0},
    {MSGPACK_OBJECT_BOOLEAN, 0, 0},
    {MSGPACK_OBJECT_BOOLEAN, 0, 0},
    {MSGPACK_OBJECT_BIN, 1, 0},
    {MSGPACK_OBJECT_BIN, 2, 0},
    {MSGPACK_OBJECT_BIN, 4, 0},
    {MSGPACK_OBJECT_EXT, 1, 0},
    {MSGPACK_OBJECT_EXT, 2, 0},
    {MSGPACK_OBJECT_EXT, 4, 0},
    {MSGPACK_OBJECT_FLOAT32, 4, 0},
    {MSGPACK_OBJECT_FLOAT64, 8, 0},
    {MSGPACK_OBJECT_POSITIVE_INTEGER, 1, 0},
    {MSGPACK_OBJECT_POSITIVE_INTEGER, 2, 0},
    {MSGPACK_OBJECT_POSITIVE_INTEGER, 4, 0},
    {MSGPACK_OBJECT_POSITIVE_INTEGER, 8, 0},
    {MSGPACK_OBJECT_NEGATIVE_INTEGER, 1, 0},
    {MSGPACK_OBJECT_NEGATIVE_INTEGER, 2, 0},
    {MSGPACK_OBJECT_NEGATIVE_INTEGER, 4, 0},
    {MSGPACK_OBJECT_NEGATIVE_INTEGER, 8, 0},
    {MSGPACK_OBJECT_EXT, 0, 1},
    {MSGPACK_OBJECT_EXT, 0, 2},
    {MSGPACK_OBJECT_EXT, 0, 4},
    {MSGPACK_OBJECT_EXT, 0, 8},
    {MSGPACK_OBJECT_EXT, 0, 16},
    {MSGPACK_OBJECT_STR, 1, 0},
    {MSGPACK_OBJECT_STR, 2, 0},
    {MSGPACK_OBJECT_STR, 4, 0},
};

/* The next `len` bytes; NULL: there are fewer. */
static const uint8_t *take(struct reader *reader, size_t len)
{
    if (reader_left(reader) < len)
        return NULL;
    const uint8_t *bytes = reader->bytes.data + reader->at;
    reader->at += len;
    return bytes;
}

static uint64_t join(const uint8_t *bytes, size_t count)
{
    uint64_t number = 0;
    for (size_t i = 0; i < count; i++)
        number = number << 8 | bytes[i];
    return number;
}

/* What is negative with so many bytes is so with eight. */
static void set_signed(uint64_t number, size_t bytes, msgpack_object *ret)
{
    unsigned unused = 64 - 8 * (unsigned)bytes;
    ret->via.i64 = (int64_t)(number << unused) >> unused;
    ret->type = ret->via.i64 < 0 ? MSGPACK_OBJECT_NEGATIVE_INTEGER : MSGPACK_OBJECT_POSITIVE_INTEGER;
}

static void set_real(uint64_t number, size_t bytes, msgpack_object *ret)
{
    uint32_t word = (uint32_t)number;
    float narrow;
    memcpy(&narrow, &word, sizeof(narrow));
    ret->via.f64 = narrow;
    if (bytes == 8)
        memcpy(&ret->via.f64, &number, sizeof(number));
}

static bool take_body(struct reader *reader, size_t len, msgpack_object *ret)
{
    bool is_ext = ret->type == MSGPACK_OBJECT_EXT;
    const uint8_t *body = take(reader, len + is_ext);
    if (!body)
        return false;
    if (is_ext) {
        ret->via.ext.type = (int8_t)body[0];
        ret->via.ext.ptr = (const char *)body + 1;
        ret->via.ext.size = (uint32_t)len;
    } else {
        ret->via.str.ptr = (const char *)body; /* via.bin is alike */
        ret->via.str.size = (uint32_t)len;
    }
    return true;
}

/* Of heads[]. */
static bool take_long(struct reader *reader, uint8_t byte, msgpack_object *ret)
{
    const struct head *head = &heads[byte - 0xc0];
    const uint8_t *bytes = take(reader, head->bytes);
    if (!bytes || head->type == MSGPACK_OBJECT_ARRAY)
        return false;
    uint64_t number = join(bytes, head->bytes);
    ret->type = head->type;
    switch (head->type) {
    case MSGPACK_OBJECT_NIL: return true;
    case MSGPACK_OBJECT_BOOLEAN: ret->via.boolean = byte & 1; return true;
    case MSGPACK_OBJECT_POSITIVE_INTEGER: ret->via.u64 = number; return true;
    case MSGPACK_OBJECT_NEGATIVE_INTEGER: set_signed(number, head->bytes, ret); return true;
    case MSGPACK_OBJECT_FLOAT32:
    case MSGPACK_OBJECT_FLOAT64: set_real(number, head->bytes, ret); return true;
    default: return take_body(reader, head->bytes ? number : head->fixed, ret);
    }
}

bool reader_scalar(struct reader *reader, msgpack_object *ret)
{
    if (reader_left(reader) == 0 || is_container(reader->bytes.data[reader->at]))
        return false;
    uint8_t byte = reader->bytes.data[reader->at++];
    if (byte >= 0xc0 && byte <= 0xdb)
        return take_long(reader, byte, ret);
    if (byte >= 0xa0 && byte < 0xc0) {
        ret->type = MSGPACK_OBJECT_STR;
        return take_body(reader, byte & 0x1f, ret);
    }
    set_signed(byte, 1, ret);
    return true;
}

/* Never NULL, so that an empty value can be copied like any other. */
static struct slice body_of(const char *ptr, size_t len) { return slice_of(len ? ptr : "", len); }

bool reader_str(struct reader *reader, struct slice *ret)
{
    msgpack_object object;
    if (!reader_scalar(reader, &object) || object.type != MSGPACK_OBJECT_STR)
        return false;
    *ret = body_of(object.via.str.ptr, object.via.str.size);
    return true;
}

bool reader_bin(struct reader *reader, struct slice *ret)
{
    msgpack_object object;
    if (!reader_scalar(reader, &object) || object.type != MSGPACK_OBJECT_BIN)
        return false;
    *ret = body_of(object.via.bin.ptr, object.via.bin.size);
    return true;
}

bool reader_uint(struct reader *reader, uint64_t *ret)
{
    msgpack_object object;
    if (!reader_scalar(reader, &object) || object.type != MSGPACK_OBJECT_POSITIVE_INTEGER)
        return false;
    *ret = object.via.u64;
    return true;
}

bool reader_real(struct reader *reader, double *ret)
{
    msgpack_object object;
    if (!reader_scalar(reader, &object) ||
        (object.type != MSGPACK_OBJECT_FLOAT64 && object.type != MSGPACK_OBJECT_FLOAT32))
        return false;
    *ret = object.via.f64;
    return true;
}

/* `fix` is a count's one-byte form, `wide` its 16-bit form; the 32-bit one comes after. */
static bool read_count(struct reader *reader, uint8_t fix, uint8_t wide, uint32_t *ret)
{
    const uint8_t *p = reader->bytes.data + reader->at;
    size_t left = reader_left(reader);
    if (left >= 1 && (p[0] & 0xf0) == fix) {
        *ret = p[0] & 0x0f;
        reader->at += 1;
    } else if (left >= 3 && p[0] == wide) {
        *ret = (uint32_t)join(p + 1, 2);
        reader->at += 3;
    } else if (left >= 5 && p[0] == wide + 1) {
        *ret = (uint32_t)join(p + 1, 4);
        reader->at += 5;
    } else {
        return false;
    }
    return true;
}

bool reader_array(struct reader *reader, uint32_t *ret_count) { return read_count(reader, 0x90, 0xdc, ret_count); }

bool reader_map(struct reader *reader, uint32_t *ret_pairs) { return read_count(reader, 0x80, 0xde, ret_pairs); }

static int write_buffer(void *data, const char *bytes, size_t len) { return buffer_append(data, bytes, len) ? 0 : -1; }

void packer_init(msgpack_packer *packer, struct buffer *out) { msgpack_packer_init(packer, out, write_buffer); }

void packer_str(msgpack_packer *packer, struct slice s)
{
    msgpack_pack_str(packer, s.len);
    msgpack_pack_str_body(packer, s.data ? (const char *)s.data : "", s.len);
}

void packer_bin(msgpack_packer *packer, struct slice body)
{
    msgpack_pack_bin(packer, body.len);
    msgpack_pack_bin_body(packer, body.data ? (const char *)body.data : "", body.len);
}
