/*
 * rootfs.h - a root file system being made, entry by entry, in an empty directory: what every kind
 * of image is unpacked through. Blocking; for a program of its own (sluice-image).
 *
 * Nothing is trusted. A path is resolved within the directory as the root that it will be, so no
 * ".." and no symlink leads out. All is owned by us; set-id bits are dropped; of attributes only
 * user.* are kept, and of those none that overlayfs obeys; devices, FIFOs and sockets are left out
 * and counted. Bytes, entries and levels have limits. Directories get their modes at the end.
 */
#ifndef SLUICE_WORKERS_IMAGES_ROOTFS_ROOTFS_H
#define SLUICE_WORKERS_IMAGES_ROOTFS_ROOTFS_H

#include <stdatomic.h>
#include <sys/stat.h>

#include "common/base/slice.h"
#include "workers/images/rootfs/trouble.h"

#define ROOTFS_BYTES_MAX (UINT64_C(256) << 30)
#define ROOTFS_FILE_MAX (UINT64_C(16) << 40) /* of one file, with its holes: more than ext4 takes */
enum { ROOTFS_ENTRIES_MAX = 8 << 20 };

struct rootfs_limits {
    uint64_t bytes, entries;
};

struct rootfs_counts {
    uint64_t bytes, entries;               /* written; holes are no bytes */
    uint64_t devices, sockets, attributes; /* left out; FIFOs are counted with the sockets */
    uint64_t unreadable;                   /* left out, of a directory that is copied */
};

struct rootfs_pending;
struct rootfs {
    int root; /* borrowed */
    struct rootfs_limits limits;
    struct rootfs_counts counts;
    const atomic_bool *stop;
    void (*progress)(void *arg, const struct rootfs_counts *counts); /* may be NULL */
    void *progress_arg;
    struct image_trouble *trouble;
    /* its own */
    struct rootfs_pending *pending;
    size_t pending_count, pending_capacity;
    char *parent_path; /* of the directory that is open as `parent` */
    int parent;
};

struct rootfs_entry {
    const char *path; /* clean (dirtree.h) */
    mode_t mode;
    struct timespec mtime;
};

void rootfs_init(struct rootfs *rootfs, int root, const struct rootfs_limits *limits, const atomic_bool *stop,
                 struct image_trouble *trouble);
/* Gives directories their modes and times. */
int rootfs_complete(struct rootfs *rootfs);
void rootfs_finish(struct rootfs *rootfs);

/* ---- entries; each returns 0 or negative with the rootfs' trouble ------------------------------ */

/* Counts an entry, looks whether to stop, says how far it is. Called first for each. */
int rootfs_step(struct rootfs *rootfs);
/* What is there already and is no directory gives way; a directory stays with what is in it. */
int rootfs_add_dir(struct rootfs *rootfs, const struct rootfs_entry *entry);
/* These replace what is there, a directory with all in it included. */
int rootfs_add_symlink(struct rootfs *rootfs, const struct rootfs_entry *entry, const char *target);
int rootfs_add_link(struct rootfs *rootfs, const struct rootfs_entry *entry, const char *target);
/* An empty file, open for writing, which is to be `size` bytes long. */
int rootfs_open_file(struct rootfs *rootfs, const struct rootfs_entry *entry, uint64_t size);
int rootfs_write(struct rootfs *rootfs, int file, const void *data, size_t len, uint64_t offset);
/* Its size (a hole where nothing was written), mode and time. Does not close it. */
int rootfs_end_file(struct rootfs *rootfs, int file, const struct rootfs_entry *entry, uint64_t size);
/* user.* attributes; `name` whole. Others are counted and left out. */
int rootfs_set_attribute(struct rootfs *rootfs, const char *path, const char *name, struct slice value);
/* Bytes that are read and kept nowhere: counted as those written are, so that they have an end. */
int rootfs_pass_over(struct rootfs *rootfs, uint64_t bytes);
/* A file type (S_IFCHR ...) that no image of ours has: counted. */
void rootfs_leave_out(struct rootfs *rootfs, mode_t type);
/* Removes what is at a path, all of it; nothing there is fine. */
int rootfs_remove(struct rootfs *rootfs, const char *path);

#endif
