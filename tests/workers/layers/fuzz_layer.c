/*
 * A layer from a stranger. By the first byte the rest is a frame as it is, or a tar that is put
 * into one first. It is refused with a sentence or unpacked, within its bounds, and whatever it
 * holds, nothing outside its directory has changed.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "common/base/cleanup.h"
#include "tests/fuzz.h"
#include "common/files/dirtree_remove.h"
#include "workers/layers/unpack/lz4_stream.h"
#include "workers/layers/unpack/tar.h"
#include "workers/files/dirtree.h"

enum { UNPACKED_MAX = 1 << 20 };

static char world[64];
static atomic_bool stop;

static void leave(void) { dirtree_remove(world); }

/* A directory of ours in memory, with a neighbour that must stay as it is. */
static void make_world(void)
{
    if (world[0])
        return;
    snprintf(world, sizeof(world), "%s/sluice-fuzz.XXXXXX", access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
    must(mkdtemp(world));
    atexit(leave);
    struct fail fail = {0};
    AUTO_CLOSE int at = open(world, O_PATH | O_DIRECTORY | O_CLOEXEC);
    must(dirtree_write(at, "neighbour", slice_from_str("here before"), 0600, &fail) == 0);
}

static void check_neighbour(int at)
{
    char text[32] = "";
    struct stat stat;
    AUTO_CLOSE int fd = openat(at, "neighbour", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    must(fd >= 0 && read(fd, text, sizeof(text) - 1) == 11 && strcmp(text, "here before") == 0);
    must(fstat(fd, &stat) == 0 && stat.st_nlink == 1 && (stat.st_mode & 07777) == 0600);
}

static bool wrap(struct slice tar, struct buffer *ret)
{
    AUTO_CLOSE int fd = memfd_create("tar", MFD_CLOEXEC);
    char none[] = "";
    must(fd >= 0 && dirtree_write_at(fd, tar.data, tar.len, 0) == 0); /* which leaves it at its beginning */
    struct lz4_pack pack = {.tar = fd, .inline_max = SIZE_MAX, .path = none};
    struct fail fail = {0};
    bool ok = lz4_pack(&pack, &stop, &fail) == 0;
    *ret = pack.out;
    return ok;
}

static void unpack(struct slice frame)
{
    struct fail fail = {0};
    make_world();
    AUTO_CLOSE int at = open(world, O_PATH | O_DIRECTORY | O_CLOEXEC);
    must(at >= 0 && mkdirat(at, "root", 0700) == 0);
    AUTO_CLOSE int root = openat(at, "root", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct lz4_reader *reader = lz4_open(-1, frame, UNPACKED_MAX);
    must(root >= 0 && reader);
    uint64_t bytes;
    int error = layer_tar_unpack(root, reader, &stop, &bytes, &fail);
    must(error <= 0 && (error == 0 || fail.text[0]));
    lz4_close(&reader);
    check_neighbour(at);
    char path[sizeof(world) + 8];
    snprintf(path, sizeof(path), "%s/root", world);
    must(dirtree_remove(path) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO_BUFFER frame = {0};
    if (size == 0)
        return 0;
    struct slice rest = slice_of(data + 1, size - 1);
    if (data[0] & 1)
        unpack(rest);
    else if (wrap(rest, &frame))
        unpack(buffer_peek(&frame));
    return 0;
}
