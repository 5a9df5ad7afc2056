#include "workers/images/rootfs/sif.h"

#include <errno.h>
#include <string.h>

/* Offsets in the header and in a descriptor. */
enum {
    HEADER_MAGIC = 32,
    HEADER_VERSION = 42,
    HEADER_CREATED = 64,
    HEADER_TOTAL = 88,
    HEADER_TABLE = 96,
    DESCRIPTOR_TYPE = 0,
    DESCRIPTOR_USED = 4,
    DESCRIPTOR_OFFSET = 17,
    DESCRIPTOR_LENGTH = 25,
    DESCRIPTOR_FILESYSTEM = 201,
    DESCRIPTOR_PART = 205,
    DESCRIPTOR_ARCHITECTURE = 209
};

enum {
    TYPE_PARTITION = 0x4004,
    TYPE_OCI_INDEX = 0x400a,
    PART_PRIMARY = 2,
    FILESYSTEM_SQUASHFS = 1,
    FILESYSTEM_ENCRYPTED = 5
};

static const char magic[10] = "SIF_MAGIC"; /* its NUL counts */
static const char version[3] = "01";
static const char squashfs_magic[4] = {'h', 's', 'q', 's'};

static const char *const filesystems[] = {"nothing",    "SquashFS", "ext3",
                                          "an archive", "raw data", "encrypted SquashFS"};

static const struct {
    char code[3];
    const char *name;
} architectures[] = {
    {"01", "386"},     {"02", "amd64"},   {"03", "arm"},     {"04", "arm64"},  {"05", "ppc64"},
    {"06", "ppc64le"}, {"07", "mips"},    {"08", "mipsle"},  {"09", "mips64"}, {"10", "mips64le"},
    {"11", "s390x"},   {"12", "riscv64"}, {"13", "loong64"},
};

const char *image_architecture(void)
{
#if defined(__x86_64__)
    return "amd64";
#elif defined(__aarch64__)
    return "arm64";
#elif defined(__riscv) && __riscv_xlen == 64
    return "riscv64";
#elif defined(__powerpc64__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    return "ppc64le";
#elif defined(__s390x__)
    return "s390x";
#elif defined(__i386__)
    return "386";
#else
    return "unknown";
#endif
}

static uint64_t little(const uint8_t *at, size_t bytes)
{
    uint64_t value = 0;
    while (bytes-- > 0)
        value = value << 8 | at[bytes];
    return value;
}

static const char *architecture_name(const uint8_t *code)
{
    for (size_t i = 0; i < sizeof(architectures) / sizeof(*architectures); i++)
        if (memcmp(architectures[i].code, code, sizeof(architectures[i].code)) == 0)
            return architectures[i].name;
    return "unknown";
}

/* Reads, and says what is wrong when that cannot be done. */
static int fetch(const struct image_source *source, uint64_t offset, void *data, size_t len, const char *what,
                 struct image_trouble *trouble)
{
    int code = image_source_read(source, offset, data, len);
    if (code == -ENODATA)
        return image_refuse(trouble, IMAGE_REFUSAL_TRUNCATED, "the SIF ends within its %s", what);
    if (code < 0)
        return image_refuse(trouble, IMAGE_REFUSAL_UNREADABLE, "cannot read the SIF's %s: %s", what, strerror(-code));
    return 0;
}

bool sif_is(const struct image_source *source)
{
    char found[sizeof(magic)];
    return image_source_read(source, HEADER_MAGIC, found, sizeof(found)) == 0 &&
           memcmp(found, magic, sizeof(magic)) == 0;
}

struct table {
    uint64_t offset, count;
};

static int read_header(const struct image_source *source, struct sif *sif, struct table *table,
                       struct image_trouble *trouble)
{
    uint8_t header[SIF_HEADER_SIZE];
    int code = fetch(source, 0, header, sizeof(header), "header", trouble);
    if (code < 0)
        return code;
    if (memcmp(header + HEADER_MAGIC, magic, sizeof(magic)) != 0)
        return image_refuse(trouble, IMAGE_REFUSAL_UNKNOWN, "it has no SIF's magic number");
    if (memcmp(header + HEADER_VERSION, version, sizeof(version)) != 0)
        return image_refuse(trouble, IMAGE_REFUSAL_SIF_VERSION, "a SIF of a version other than 01 (\"%.2s\")",
                            (const char *)header + HEADER_VERSION);
    table->count = little(header + HEADER_TOTAL, 8);
    table->offset = little(header + HEADER_TABLE, 8);
    sif->created_s = (int64_t)little(header + HEADER_CREATED, 8);
    if (table->count < 1 || table->count > SIF_DESCRIPTORS_MAX)
        return image_refuse(trouble, IMAGE_REFUSAL_SIF_OBJECTS,
                            "the SIF says that it has room for %lld objects, not 1 to %d", (long long)table->count,
                            SIF_DESCRIPTORS_MAX);
    if (table->offset < SIF_HEADER_SIZE)
        return image_refuse(trouble, IMAGE_REFUSAL_CORRUPT, "the SIF's table of objects lies within its header");
    return 0;
}

