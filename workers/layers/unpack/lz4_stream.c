#include "workers/layers/unpack/lz4_stream.h"

#include <errno.h>
#include <fcntl.h>
#include <lz4frame.h>
#include <string.h>

#include "common/base/cleanup.h"

enum { CHUNK_BYTES = 256 * 1024 };

static int write_all(int fd, const uint8_t *data, size_t len)
{
    while (len) {
        ssize_t wrote = write(fd, data, len);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote < 0)
            return -errno;
        data += wrote;
        len -= (size_t)wrote;
    }
    return 0;
}

/* ---- packing ------------------------------------------------------------------------------ */

/* What has gathered in memory goes to the file, which is made at first use. */
static int spill(struct lz4_pack *pack, struct fail *fail)
{
    if (pack->fd < 0 && (pack->fd = mkostemp(pack->path, O_CLOEXEC)) < 0)
        return fail_set(fail, -errno, "cannot make %s: %s", pack->path, strerror(errno));
    int code = write_all(pack->fd, pack->out.data, pack->out.len);
    if (code < 0)
        return fail_set(fail, code, "cannot write %s: %s", pack->path, strerror(-code));
    pack->out.len = 0;
    return 0;
}

/* `wrote` bytes (or LZ4's error) were put behind out.len. */
static int take_written(struct lz4_pack *pack, size_t wrote, struct fail *fail)
{
    if (LZ4F_isError(wrote))
        return fail_set(fail, -EIO, "lz4: %s", LZ4F_getErrorName(wrote));
    digest_add(pack->digesting, slice_of(pack->out.data + pack->out.len, wrote));
    pack->out.len += wrote;
    return pack->out.len > pack->inline_max || pack->fd >= 0 ? spill(pack, fail) : 0;
}

/* A whole chunk but at the end, however it comes: the same tar is always the same frame. */
static ssize_t read_chunk(int tar, uint8_t *chunk)
{
    size_t len = 0;
    while (len < CHUNK_BYTES) {
        ssize_t got = read(tar, chunk + len, CHUNK_BYTES - len);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        len += (size_t)got;
    }
    return (ssize_t)len;
}

static int pack_chunks(struct lz4_pack *pack, LZ4F_cctx *lz4, uint8_t *chunk, const atomic_bool *stop,
                       struct fail *fail)
{
    const LZ4F_preferences_t how = {.frameInfo = {.blockSizeID = LZ4F_max256KB}};
    size_t bound = LZ4F_compressBound(CHUNK_BYTES, &how);
    uint8_t *at = buffer_reserve(&pack->out, bound + LZ4F_HEADER_SIZE_MAX);
    if (!at)
        return fail_memory(fail);
    int code = take_written(pack, LZ4F_compressBegin(lz4, at, LZ4F_HEADER_SIZE_MAX, &how), fail);
    while (code == 0) {
        ssize_t got = read_chunk(pack->tar, chunk);
        if (got < 0)
            return fail_set(fail, -errno, "cannot read the packed files: %s", strerror(errno));
        if (atomic_load(stop))
            return fail_set(fail, -ECANCELED, "stopped");
        if (!(at = buffer_reserve(&pack->out, bound)))
            return fail_memory(fail);
        if (got == 0)
            return take_written(pack, LZ4F_compressEnd(lz4, at, bound, NULL), fail);
        code = take_written(pack, LZ4F_compressUpdate(lz4, at, bound, chunk, (size_t)got, NULL), fail);
        pack->size += (uint64_t)got;
    }
    return code;
}

int lz4_pack(struct lz4_pack *pack, const atomic_bool *stop, struct fail *fail)
{
    LZ4F_cctx *lz4 = NULL;
    AUTO_FREE uint8_t *chunk = malloc(CHUNK_BYTES);
    pack->fd = -1;
    pack->size = 0;
    pack->digesting = digest_begin();
    int code = -ENOMEM;
    if (chunk && pack->digesting && !LZ4F_isError(LZ4F_createCompressionContext(&lz4, LZ4F_VERSION)))
        code = pack_chunks(pack, lz4, chunk, stop, fail);
    LZ4F_freeCompressionContext(lz4);
    if (code == 0 && !digest_end(&pack->digesting, pack->digest))
        code = -ENOMEM;
    digest_drop(&pack->digesting);
    if (code == -ENOMEM)
        fail_set(fail, code, "out of memory");
    if (code < 0)
        lz4_discard(pack);
    return code;
}

