#include <errno.h>
#include <sqfs/error.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "workers/images/rootfs/squashfs_inside.h"

static const char *const compressions[] = {"nothing", "gzip", "lzma", "lzo", "xz", "lz4", "zstd"};
static const char magic[4] = {'h', 's', 'q', 's'};

/* ---- the library's file ---------------------------------------------------------------------- */

static int read_at(sqfs_file_t *base, sqfs_u64 offset, void *data, size_t len)
{
    struct squashfs_file *file = (struct squashfs_file *)(void *)base;
    int code = image_source_read(&file->source, offset, data, len);
    if (code == -ENODATA)
        return SQFS_ERROR_OUT_OF_BOUNDS;
    if (code < 0 && !file->error)
        file->error = code;
    return code < 0 ? SQFS_ERROR_IO : 0;
}

static int write_never(sqfs_file_t *base, sqfs_u64 offset, const void *data, size_t len)
{
    (void)base, (void)offset, (void)data, (void)len;
    return SQFS_ERROR_UNSUPPORTED;
}

static int size_never(sqfs_file_t *base, sqfs_u64 size)
{
    (void)base, (void)size;
    return SQFS_ERROR_UNSUPPORTED;
}

static sqfs_u64 tell_size(const sqfs_file_t *base)
{
    return ((const struct squashfs_file *)(const void *)base)->source.size;
}

static void destroy_never(sqfs_object_t *object) { (void)object; /* it is part of the squashfs */ }

/* ---- what the library says ------------------------------------------------------------------- */

int squashfs_refuse(const struct squashfs *squashfs, struct image_trouble *trouble, int error, const char *what)
{
    switch (error) {
    case SQFS_ERROR_ALLOC: return image_fail(trouble, -ENOMEM, "out of memory");
    case SQFS_ERROR_IO:
        return image_refuse(trouble, IMAGE_REFUSAL_UNREADABLE, "cannot read %s: %s", what,
                            strerror(-squashfs->file.error));
    case SQFS_ERROR_OUT_OF_BOUNDS:
        return image_refuse(trouble, IMAGE_REFUSAL_TRUNCATED,
                            "%s lies beyond its end: the SquashFS is cut short or damaged", what);
    case SQFS_ERROR_COMPRESSOR: return image_refuse(trouble, IMAGE_REFUSAL_CORRUPT, "%s cannot be decompressed", what);
    case SQFS_ERROR_UNSUPPORTED: return image_refuse(trouble, IMAGE_REFUSAL_CORRUPT, "%s is of an unknown type", what);
    default: return image_refuse(trouble, IMAGE_REFUSAL_CORRUPT, "%s is damaged (%d)", what, error);
    }
}

/* ---- opening --------------------------------------------------------------------------------- */

bool squashfs_is(const struct image_source *source)
{
    char found[sizeof(magic)];
    return image_source_read(source, 0, found, sizeof(found)) == 0 && memcmp(found, magic, sizeof(magic)) == 0;
}

static int open_super(struct squashfs *squashfs, struct image_trouble *trouble)
{
    const sqfs_super_t *super = &squashfs->super;
    int error = sqfs_super_read(&squashfs->super, &squashfs->file.base);
    if (error == SFQS_ERROR_SUPER_MAGIC)
        return image_refuse(trouble, IMAGE_REFUSAL_UNKNOWN, "it has no SquashFS' magic number");
    if (error)
        return squashfs_refuse(squashfs, trouble, error, "the SquashFS' superblock");
    if (super->bytes_used > squashfs->file.source.size)
        return image_refuse(trouble, IMAGE_REFUSAL_TRUNCATED, "the SquashFS is %llu bytes long, and %llu are there",
                            (unsigned long long)super->bytes_used, (unsigned long long)squashfs->file.source.size);
    return 0;
}

static int open_compressor(struct squashfs *squashfs, struct image_trouble *trouble)
{
    sqfs_compressor_config_t config;
    int error = sqfs_compressor_config_init(&config, squashfs->super.compression_id, squashfs->super.block_size,
                                            SQFS_COMP_FLAG_UNCOMPRESS);
    if (!error)
        error = sqfs_compressor_create(&config, &squashfs->compressor);
    if (error == SQFS_ERROR_ALLOC)
        return squashfs_refuse(squashfs, trouble, error, "");
    if (error)
        return image_refuse(trouble, IMAGE_REFUSAL_COMPRESSION,
                            "the SquashFS is compressed with %s, which is not known here",
                            squashfs_compression(squashfs));
    return 0;
}

static int open_readers(struct squashfs *squashfs, struct image_trouble *trouble)
{
    const sqfs_super_t *super = &squashfs->super;
    sqfs_file_t *file = &squashfs->file.base;
    squashfs->dirs = sqfs_dir_reader_create(super, squashfs->compressor, file, 0);
    squashfs->data = sqfs_data_reader_create(file, super->block_size, squashfs->compressor, 0);
    if (!squashfs->dirs || !squashfs->data)
        return image_fail(trouble, -ENOMEM, "out of memory");
    int error = sqfs_data_reader_load_fragment_table(squashfs->data, super);
    if (error)
        return squashfs_refuse(squashfs, trouble, error, "the SquashFS' table of fragments");
    if (super->flags & SQFS_FLAG_NO_XATTRS || super->xattr_id_table_start == UINT64_MAX)
        return 0;
    if (!(squashfs->attributes = sqfs_xattr_reader_create(0)))
        return image_fail(trouble, -ENOMEM, "out of memory");
    error = sqfs_xattr_reader_load(squashfs->attributes, super, file, squashfs->compressor);
    return error ? squashfs_refuse(squashfs, trouble, error, "the SquashFS' table of attributes") : 0;
}

struct squashfs *squashfs_open(const struct image_source *source, struct image_trouble *trouble)
{
    struct squashfs *squashfs = calloc(1, sizeof(*squashfs));
    if (!squashfs) {
        image_fail(trouble, -ENOMEM, "out of memory");
        return NULL;
    }
    squashfs->file = (struct squashfs_file){.base = {.base = {.destroy = destroy_never},
                                                     .read_at = read_at,
                                                     .write_at = write_never,
                                                     .get_size = tell_size,
                                                     .truncate = size_never},
                                            .source = *source};
    int code = open_super(squashfs, trouble);
    if (code == 0)
        code = open_compressor(squashfs, trouble);
    if (code == 0)
        code = open_readers(squashfs, trouble);
    if (code < 0)
        squashfs_close(&squashfs);
    return squashfs;
}

void squashfs_close(struct squashfs **squashfs)
{
    struct squashfs *gone = take_ptr(squashfs);
    if (!gone)
        return;
    sqfs_destroy(gone->attributes);
    sqfs_destroy(gone->data);
    sqfs_destroy(gone->dirs);
    sqfs_destroy(gone->compressor);
    free(gone);
}

const char *squashfs_compression(const struct squashfs *squashfs)
{
    unsigned id = squashfs->super.compression_id;
    return id < sizeof(compressions) / sizeof(*compressions) ? compressions[id] : "something";
}
