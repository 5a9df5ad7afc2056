#include "workers/images/image.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/digest/digest.h"
#include "schemas/task/image_name.h"
#include "workers/images/rootfs/copy.h"
#include "workers/images/oci/oci.h"
#include "workers/images/oci/layout.h"
#include "workers/images/config.h"
#include "workers/images/rootfs/squashfs.h"
#include "workers/images/rootfs/squashfs_walk.h"

#define KEY_VERSION "1" /* of what is made of an image: another one, and all are made anew */

static const char *const kind_names[] = {"host", "directory", "sif", "squashfs", "oci"};

const char *image_kind_name(enum image_kind kind) { return kind_names[kind]; }

bool image_is_packed(const struct image *image) { return image->kind != IMAGE_HOST && image->kind != IMAGE_DIRECTORY; }

void image_close(struct image *image)
{
    oci_close(&image->oci);
    squashfs_close(&image->squashfs);
    cleanup_close(&image->file);
    free(image->path);
    free(image->tag);
    *image = (struct image){.file = -1};
}

/* ---- finding ---------------------------------------------------------------------------------- */

static int refuse_errno(struct image_trouble *trouble, const char *name, int error)
{
    if (error == ENOENT || error == ENOTDIR)
        return image_refuse(trouble, IMAGE_REFUSAL_MISSING, "there is no image %.300s", name);
    if (error == ENOMEM || error == EMFILE || error == ENFILE)
        return image_fail(trouble, -error, "%s", strerror(error));
    return image_refuse(trouble, IMAGE_REFUSAL_UNREADABLE, "cannot read the image %.300s: %s", name, strerror(error));
}

/* DIR:TAG when there is no file of the whole name; NULL: it has no such part. */
static char *split_tag(const char *name, char **ret_tag)
{
    const char *colon = strrchr(name, ':');
    if (!colon || colon == name || !colon[1] || strchr(colon, '/'))
        return NULL;
    char *path = strndup(name, (size_t)(colon - name));
    *ret_tag = strdup(colon + 1);
    return path;
}

static int open_path(const char *name, struct image *image, struct image_trouble *trouble)
{
    const int flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC; /* a FIFO must not stop us */
    AUTO_FREE char *shorter = NULL;
    image->file = open(name, flags);
    if (image->file < 0 && errno == ENOENT && (shorter = split_tag(name, &image->tag)))
        image->file = open(shorter, flags);
    if (image->file < 0 || fstat(image->file, &image->stat) < 0)
        return refuse_errno(trouble, name, errno);
    image->path = realpath(shorter ? shorter : name, NULL);
    return image->path ? 0 : refuse_errno(trouble, name, errno);
}

/* ---- kinds ------------------------------------------------------------------------------------ */

static int open_squashfs(struct image *image, uint64_t start, uint64_t size, struct image_trouble *trouble)
{
    const struct image_source source = image_source_of_file(image->file, start, size);
    image->squashfs = squashfs_open(&source, trouble);
    return image->squashfs ? 0 : trouble->fail.code;
}

static int open_layout(struct image *image, struct image_trouble *trouble)
{
    image->kind = IMAGE_OCI;
    image->oci = oci_open(image->file, image->tag, trouble);
    return image->oci ? 0 : trouble->fail.code;
}

static int open_file(struct image *image, struct image_trouble *trouble)
{
    uint64_t size = (uint64_t)image->stat.st_size;
    const struct image_source whole = image_source_of_file(image->file, 0, size);
    if (squashfs_is(&whole)) {
        image->kind = IMAGE_SQUASHFS;
        return open_squashfs(image, 0, size, trouble);
    }
    if (oci_layout_is_archive(image->file))
        return open_layout(image, trouble);
    if (!sif_is(&whole))
        return image_refuse(trouble, IMAGE_REFUSAL_UNKNOWN,
                            "neither a SIF nor a SquashFS, nor the tar of an OCI layout (a compressed "
                            "tar: decompress it first)");
    image->kind = IMAGE_SIF;
    int code = sif_read(&whole, &image->sif, trouble);
    if (code < 0)
        return code;
    return open_squashfs(image, image->sif.root_offset, image->sif.root_size, trouble);
}

/* An archive of `docker save` before Docker 25, unpacked: layers in a layout of its own. */
static bool is_docker_archive(int dir)
{
    return faccessat(dir, "manifest.json", F_OK, 0) == 0 && faccessat(dir, "usr", F_OK, 0) < 0 &&
           faccessat(dir, "bin", F_OK, 0) < 0;
}

static int open_directory(struct image *image, struct image_trouble *trouble)
{
    if (oci_layout_is_directory(image->file))
        return open_layout(image, trouble);
    image->kind = IMAGE_DIRECTORY;
    if (image->tag)
        return image_refuse(trouble, IMAGE_REFUSAL_OCI_LAYOUT,
                            "%.200s is not an OCI layout, so it has no image \"%.64s\"", image->path, image->tag);
    return !is_docker_archive(image->file) ? 0
                                           : image_refuse(trouble, IMAGE_REFUSAL_OCI_LAYOUT,
                                                          "what `docker save` wrote before Docker 25: run `skopeo copy "
                                                          "docker-archive:FILE.tar oci:DIR:latest`, and name DIR");
}

