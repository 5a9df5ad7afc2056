/*
 * image_fixture.h - images to test with: the SIF files that siftool made (fixtures/sif/), read whole
 * into memory so that a test can damage its own, and a directory that goes with the test.
 */
#ifndef SLUICE_TESTS_WORKERS_IMAGES_IMAGE_FIXTURE_H
#define SLUICE_TESTS_WORKERS_IMAGES_IMAGE_FIXTURE_H

#include "tests/workers/sandbox/sandbox_fixture.h"

#include <sys/xattr.h>

#include "common/base/cleanup.h"
#include "common/files/dirtree_remove.h"
#include "workers/images/image_cache.h"
#include "workers/files/dirtree.h"

static atomic_bool never;
static const struct rootfs_limits wide = {ROOTFS_BYTES_MAX, ROOTFS_ENTRIES_MAX};

static inline int set_up_images(void **state)
{
    (void)state;
    snprintf(directory, sizeof(directory), "/tmp/sluice-test-XXXXXX");
    return mkdtemp(directory) ? 0 : -1;
}

static inline int tear_down_images(void **state)
{
    (void)state;
    return dirtree_remove(directory);
}

static inline void fixture_path(char ret[512], const char *name)
{
    const char *source = getenv("SLUICE_SOURCE_DIR");
    assert_non_null(source);
    snprintf(ret, 512, "%s/tests/workers/images/fixtures/sif/%s", source, name);
}

/* The caller frees it. */
static inline uint8_t *read_fixture(const char *name, size_t *ret_size)
{
    char path[512];
    fixture_path(path, name);
    AUTO_FCLOSE FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    *ret_size = (size_t)ftell(file);
    rewind(file);
    uint8_t *data = malloc(*ret_size);
    assert_non_null(data);
    assert_int_equal(fread(data, 1, *ret_size, file), *ret_size);
    return data;
}

/* <directory>/<name>, good until so many more were asked for. */
static inline const char *in_directory(const char *name)
{
    enum { PLACES = 64 };
    static char paths[PLACES][512];
    static unsigned next;
    char *path = paths[next++ % PLACES];
    assert_true(snprintf(path, sizeof(paths[0]), "%s/%s", directory, name) < (int)sizeof(paths[0]));
    return path;
}

static inline const char *write_image(const char *name, const void *data, size_t size)
{
    const char *path = in_directory(name);
    AUTO_CLOSE int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(file >= 0);
    assert_int_equal(write(file, data, size), (ssize_t)size);
    return path;
}

static inline void expect_refusal(const struct image_trouble *trouble, enum image_refusal refusal, const char *words)
{
    if (trouble->refusal != refusal || !strstr(trouble->fail.text, words))
        fail_msg("%s (%s), not %s (%s)", image_refusal_wire(trouble->refusal), trouble->fail.text,
                 image_refusal_wire(refusal), words);
}

/* Unpacks into <directory>/<name>, which must not exist; 0 or the code, with *trouble. */
static inline int unpack_into(const char *image_name, const char *name, const struct rootfs_limits *limits,
                              struct rootfs_counts *counts, struct image_trouble *trouble)
{
    struct image image;
    const struct image_order order = {.limits = *limits, .stop = &never};
    int code = image_open(image_name, &image, trouble);
    if (code < 0)
        return code;
    code = image_unpack_to(&image, in_directory(name), &order, counts, trouble);
    image_close(&image);
    return code;
}

static inline void expect_file(const char *path, const char *content)
{
    char text[4096];
    AUTO_CLOSE int file = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (file < 0)
        fail_msg("%s: %s", path, strerror(errno));
    ssize_t len = read(file, text, sizeof(text) - 1);
    assert_true(len >= 0);
    text[len] = '\0';
    assert_string_equal(text, content);
}

static inline struct stat stat_of(const char *path)
{
    struct stat it;
    if (lstat(path, &it) < 0)
        fail_msg("%s: %s", path, strerror(errno));
    return it;
}

static inline bool is_there(const char *path)
{
    struct stat it;
    return lstat(path, &it) == 0;
}

#endif
