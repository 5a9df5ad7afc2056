#include "common/http/coding.h"

#include <errno.h>
#include <limits.h>
#include <strings.h>
#include <zlib.h>

#include "common/base/cleanup.h"
#include "common/base/text.h"

enum {
    STEP = 256 << 10,               /* bytes of what it was, at a time */
    EITHER_HEADER = MAX_WBITS + 32, /* of gzip or of zlib */
    NO_HEADER = -MAX_WBITS          /* some clients' deflate */
};

enum coding coding_of(const char *header)
{
    const struct slice word = text_trim(slice_from_str(header ? header : ""));
    static const struct {
        const char *word;
        enum coding coding;
    } words[] = {{"", CODING_NONE},
                 {"identity", CODING_NONE},
                 {"gzip", CODING_GZIP},
                 {"x-gzip", CODING_GZIP},
                 {"deflate", CODING_DEFLATE}};
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        if (word.len == strlen(words[i].word) && strncasecmp((const char *)word.data, words[i].word, word.len) == 0)
            return words[i].coding;
    return CODING_OTHER;
}

/* One more piece of what it was. */
static int undo_step(z_stream *stream, size_t max, struct buffer *out, struct fail *fail)
{
    uint8_t *room = buffer_reserve(out, STEP);
    if (!room)
        return fail_memory(fail);
    stream->next_out = room;
    stream->avail_out = STEP;
    const int code = inflate(stream, Z_NO_FLUSH);
    out->len += STEP - stream->avail_out;
    if (code == Z_MEM_ERROR)
        return fail_memory(fail);
    if (code != Z_OK && code != Z_STREAM_END)
        return fail_set(fail, -EINVAL, "Content-Encoding: the body is not so encoded: %s",
                        stream->msg ? stream->msg : "it ends too soon");
    return out->len > max ? fail_set(fail, -E2BIG, "Content-Encoding: the body was larger than %zu MiB", max >> 20)
                          : code;
}

/* To its end; gzip may have several members in a row. */
static int undo(z_stream *stream, bool has_members, size_t max, struct buffer *out, struct fail *fail)
{
    int code = Z_OK;
    while (code == Z_OK || (code == Z_STREAM_END && has_members && stream->avail_in > 0)) {
        if (code == Z_STREAM_END)
            inflateReset(stream);
        code = undo_step(stream, max, out, fail);
    }
    if (code < 0)
        return code;
    return stream->avail_in == 0 ? 0
                                 : fail_set(fail, -EINVAL, "Content-Encoding: something follows what is so encoded");
}

/* A header of zlib's is a multiple of 31. */
static bool has_header(struct slice body)
{
    return body.len >= 2 && (body.data[0] & 0x0f) == Z_DEFLATED && (body.data[0] << 8 | body.data[1]) % 31 == 0;
}

int coding_undo(enum coding coding, struct buffer *body, size_t max, struct fail *fail)
{
    AUTO_BUFFER out = {0};
    if (coding == CODING_NONE)
        return 0;
    if (body->len > UINT_MAX)
        return fail_set(fail, -E2BIG, "the body is too large");
    z_stream stream = {.next_in = body->data, .avail_in = (unsigned)body->len};
    const bool is_bare = coding == CODING_DEFLATE && !has_header(buffer_peek(body));
    if (inflateInit2(&stream, is_bare ? NO_HEADER : EITHER_HEADER) != Z_OK)
        return fail_memory(fail);
    const int error = undo(&stream, coding == CODING_GZIP, max, &out, fail);
    inflateEnd(&stream);
    if (error < 0)
        return error;
    buffer_finish(body);
    *body = out;
    out = (struct buffer){0};
    return 0;
}
