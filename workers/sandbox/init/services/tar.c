#include "workers/sandbox/init/services/tar.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "common/base/cleanup.h"

enum { BLOCK = 512, HELD_MAX = 256 * 1024, CHUNK = 64 * 1024 };
static const uint64_t ustar_size_max = 077777777777;

struct header { /* POSIX ustar, 512 bytes */
    char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8], type, link[100];
    char magic[6], version[2], uname[32], gname[32], dev_major[8], dev_minor[8], prefix[155];
    char pad[12];
};
_Static_assert(sizeof(struct header) == BLOCK, "a header is one block");

/* ---- bytes -------------------------------------------------------------------------- */

static void write_out(struct tar *tar, const uint8_t *data, size_t len)
{
    if (tar->stop && atomic_load(tar->stop))
        tar->error = -ECANCELED;
    while (len > 0 && tar->error == 0) {
        ssize_t wrote = write(tar->fd, data, len);
        if (wrote > 0) {
            data += wrote;
            len -= (size_t)wrote;
        } else if (wrote < 0 && errno == EAGAIN)
            poll(&(struct pollfd){tar->fd, POLLOUT, 0}, 1, -1);
        else if (wrote == 0 || errno != EINTR)
            tar->error = wrote == 0 ? -EIO : -errno;
    }
}

static void flush(struct tar *tar)
{
    write_out(tar, tar->pending.data, tar->pending.len);
    buffer_clear(&tar->pending);
}

static void put(struct tar *tar, const void *data, size_t len)
{
    if (tar->error == 0 && !buffer_append(&tar->pending, data, len))
        tar->error = -ENOMEM;
    tar->bytes += len;
    if (tar->pending.len >= HELD_MAX)
        flush(tar);
}

static void pad(struct tar *tar)
{
    static const uint8_t zeros[BLOCK];
    if (tar->bytes % BLOCK)
        put(tar, zeros, BLOCK - tar->bytes % BLOCK);
}

/* ---- headers ------------------------------------------------------------------------ */

static void set_octal(char *field, size_t size, uint64_t value)
{
    for (size_t i = size - 1; i-- > 0; value >>= 3)
        field[i] = (char)('0' + (value & 7));
    field[size - 1] = '\0';
}

/* False when the path fits neither the name nor prefix/name. */
static bool set_name(struct header *header, const char *path)
{
    size_t len = strlen(path);
    if (len <= sizeof(header->name)) {
        memcpy(header->name, path, len);
        return true;
    }
    size_t last = len > sizeof(header->prefix) ? sizeof(header->prefix) : len - 1;
    for (size_t cut = last; cut > 0; cut--) {
        size_t rest = len - cut - 1;
        if (path[cut] != '/' || rest == 0 || rest > sizeof(header->name))
            continue;
        memcpy(header->prefix, path, cut);
        memcpy(header->name, path + cut + 1, rest);
        return true;
    }
    memcpy(header->name, path, sizeof(header->name)); /* the record says it whole */
    return false;
}

static void put_header(struct tar *tar, struct header *header)
{
    memcpy(header->magic, "ustar", 6);
    memcpy(header->version, "00", 2);
    set_octal(header->uid, sizeof(header->uid), 0);
    set_octal(header->gid, sizeof(header->gid), 0);
    memset(header->sum, ' ', sizeof(header->sum));
    unsigned sum = 0;
    for (size_t i = 0; i < BLOCK; i++)
        sum += ((const uint8_t *)header)[i];
    set_octal(header->sum, 7, sum);
    header->sum[7] = ' ';
    put(tar, header, BLOCK);
}

/* "LEN PREFIXKEY=VALUE\n", where LEN counts its own digits. */
static void add_bytes(struct buffer *records, const char *prefix, const char *key, struct slice value)
{
    size_t rest = strlen(prefix) + strlen(key) + value.len + 3, len = rest + 1;
    while ((size_t)snprintf(NULL, 0, "%zu", len) + rest != len)
        len = (size_t)snprintf(NULL, 0, "%zu", len) + rest;
    buffer_printf(records, "%zu %s%s=", len, prefix, key);
    buffer_append(records, value.data, value.len);
    buffer_append_str(records, "\n");
}