void lz4_discard(struct lz4_pack *pack)
{
    buffer_finish(&pack->out);
    if (pack->fd < 0)
        return;
    unlink(pack->path);
    close(pack->fd);
    pack->fd = -1;
}

/* ---- reading ------------------------------------------------------------------------------ */

struct lz4_reader {
    LZ4F_dctx *lz4;
    int fd;
    struct slice bytes; /* not yet decompressed; in `in` when read from fd */
    uint64_t size, size_max;
    bool ended;
    struct digest *digest; /* of what came from fd, or of `bytes` */
    uint8_t in[CHUNK_BYTES], out[CHUNK_BYTES];
};

struct lz4_reader *lz4_open(int fd, struct slice bytes, uint64_t size_max)
{
    AUTO_FREE struct lz4_reader *reader = calloc(1, sizeof(*reader));
    if (!reader || !(reader->digest = digest_begin()))
        return NULL;
    if (LZ4F_isError(LZ4F_createDecompressionContext(&reader->lz4, LZ4F_VERSION))) {
        digest_drop(&reader->digest);
        return NULL;
    }
    reader->fd = fd;
    reader->bytes = fd < 0 ? bytes : slice_of(NULL, 0);
    reader->size_max = size_max;
    digest_add(reader->digest, reader->bytes);
    return take_ptr(&reader);
}

void lz4_close(struct lz4_reader **reader)
{
    if (!*reader)
        return;
    LZ4F_freeDecompressionContext((*reader)->lz4);
    digest_drop(&(*reader)->digest);
    free(*reader);
    *reader = NULL;
}

static int refill(struct lz4_reader *reader, struct fail *fail)
{
    if (reader->bytes.len || reader->fd < 0)
        return 0;
    ssize_t got = read(reader->fd, reader->in, sizeof(reader->in));
    if (got < 0)
        return fail_set(fail, -errno, "cannot read the layer: %s", strerror(errno));
    reader->bytes = slice_of(reader->in, (size_t)got);
    digest_add(reader->digest, reader->bytes);
    return 0;
}

/* One step; *ret may stay empty before the end. */
static int decompress(struct lz4_reader *reader, struct slice *ret, struct fail *fail)
{
    size_t wrote = sizeof(reader->out), took = reader->bytes.len;
    size_t hint = LZ4F_decompress(reader->lz4, reader->out, &wrote, reader->bytes.data, &took, NULL);
    if (LZ4F_isError(hint))
        return fail_set(fail, -EBADMSG, "the layer is damaged: lz4: %s", LZ4F_getErrorName(hint));
    reader->bytes.data += took;
    reader->bytes.len -= took;
    reader->size += wrote;
    reader->ended = hint == 0;
    *ret = slice_of(reader->out, wrote);
    return reader->size > reader->size_max ? fail_set(fail, -EFBIG, "the layer unpacks to too much") : 0;
}

int lz4_read(struct lz4_reader *reader, struct slice *ret, struct fail *fail)
{
    *ret = slice_of(NULL, 0);
    while (ret->len == 0) {
        int code = refill(reader, fail);
        if (code < 0)
            return code;
        bool is_end = reader->bytes.len == 0;
        if (reader->ended)
            return is_end ? 0 : fail_set(fail, -EBADMSG, "the layer is damaged: bytes after its end");
        if (is_end)
            return fail_set(fail, -EBADMSG, "the layer is damaged: cut short");
        code = decompress(reader, ret, fail);
        if (code < 0)
            return code;
    }
    return 0;
}

int lz4_digest(struct lz4_reader *reader, char ret[DIGEST_SIZE], struct fail *fail)
{
    int code = 0;
    do {
        reader->bytes.len = 0;
        code = refill(reader, fail);
    } while (code == 0 && reader->bytes.len);
    if (code < 0)
        return code;
    return digest_end(&reader->digest, ret) ? 0 : fail_memory(fail);
}
