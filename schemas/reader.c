#include "schemas/reader.h"

static bool is_container(uint8_t b)
{
    return (b >= 0x80 && b <= 0x9f) || (b >= 0xdc && b <= 0xdf);
}

bool reader_scalar(struct reader *reader, msgpack_object *ret)
{
    if (reader->at >= reader->bytes.len || is_container(reader->bytes.data[reader->at]))
        return false;
    msgpack_unpacked unpacked;
    msgpack_unpacked_init(&unpacked);
    msgpack_unpack_return got = msgpack_unpack_next(&unpacked, (const char *)reader->bytes.data,
                                                    reader->bytes.len, &reader->at);
    *ret = unpacked.data; /* scalars point into `bytes`, not into the zone */
    msgpack_unpacked_destroy(&unpacked);
    return got == MSGPACK_UNPACK_SUCCESS || got == MSGPACK_UNPACK_EXTRA_BYTES;
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
        *ret = (uint32_t)p[1] << 8 | p[2];
        reader->at += 3;
    } else if (left >= 5 && p[0] == wide + 1) {
        *ret = (uint32_t)p[1] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 8 | p[4];
        reader->at += 5;
    } else {
        return false;
    }
    return true;
}

bool reader_array(struct reader *reader, uint32_t *ret_count)
{
    return read_count(reader, 0x90, 0xdc, ret_count);
}

bool reader_map(struct reader *reader, uint32_t *ret_pairs)
{
    return read_count(reader, 0x80, 0xde, ret_pairs);
}

static int write_buffer(void *data, const char *bytes, size_t len)
{
    return buffer_append(data, bytes, len) ? 0 : -1;
}

void packer_init(msgpack_packer *packer, struct buffer *out)
{
    msgpack_packer_init(packer, out, write_buffer);
}

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