static int open_kind(struct image *image, struct image_trouble *trouble)
{
    if (S_ISDIR(image->stat.st_mode))
        return open_directory(image, trouble);
    if (!S_ISREG(image->stat.st_mode))
        return image_refuse(trouble, IMAGE_REFUSAL_UNKNOWN, "neither a file nor a directory");
    return open_file(image, trouble);
}

/* What is the same has the same key: a file unchanged, or the manifest of an OCI layout. */
static int make_key(struct image *image, struct image_trouble *trouble)
{
    AUTO_BUFFER text = {0};
    char digest[DIGEST_SIZE];
    buffer_printf(&text, KEY_VERSION "\n%s\n", image_kind_name(image->kind));
    if (image->kind == IMAGE_OCI)
        buffer_printf(&text, "%s\nconfig\n", oci_digest(image->oci)); /* since its config is kept beside it */
    else
        buffer_printf(&text, "%s\n%llu %llu %lld %lld.%09ld\n", image->path, (unsigned long long)image->stat.st_dev,
                      (unsigned long long)image->stat.st_ino, (long long)image->stat.st_size,
                      (long long)image->stat.st_mtim.tv_sec, image->stat.st_mtim.tv_nsec);
    if (text.failed || !digest_of(buffer_peek(&text), digest))
        return image_fail(trouble, -ENOMEM, "out of memory");
    memcpy(image->key, digest + strlen("sha256:"), sizeof(image->key));
    return 0;
}

static int open_image(const char *name, struct image *image, struct image_trouble *trouble)
{
    char words[IMAGE_NAME_WORDS];
    int code = open_path(name, image, trouble);
    bool is_missing = code < 0 && trouble->refusal == IMAGE_REFUSAL_MISSING;
    if (is_missing && image_name_explain(name, words, sizeof(words)))
        return image_refuse(trouble, IMAGE_REFUSAL_REMOTE, "%s", words);
    if (code == 0 && (code = open_kind(image, trouble)) < 0 && trouble->refusal)
        fail_wrap(&trouble->fail, "%.200s", name);
    return code < 0 ? code : make_key(image, trouble);
}

int image_open(const char *name, struct image *ret, struct image_trouble *trouble)
{
    struct image image = {.file = -1};
    int code = strcmp(name, "host") == 0 ? 0 : open_image(name, &image, trouble);
    if (code < 0) {
        image_close(&image);
        return code;
    }
    *ret = image;
    return 0;
}

/* ---- unpacking ---------------------------------------------------------------------------------- */

int image_count(struct image *image, struct rootfs *rootfs)
{
    if (image->squashfs)
        return squashfs_count(image->squashfs, rootfs);
    if (image->oci)
        rootfs->counts.bytes = oci_size(image->oci);
    return 0;
}

int image_write_config(const struct image *image, const char *path, struct image_trouble *trouble)
{
    struct image_config config = {0};
    struct fail fail = {0};
    if (!image->oci)
        return 0;
    AUTO_FREE char *text = json_dumps(oci_config(image->oci), 0);
    if (!text)
        return image_fail(trouble, -ENOMEM, "out of memory");
    if (image_config_parse(slice_from_str(text), &config, &fail) < 0)
        return image_refuse(trouble, IMAGE_REFUSAL_OCI_DOCUMENT, "%s", fail.text);
    json_t *json = image_config_json(&config);
    int written = json ? json_dump_file(json, path, JSON_INDENT(2)) : -1;
    json_decref(json);
    image_config_finish(&config);
    return written < 0 ? image_fail_errno(trouble, "write", path) : 0;
}

static int check_unchanged(const struct image *image, struct image_trouble *trouble)
{
    struct stat now;
    if (fstat(image->file, &now) == 0 && now.st_size == image->stat.st_size &&
        now.st_mtim.tv_sec == image->stat.st_mtim.tv_sec && now.st_mtim.tv_nsec == image->stat.st_mtim.tv_nsec)
        return 0;
    return image_refuse(trouble, IMAGE_REFUSAL_CHANGED, "%.200s changed while it was read", image->path);
}

int image_unpack(struct image *image, struct rootfs *rootfs)
{
    int code = image->squashfs ? squashfs_unpack(image->squashfs, rootfs)
               : image->oci    ? oci_unpack(image->oci, rootfs)
                               : copy_directory(image->file, rootfs);
    if (code == 0 && image->squashfs)
        code = check_unchanged(image, rootfs->trouble);
    if (code < 0 && rootfs->trouble->refusal)
        fail_wrap(&rootfs->trouble->fail, "%.200s", image->path);
    return code;
}
