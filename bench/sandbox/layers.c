/*
 * A layer's way: files that a sandbox wrote, packed, and unpacked again where no copy is kept.
 *
 *   bench_layers FILES BYTES DIRECTORY [FLOOR]
 *
 * Prints pack ms, unpack ms and the layer's bytes, of one sandbox that wrote FILES files of BYTES
 * bytes in directories of a hundred; then two floors of the file system, without any archive: ms to
 * write and sync one file of the layer's bytes, and to make, write and date as many such files. With
 * FLOOR the tree is written there too, for other programs to be measured on.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "common/base/cleanup.h"
#include "common/files/dirtree_remove.h"
#include "workers/runtime/fiber.h"
#include "workers/layers/cache.h"
#include "workers/layers/dir.h"
#include "workers/files/dirtree.h"
#include "workers/sandbox/requests.h"
#include "workers/sandbox/spawner_start.h"

enum { FILES_PER_DIR = 100, DISK_MIB = 2048 };

struct bench {
    unsigned long files, bytes;
    char store[512], cache[512], mount_point[512];
    const char *floor;
    struct spawner *spawner;
    struct loop *loop;
};

static _Noreturn void give_up(const char *what, const struct fail *fail)
{
    fprintf(stderr, "bench_layers: %s: %s\n", what, fail->text);
    exit(1);
}

static double now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* What is like source text: it shrinks to about a third. */
static void fill(char *text, size_t len, unsigned long seed)
{
    static const char *const words[] = {"return ", "static ", "struct ", "if (", "code", ") {\n    ", " = "};
    for (size_t at = 0; at < len;) {
        seed = seed * 6364136223846793005UL + 1442695040888963407UL;
        size_t which = (seed >> 33) % 9;
        const char *word = which < 7 ? words[which] : "";
        if (which >= 7)
            text[at++] = (char)('a' + (seed >> 40) % 26);
        for (; *word && at < len; word++)
            text[at++] = *word;
    }
}

static void write_files(const struct bench *bench, struct sandbox *sandbox, int floor)
{
    struct fail fail = {0};
    AUTO_FREE char *text = malloc(bench->bytes + 1);
    for (unsigned long i = 0; text && i < bench->files; i++) {
        char path[64];
        fill(text, bench->bytes, i);
        snprintf(path, sizeof(path), "dir%lu/file%lu.c", i / FILES_PER_DIR, i);
        if (sandbox_write_file(sandbox, path, text, bench->bytes, 0644, &fail) < 0)
            give_up("write", &fail);
        if (floor >= 0 && dirtree_write(floor, path, slice_of(text, bench->bytes), 0644, &fail) < 0)
            give_up("write", &fail);
    }
}

/* ---- floors ------------------------------------------------------------------------------ */

static void must(bool is_done, const char *what)
{
    if (is_done)
        return;
    perror(what);
    exit(1);
}

static double sync_one(int dir, size_t bytes)
{
    AUTO_FREE char *data = malloc(bytes + 1);
    must(data != NULL, "memory");
    fill(data, bytes, 1);
    double begin = now_ms();
    AUTO_CLOSE int file = openat(dir, "floor", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    must(file >= 0 && write(file, data, bytes) == (ssize_t)bytes && fsync(file) == 0 && fsync(dir) == 0, "floor");
    double took = now_ms() - begin;
    unlinkat(dir, "floor", 0);
    return took;
}

static double make_files(const struct bench *bench, int tree)
{
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = 1700000000}};
    AUTO_FREE char *text = malloc(bench->bytes + 1);
    int dir = -1;
    must(text != NULL, "memory");
    fill(text, bench->bytes, 1);
    double begin = now_ms();
    for (unsigned long i = 0; i < bench->files; i++) {
        char name[64];
        if (i % FILES_PER_DIR == 0) {
            snprintf(name, sizeof(name), "dir%lu", i / FILES_PER_DIR);
            must(mkdirat(tree, name, 0755) == 0, name);
            cleanup_close(&dir);
            dir = openat(tree, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        }
        snprintf(name, sizeof(name), "file%lu.c", i);
        AUTO_CLOSE int file = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
        must(file >= 0 && write(file, text, bench->bytes) == (ssize_t)bench->bytes && futimens(file, times) == 0, name);
    }
    cleanup_close(&dir);
    return now_ms() - begin;
}