static void add_record(struct buffer *records, const char *key, const char *value)
{
    add_bytes(records, "", key, slice_from_str(value));
}

void tar_add_attribute(struct buffer *records, const char *name, struct slice value)
{
    add_bytes(records, "SCHILY.xattr.", name, value);
}

static bool is_ascii(const char *text)
{
    while (*text && !(*text & 0x80))
        text++;
    return *text == '\0';
}

static void put_records(struct tar *tar, const struct buffer *records)
{
    struct header header = {.name = "pax", .type = 'x'};
    if (records->failed)
        tar->error = -ENOMEM;
    set_octal(header.mode, sizeof(header.mode), 0644);
    set_octal(header.size, sizeof(header.size), records->len);
    set_octal(header.mtime, sizeof(header.mtime), 0);
    put_header(tar, &header);
    put(tar, records->data, records->len);
    pad(tar);
}

static void add_number(struct buffer *records, const char *key, uint64_t value)
{
    char text[32];
    snprintf(text, sizeof(text), "%lu", (unsigned long)value);
    add_record(records, key, text);
}

static void set_mtime(struct header *header, struct timespec mtime, struct buffer *records)
{
    char text[48];
    bool fits = mtime.tv_sec >= 0 && (uint64_t)mtime.tv_sec <= ustar_size_max;
    set_octal(header->mtime, sizeof(header->mtime), fits ? (uint64_t)mtime.tv_sec : 0);
    if (fits && mtime.tv_nsec == 0)
        return;
    if (mtime.tv_sec < 0) /* readers differ on fractions below zero */
        snprintf(text, sizeof(text), "%lld", (long long)mtime.tv_sec);
    else
        snprintf(text, sizeof(text), "%lld.%09ld", (long long)mtime.tv_sec, mtime.tv_nsec);
    add_record(records, "mtime", text);
}

/* The header with the records it needs; `records` may hold some already. */
static void put_entry(struct tar *tar, const struct tar_entry *entry, uint64_t size, struct buffer *records)
{
    struct header header = {.type = entry->type};
    size_t link_len = entry->link ? strlen(entry->link) : 0;
    bool name_fits = set_name(&header, entry->path), link_fits = link_len <= sizeof(header.link);
    if (entry->link)
        memcpy(header.link, entry->link, link_fits ? link_len : sizeof(header.link));
    if ((!name_fits && !is_ascii(entry->path)) || (!link_fits && !is_ascii(entry->link)))
        add_record(records, "hdrcharset", "BINARY"); /* before what it is about */
    if (!name_fits)
        add_record(records, "path", entry->path);
    if (!link_fits)
        add_record(records, "linkpath", entry->link);
    if (size > ustar_size_max)
        add_number(records, "size", size);
    set_octal(header.mode, sizeof(header.mode), entry->mode & 07777);
    set_octal(header.size, sizeof(header.size), size > ustar_size_max ? 0 : size);
    set_mtime(&header, entry->mtime, records);
    if (entry->records.len > 0)
        buffer_append(records, entry->records.data, entry->records.len);
    if (records->len > 0)
        put_records(tar, records);
    put_header(tar, &header);
}

void tar_put(struct tar *tar, const struct tar_entry *entry)
{
    AUTO_BUFFER records = {0};
    put_entry(tar, entry, 0, &records);
}

/* ---- data --------------------------------------------------------------------------- */

