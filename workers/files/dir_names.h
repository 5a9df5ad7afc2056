/* dir_names.h - the names in a directory, all of them, in the order of their bytes. */
#ifndef SLUICE_WORKERS_FILES_DIR_NAMES_H
#define SLUICE_WORKERS_FILES_DIR_NAMES_H

#include <stddef.h>

struct dir_names {
    char **each;
    size_t count;
};

/* -E2BIG: more than `max`; or another negative errno, errno too. dir_names_finish *ret whatever it returned; `dir`
 * stays the caller's. */
int dir_names_read(int dir, size_t max, struct dir_names *ret);
void dir_names_finish(struct dir_names *names);

#endif
