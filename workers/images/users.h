/* users.h - the users of an image: lines of its /etc/passwd and /etc/group. */
#ifndef SLUICE_WORKERS_IMAGES_USERS_H
#define SLUICE_WORKERS_IMAGES_USERS_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/fail.h"

enum { USERS_HOME_SIZE = 1024, USERS_FILE_MAX = 1 << 20, USERS_ID_MAX = 2147483647 };

struct user_entry {
    uint32_t uid, gid;
    char home[USERS_HOME_SIZE]; /* "": no line says */
};

/*
 * `text` is USER or USER:GROUP, each by name or number. Of the roots, directories with the uppermost first ("host": the
 * host's own), the first that has the file counts; no link leads out of it. A number that no line has is a user all the
 * same, whose group is of the same number. -EINVAL: there is none of that name. Blocking.
 */
int users_find(const char *const *roots, size_t count, const char *text, struct user_entry *ret, struct fail *fail);

#endif
