#include "workers/images/rootfs/source.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static int read_memory(const struct image_source *source, uint64_t offset, void *data, size_t len)
{
    memcpy(data, (const uint8_t *)source->memory + offset, len);
    return 0;
}

static int read_file(const struct image_source *source, uint64_t offset, void *data, size_t len)
{
    uint8_t *to = data;
    while (len > 0) {
        ssize_t got = pread(source->file, to, len, (off_t)(source->start + offset));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 ? -errno : -ENODATA; /* it became shorter while it was read */
        to += got;
        offset += (uint64_t)got;
        len -= (size_t)got;
    }
    return 0;
}

struct image_source image_source_of_memory(const void *data, size_t size)
{
    return (struct image_source){.read_at = read_memory, .memory = data, .file = -1, .size = size};
}

struct image_source image_source_of_file(int file, uint64_t start, uint64_t size)
{
    return (struct image_source){.read_at = read_file, .file = file, .start = start, .size = size};
}

int image_source_read(const struct image_source *source, uint64_t offset, void *data, size_t len)
{
    if (offset > source->size || len > source->size - offset)
        return -ENODATA;
    return len ? source->read_at(source, offset, data, len) : 0;
}