/* Exactly `len` bytes from `offset`; zeros where the file ends early. */
static void copy(struct tar *tar, int file, uint64_t offset, uint64_t len)
{
    uint8_t *chunk = buffer_reserve(&tar->chunk, CHUNK);
    if (!chunk)
        tar->error = -ENOMEM;
    while (len > 0 && tar->error == 0) {
        size_t want = len < CHUNK ? (size_t)len : CHUNK;
        ssize_t got = pread(file, chunk, want, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            tar->error = -errno;
        if (got <= 0)
            memset(chunk, 0, (size_t)(got = (ssize_t)want));
        put(tar, chunk, (size_t)got);
        offset += (uint64_t)got;
        len -= (uint64_t)got;
    }
}

struct extent {
    uint64_t offset, len;
};

/* The runs of data in a file with holes; false when it has none or memory ran out. */
static bool find_extents(int file, uint64_t size, struct buffer *ret, uint64_t *data)
{
    off_t at = 0;
    *data = 0;
    while ((uint64_t)at < size) {
        off_t from = lseek(file, at, SEEK_DATA);
        off_t to = from < 0 ? -1 : lseek(file, from, SEEK_HOLE);
        if (from < 0 && errno != ENXIO)
            return false;
        if (from < 0 || (uint64_t)from >= size)
            break; /* a hole up to the end */
        struct extent extent = {(uint64_t)from, (to < 0 || (uint64_t)to > size ? size : (uint64_t)to) - (uint64_t)from};
        if (!buffer_append(ret, &extent, sizeof(extent)))
            return false;
        *data += extent.len;
        at = (off_t)(extent.offset + extent.len);
    }
    return *data < size;
}

static void put_sparse(struct tar *tar, const struct tar_entry *entry, int file, uint64_t size,
                       const struct buffer *extents, uint64_t data)
{
    const struct extent *extent = (const struct extent *)(const void *)extents->data;
    size_t count = extents->len / sizeof(*extent);
    AUTO_BUFFER records = {0}, map = {0};
    struct tar_entry stored = *entry;
    buffer_printf(&map, "%zu\n", count + 1);
    for (size_t i = 0; i < count; i++)
        buffer_printf(&map, "%lu\n%lu\n", (unsigned long)extent[i].offset, (unsigned long)extent[i].len);
    buffer_printf(&map, "%lu\n0\n", (unsigned long)size); /* how long it is */
    uint64_t map_len = (map.len + BLOCK - 1) / BLOCK * BLOCK;
    if (!is_ascii(entry->path))
        add_record(&records, "hdrcharset", "BINARY");
    add_number(&records, "GNU.sparse.major", 1);
    add_number(&records, "GNU.sparse.minor", 0);
    add_record(&records, "GNU.sparse.name", entry->path);
    add_number(&records, "GNU.sparse.realsize", size);
    stored.path = "sparse"; /* the record has the name */
    put_entry(tar, &stored, map_len + data, &records);
    if (map.failed)
        tar->error = -ENOMEM;
    put(tar, map.data, map.len);
    pad(tar);
    for (size_t i = 0; i < count; i++)
        copy(tar, file, extent[i].offset, extent[i].len);
    pad(tar);
}

/* A file that lies on as much disk as it is long has no holes to look for. */
static bool may_have_holes(const struct stat *it) { return (uint64_t)it->st_blocks * 512 < (uint64_t)it->st_size; }

void tar_put_file(struct tar *tar, const struct tar_entry *entry, int file, const struct stat *it)
{
    AUTO_BUFFER extents = {0}, records = {0};
    uint64_t data, size = (uint64_t)it->st_size;
    if (may_have_holes(it) && find_extents(file, size, &extents, &data)) {
        put_sparse(tar, entry, file, size, &extents, data);
        return;
    }
    if (extents.failed)
        tar->error = -ENOMEM;
    put_entry(tar, entry, size, &records);
    copy(tar, file, 0, size);
    pad(tar);
}

int tar_end(struct tar *tar)
{
    static const uint8_t zeros[2 * BLOCK];
    put(tar, zeros, sizeof(zeros));
    flush(tar);
    return tar->error;
}

void tar_finish(struct tar *tar)
{
    buffer_finish(&tar->pending);
    buffer_finish(&tar->chunk);
}
