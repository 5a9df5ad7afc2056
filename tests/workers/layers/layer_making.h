/*
 * layer_making.h - layers in tests: packed by a sandbox of what it wrote, or made by hand; unpacked, and the
 * next sandbox opened on them.
 */
#ifndef SLUICE_TESTS_WORKERS_LAYERS_LAYER_MAKING_H
#define SLUICE_TESTS_WORKERS_LAYERS_LAYER_MAKING_H

#include "tests/workers/layers/layers_world.h"

#include <dirent.h>
#include <sys/mman.h>

#include "common/digest/digest.h"
#include "common/files/dirtree_remove.h"
#include "workers/layers/unpack/lz4_stream.h"
#include "workers/sandbox/init/services/tar.h"
#include "workers/files/dirtree.h"

static inline int set_up_layers(void **state) { return make_layers(set_up(state)); }

static inline int tear_down_layers(void **state)
{
    assert_int_equal(dirtree_remove(cache), 0); /* also what nobody may enter */
    return tear_down(state);
}

static inline struct layer pack(struct sandbox *sandbox)
{
    struct layer layer = {0};
    struct fail fail = {0};
    if (layer_pack(&layers, sandbox, &layer, &fail) < 0)
        fail_msg("layer_pack: %s", fail.text);
    return layer;
}

static inline char *unpack(const struct layer *layer)
{
    char *path = NULL;
    struct fail fail = {0};
    if (layer_unpack(&layers, layer->digest, buffer_peek(&layer->inlined), &path, &fail) < 0)
        fail_msg("layer_unpack: %s", fail.text);
    return path;
}

static inline struct sandbox *open_on(const char *lower, const char *upper)
{
    const char *paths[] = {lower, upper};
    struct sandbox_plan plan = host_plan();
    plan.layers = paths;
    plan.layer_count = upper ? 2 : 1;
    return open_sandbox(&plan);
}

/* Runs a command on the layers `lower` and `upper` (may be NULL) and packs what it wrote. */
static inline struct layer make_layer(const char *lower, const char *command)
{
    struct sandbox *sandbox = lower ? open_on(lower, NULL) : open_host();
    expect_status(sandbox, command, 0);
    struct layer layer = pack(sandbox);
    sandbox_close(&sandbox);
    return layer;
}

/* Without the cache's own ".usage" and ".trim". */
static inline size_t count_entries(const char *path)
{
    size_t count = 0;
    const struct dirent *entry;
    DIR *stream = opendir(path);
    assert_non_null(stream);
    while ((entry = readdir(stream)))
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
                 strcmp(entry->d_name, ".usage") != 0 && strcmp(entry->d_name, ".trim") != 0;
    closedir(stream);
    return count;
}

static inline struct layer make_by_hand(const struct tar_entry *entries, size_t count)
{
    struct layer layer = {0};
    struct fail fail = {0};
    atomic_bool stop = false;
    char path[160];
    int fd = memfd_create("tar", MFD_CLOEXEC);
    struct tar tar = {.fd = fd};
    for (size_t i = 0; i < count; i++)
        tar_put(&tar, &entries[i]);
    assert_int_equal(tar_end(&tar), 0);
    snprintf(path, sizeof(path), "%s/XXXXXX", directory);
    struct lz4_pack frame = {.tar = fd, .inline_max = 8 << 20, .path = path};
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    assert_int_equal(lz4_pack(&frame, &stop, &fail), 0);
    assert_int_equal(frame.size, tar.bytes);
    assert_true(digest_of(buffer_peek(&frame.out), layer.digest));
    assert_string_equal(frame.digest, layer.digest);
    layer.inlined = frame.out;
    tar_finish(&tar);
    close(fd);
    return layer;
}

/* With a store and a cache of its own. */
#define LAYER_TEST(name) cmocka_unit_test_setup_teardown(name, set_up_layers, tear_down_layers)

#endif