/* In a directory of the cache, as unpacked layers are. */
static double make_files_there(const struct bench *bench)
{
    char path[600];
    snprintf(path, sizeof(path), "%s/floor.XXXXXX", bench->cache);
    must(mkdtemp(path) != NULL, path);
    AUTO_CLOSE int tree = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    double took = make_files(bench, tree);
    dirtree_remove(path);
    return took;
}

/* ---- ours -------------------------------------------------------------------------------- */

static void run(void *arg)
{
    struct bench *bench = arg;
    const struct layers layers = {.store = bench->store, .cache = bench->cache};
    struct sandbox_plan plan = {.image = "host", .memory_mib = 512, .disk_mib = DISK_MIB, .processes = 64};
    struct sandbox *sandbox = NULL;
    struct layer layer = {0};
    struct layer_dir dir;
    struct fail fail = {0};
    if (sandbox_open(bench->spawner, &plan, &sandbox, &fail) < 0)
        give_up("sandbox", &fail);
    AUTO_CLOSE int floor = bench->floor ? open(bench->floor, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
    write_files(bench, sandbox, floor);
    double begin = now_ms();
    if (layer_pack(&layers, sandbox, &layer, &fail) < 0)
        give_up("pack", &fail);
    double packed = now_ms();
    if (layer_dir_hold(&layers, layer.digest, buffer_peek(&layer.inlined), &dir, &fail) < 0)
        give_up("unpack", &fail);
    double unpacked = now_ms();
    struct stat it = {.st_size = (off_t)layer.inlined.len};
    char stored[640];
    snprintf(stored, sizeof(stored), "%s/%.2s/%s.tar.lz4", bench->store, layer.digest + 7, layer.digest + 7);
    stat(stored, &it);
    unlink(stored);
    layer_dir_discard(&dir);
    AUTO_CLOSE int store = open(bench->store, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    printf("%g %g %lld %g %g\n", packed - begin, unpacked - packed, (long long)it.st_size,
           sync_one(store, (size_t)it.st_size), make_files_there(bench));
    layer_finish(&layer);
    sandbox_close(&sandbox);
}

static void ended(void *arg) { loop_stop(((struct bench *)arg)->loop); }

static void make_dir(char *ret, size_t size, const char *directory, const char *name)
{
    snprintf(ret, size, "%s/%s", directory, name);
    if (mkdir(ret, 0755) < 0 && errno != EEXIST) {
        perror(ret);
        exit(1);
    }
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        fprintf(stderr, "usage: bench_layers FILES BYTES DIRECTORY [FLOOR]\n");
        return 2;
    }
    struct bench bench = {
        .files = strtoul(argv[1], NULL, 10), .bytes = strtoul(argv[2], NULL, 10), .floor = argc > 4 ? argv[4] : NULL};
    struct fail fail = {0};
    make_dir(bench.store, sizeof(bench.store), argv[3], "store");
    make_dir(bench.cache, sizeof(bench.cache), argv[3], "cache");
    make_dir(bench.mount_point, sizeof(bench.mount_point), argv[3], "mount");
    layer_cache_prepare(bench.cache);
    bench.spawner = spawner_start(bench.mount_point, &fail);
    bench.loop = loop_create();
    if (!bench.spawner || !bench.loop || !spawner_attach(bench.spawner, bench.loop))
        give_up("start", &fail);
    if (!fiber_start(bench.loop, run, ended, &bench))
        give_up("start", &fail);
    loop_run(bench.loop);
    spawner_stop(&bench.spawner);
    loop_destroy(&bench.loop);
    return 0;
}