static int take_root(const struct image_source *source, const uint8_t *descriptor, struct sif *sif,
                     struct image_trouble *trouble)
{
    uint64_t filesystem = little(descriptor + DESCRIPTOR_FILESYSTEM, 4);
    if (filesystem == FILESYSTEM_ENCRYPTED)
        return image_refuse(trouble, IMAGE_REFUSAL_ENCRYPTED, "the SIF's root is encrypted");
    if (filesystem != FILESYSTEM_SQUASHFS)
        return image_refuse(trouble, IMAGE_REFUSAL_SIF_FILESYSTEM, "the SIF's root is %s, not SquashFS",
                            filesystem < sizeof(filesystems) / sizeof(*filesystems) ? filesystems[filesystem]
                                                                                    : "a file system of no known kind");
    sif->root_offset = little(descriptor + DESCRIPTOR_OFFSET, 8);
    sif->root_size = little(descriptor + DESCRIPTOR_LENGTH, 8);
    if (sif->root_offset > source->size || sif->root_size > source->size - sif->root_offset)
        return image_refuse(trouble, IMAGE_REFUSAL_TRUNCATED,
                            "the SIF's root is %lld bytes at %lld, and the file has %llu", (long long)sif->root_size,
                            (long long)sif->root_offset, (unsigned long long)source->size);
    sif->architecture = architecture_name(descriptor + DESCRIPTOR_ARCHITECTURE);
    if (strcmp(sif->architecture, image_architecture()) != 0)
        return image_refuse(trouble, IMAGE_REFUSAL_ARCHITECTURE, "the SIF is for %s, this node is %s",
                            sif->architecture, image_architecture());
    return 0;
}

static int check_root(const struct image_source *source, const struct sif *sif, struct image_trouble *trouble)
{
    char found[sizeof(squashfs_magic)];
    if (sif->root_size < sizeof(found))
        return image_refuse(trouble, IMAGE_REFUSAL_CORRUPT, "the SIF's root is empty");
    int code = fetch(source, sif->root_offset, found, sizeof(found), "root", trouble);
    if (code == 0 && memcmp(found, squashfs_magic, sizeof(found)) != 0)
        return image_refuse(trouble, IMAGE_REFUSAL_CORRUPT, "the SIF's root is not a SquashFS, though it says so");
    return code;
}

static int refuse_rootless(const struct sif *sif, bool has_oci, struct image_trouble *trouble)
{
    return image_refuse(trouble, IMAGE_REFUSAL_SIF_NO_PRIMARY,
                        has_oci ? "an OCI-SIF (%u objects) has no primary system partition; make a "
                                  "plain one: singularity build --no-oci, or apptainer build"
                                : "the SIF (%u objects) has no primary system partition",
                        sif->object_count);
}

int sif_read(const struct image_source *source, struct sif *ret, struct image_trouble *trouble)
{
    struct sif sif = {0};
    struct table table = {0};
    bool has_oci = false;
    int code = read_header(source, &sif, &table, trouble);
    for (uint64_t i = 0; i < table.count && code == 0; i++) {
        uint8_t descriptor[SIF_DESCRIPTOR_SIZE];
        uint64_t at = i * SIF_DESCRIPTOR_SIZE; /* cannot overflow: the count is bounded */
        code = table.offset > UINT64_MAX - at
                   ? image_refuse(trouble, IMAGE_REFUSAL_TRUNCATED, "the SIF's table is not in it")
                   : fetch(source, table.offset + at, descriptor, sizeof(descriptor), "table of objects", trouble);
        if (code < 0 || !descriptor[DESCRIPTOR_USED])
            continue;
        sif.object_count++;
        uint64_t type = little(descriptor + DESCRIPTOR_TYPE, 4);
        has_oci |= type == TYPE_OCI_INDEX;
        if (type != TYPE_PARTITION || little(descriptor + DESCRIPTOR_PART, 4) != PART_PRIMARY)
            continue;
        code = sif.architecture
                   ? image_refuse(trouble, IMAGE_REFUSAL_SIF_TWO_PRIMARY, "the SIF has two primary system partitions")
                   : take_root(source, descriptor, &sif, trouble);
    }
    if (code == 0)
        code = sif.architecture ? check_root(source, &sif, trouble) : refuse_rootless(&sif, has_oci, trouble);
    if (code == 0)
        *ret = sif;
    return code;
}
