/*
 * image.h - what an image's name stands for, and what is in it: a directory, the host's own root,
 * a SIF, a SquashFS or an OCI image layout (a directory, or a tar of one). Names of registries are
 * refused with the command that makes a file of them. Blocking; for a program of its own
 * (sluice-image).
 */
#ifndef SLUICE_WORKERS_IMAGES_IMAGE_H
#define SLUICE_WORKERS_IMAGES_IMAGE_H

#include "workers/images/rootfs/rootfs.h"
#include "workers/images/rootfs/sif.h"

enum image_kind { IMAGE_HOST, IMAGE_DIRECTORY, IMAGE_SIF, IMAGE_SQUASHFS, IMAGE_OCI };
enum { IMAGE_KEY_SIZE = 65 };

struct oci;
struct squashfs;

struct image {
    enum image_kind kind;
    char *path;                /* real and absolute; NULL: the host */
    char *tag;                 /* OCI: as given after the path; may be NULL */
    int file;                  /* the file or directory; -1: the host */
    struct stat stat;          /* of it, when it was opened */
    char key[IMAGE_KEY_SIZE];  /* names its prepared copy */
    struct squashfs *squashfs; /* SIF, SquashFS */
    struct sif sif;
    struct oci *oci;
};

const char *image_kind_name(enum image_kind kind); /* "sif" */

/* Opens, identifies and checks; image_close it. *ret is written only on success. */
int image_open(const char *name, struct image *ret, struct image_trouble *trouble);
void image_close(struct image *image);
/* Whether it must be unpacked before a sandbox can stand on it. */
bool image_is_packed(const struct image *image);

/*
 * What unpacking writes, into rootfs->counts: exact, but for OCI layouts, whose compressed bytes
 * are all that can be known beforehand (at least so much is written), and directories (nothing).
 */
int image_count(struct image *image, struct rootfs *rootfs);
/* Writes down at `path` what it says of how it is to be run (images/config.h), where that is not in its files. */
int image_write_config(const struct image *image, const char *path, struct image_trouble *trouble);
/* Unpacks it into the rootfs, of any kind but the host. Refuses one that changed meanwhile. */
int image_unpack(struct image *image, struct rootfs *rootfs);

#endif
