/*
 * edit_file.h - files of a sandbox read whole and replaced at once: written beside and renamed, so
 * that whoever reads meanwhile sees the old or the new. The new one has the mode, the owner and the
 * attributes (user.*, ACLs) of the old. Where that cannot be (hard links, a directory that takes
 * no new files, another owner, an attribute that cannot be set) the file is written in place. No
 * process is started.
 *
 * All with the rights of the processes inside. Blocking reads and writes are on a thread of their
 * own (offload.h). Errors are negative errno with a sentence for the model.
 */
#ifndef SLUICE_WORKERS_TOOLS_EDIT_EDIT_FILE_H
#define SLUICE_WORKERS_TOOLS_EDIT_EDIT_FILE_H

#include <limits.h>

#include "common/base/buffer.h"
#include "workers/sandbox/sandbox.h"

enum { EDIT_FILE_MAX = 4 << 20, EDIT_ENTRIES_MAX = 1000, EDIT_FOLDERS_MAX = 100 };

struct edit_file {
    int fd; /* -1: it is not there */
    bool is_dir;
    char path[PATH_MAX]; /* its real one, links resolved; as asked when it is not there */
    mode_t mode;
    uint64_t links, size;
    struct buffer bytes; /* not of a directory */
};

/* Also when it is not there: then 0 and fd -1. edit_file_close it in any case. */
int edit_file_open(struct edit_file *file, struct sandbox *sandbox, const char *path, bool to_write, struct fail *fail);
void edit_file_close(struct edit_file *file);
/* Reads it; -EFBIG beyond EDIT_FILE_MAX. */
int edit_file_read(struct edit_file *file, struct fail *fail);
/* New content, in a file that was opened to write or is not there yet (parents are made). */
int edit_file_replace(struct edit_file *file, struct sandbox *sandbox, struct slice bytes, struct fail *fail);

#endif
