/*
 * dirtree.h - directory trees that become lower directories of an overlay, built without leaving
 * them: every path is resolved below `root`, and a symlink on the way is refused. Blocking.
 *
 * A whiteout is a character device 0/0, which the kernel lets anyone make (Linux 5.8); where the
 * file system refuses those, an empty file marked user.overlay.whiteout in a directory marked
 * user.overlay.opaque=x (understood by Linux 6.7). Format: kernel, overlayfs.rst.
 */
#ifndef SLUICE_WORKERS_FILES_DIRTREE_H
#define SLUICE_WORKERS_FILES_DIRTREE_H

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "common/files/dirtree_remove.h"
#include "common/base/fail.h"
#include "common/base/slice.h"

#define TREE_OPAQUE_XATTR "user.overlay.opaque"
#define TREE_WHITEOUT_XATTR "user.overlay.whiteout"
enum { TREE_DEPTH_MAX = DIRTREE_REMOVE_DEPTH };

/* ---- paths -------------------------------------------------------------------------------- */

/*
 * Relative, without ".", ".." or doubled slashes; "" is the root. The caller frees it. NULL:
 * absolute, leads out, longer than PATH_MAX, deeper than TREE_DEPTH_MAX, or no memory.
 */
char *dirtree_clean_path(const char *path);
const char *dirtree_leaf(const char *clean); /* its last name */
/* The path of `name` in `dir`, and that of the directory that `path`, which has a slash, is in; the caller frees them.
 * NULL: no memory. */
char *dirtree_join(const char *dir, const char *name);
char *dirtree_parent(const char *path);
/* As dirtree_join of paths below a root, which is "". */
char *dirtree_join_below(const char *dir, const char *name);
/* Of clean paths: whether it is `dir`, or lies in it. */
bool dirtree_is_at_or_in(const char *path, const char *dir);

/* ---- below `root`; paths are clean. -1 with errno ------------------------------------------- */

int dirtree_open(int root, const char *path, uint64_t flags);
/*
 * One name of ours, of this mode, which may lack the right for its owner, who we are. That is given, to a file for as
 * long as it takes to open it, to one caller after the other; to a directory until dirtree_leave_own, which is to be
 * called before it is closed.
 */
int dirtree_open_own(int dir, const char *name, int flags, mode_t mode);
void dirtree_leave_own(int fd, mode_t mode);
/* The directory that `path` is in, made (mode 0755) with those above it where missing; O_PATH. */
int dirtree_open_parent(int root, const char *path);
/* What is there already stays. */
int dirtree_white_out(int parent, const char *name);
/* Of a name of ours in a tree of ours; `it` is its lstat. */
bool dirtree_is_whiteout(int parent, const char *name, const struct stat *it);
/* Of a directory: nothing is seen in it of what the layers below have. */
bool dirtree_is_opaque(int dir);
int dirtree_set_opaque(int dir);
int dirtree_write_at(int fd, const void *data, size_t len, int64_t offset);

/* "cannot WHAT PATH: " and errno's words; returns -errno. */
int dirtree_refuse(struct fail *fail, const char *what, const char *path);

/* ---- whole steps; any relative path. 0 or negative errno ------------------------------------ */

int dirtree_write(int root, const char *path, struct slice content, mode_t mode, struct fail *fail);
/* A directory, empty but for what is put into it here: hides what lies at `path` in the layers below. */
int dirtree_make_opaque(int root, const char *path, mode_t mode, struct fail *fail);
/* Hides what lies at `path` in the layers below. */
int dirtree_hide(int root, const char *path, struct fail *fail);

#endif
