/*
 * A SIF from a stranger. It is refused by name with a sentence, or its root lies within it and its
 * SquashFS can be opened, walked and refused as well. Nothing is written.
 */
#include <errno.h>

#include "tests/fuzz.h"
#include "workers/images/rootfs/sif.h"
#include "workers/images/rootfs/squashfs.h"
#include "workers/images/rootfs/squashfs_walk.h"

static atomic_bool stop;

static void must_be_refused(int code, const struct image_trouble *trouble)
{
    must(code < 0 && trouble->fail.text[0]);
    must(trouble->refusal != IMAGE_REFUSAL_NONE || code == -ENOMEM);
}

static void walk(const struct image_source *source)
{
    const struct rootfs_limits limits = {.bytes = 1 << 30, .entries = 1 << 16};
    struct image_trouble trouble = {0};
    struct rootfs rootfs;
    struct squashfs *squashfs = squashfs_open(source, &trouble);
    if (!squashfs) {
        must_be_refused(trouble.fail.code, &trouble);
        return;
    }
    rootfs_init(&rootfs, -1, &limits, &stop, &trouble);
    int code = squashfs_count(squashfs, &rootfs);
    if (code < 0)
        must_be_refused(code, &trouble);
    must(rootfs.counts.bytes <= limits.bytes && rootfs.counts.entries <= limits.entries + 1);
    rootfs_finish(&rootfs);
    squashfs_close(&squashfs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct image_source source = image_source_of_memory(data, size);
    struct image_trouble trouble = {0};
    struct sif sif;
    int code = sif_read(&source, &sif, &trouble);
    if (code < 0) {
        must_be_refused(code, &trouble);
        must(code != -ENOMEM);
        return 0;
    }
    must(sif.root_offset <= size && sif.root_size <= size - sif.root_offset && sif.object_count > 0);
    must(sif.object_count <= SIF_DESCRIPTORS_MAX && sif.architecture);
    const struct image_source root = image_source_of_memory(data + sif.root_offset, sif.root_size);
    must(squashfs_is(&root));
    walk(&root);
    return 0;
}
