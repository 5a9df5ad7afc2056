#include "workers/images/users.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/buffer.h"
#include "common/base/cleanup.h"
#include "common/base/slice.h"
#include "workers/files/open_below.h"
#include "workers/sandbox/container/host_image.h"
#include "workers/sandbox/container/mounts.h"

enum { NAME, ID = 2, PASSWD_GID = 3, PASSWD_HOME = 5 };

/* ---- lines ---------------------------------------------------------------------------------- */

static struct slice field_of(struct slice line, size_t number)
{
    for (; number > 0; number--) {
        const uint8_t *colon = memchr(line.data, ':', line.len);
        if (!colon)
            return (struct slice){0};
        line.len -= (size_t)(colon + 1 - line.data);
        line.data = colon + 1;
    }
    const uint8_t *end = line.len ? memchr(line.data, ':', line.len) : NULL;
    return slice_of(line.data, end ? (size_t)(end - line.data) : line.len);
}

/* A field, from 0 on, of the first line whose field `by` is `value`; empty: there is none. */
static struct slice users_field(struct slice file, size_t by, const char *value, size_t wanted)
{
    while (file.len > 0) {
        const uint8_t *end = memchr(file.data, '\n', file.len);
        const struct slice line = slice_of(file.data, end ? (size_t)(end - file.data) : file.len);
        if (slice_is(field_of(line, by), value))
            return field_of(line, wanted);
        const size_t used = line.len + (end != NULL);
        file = slice_of(file.data + used, file.len - used);
    }
    return (struct slice){0};
}

/* ---- files ---------------------------------------------------------------------------------- */

static int read_from(const char *root, const char *path, struct buffer *ret)
{
    struct stat it;
    AUTO_CLOSE int top = open(host_image_is(root) ? "/" : root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    AUTO_CLOSE int file = top < 0 ? -1 : open_in_root(top, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
    if (file < 0 || fstat(file, &it) < 0 || !S_ISREG(it.st_mode) || it.st_size > USERS_FILE_MAX)
        return -ENOENT;
    uint8_t *room = buffer_reserve(ret, (size_t)it.st_size + 1);
    ssize_t got = room ? read(file, room, (size_t)it.st_size) : -1;
    ret->len = got < 0 ? 0 : (size_t)got;
    return 0;
}

static void read_first(const char *const *roots, size_t count, const char *path, struct buffer *ret)
{
    for (size_t i = 0; i < count; i++)
        if (read_from(roots[i], path, ret) == 0)
            return;
}

/* ---- in order ------------------------------------------------------------------------------- */

static bool read_id(struct slice text, uint32_t *ret)
{
    uint64_t id = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] < '0' || text.data[i] > '9' || id > USERS_ID_MAX)
            return false;
        id = id * 10 + (uint64_t)(text.data[i] - '0');
    }
    *ret = (uint32_t)id;
    return text.len > 0 && id <= USERS_ID_MAX;
}

static int find_user(struct slice passwd, const char *user, struct user_entry *ret, struct fail *fail)
{
    const bool is_number = read_id(slice_from_str(user), &ret->uid);
    const size_t by = is_number ? ID : NAME;
    const struct slice id = users_field(passwd, by, user, ID), gid = users_field(passwd, by, user, PASSWD_GID),
                       home = users_field(passwd, by, user, PASSWD_HOME);
    ret->gid = ret->uid;
    if (!is_number && !read_id(id, &ret->uid))
        return fail_set(fail, -EINVAL, "there is no user %.64s in the image's /etc/passwd", user);
    if (id.len > 0 && !read_id(gid, &ret->gid))
        return fail_set(fail, -EINVAL, "the user %.64s has no group in the image's /etc/passwd", user);
    snprintf(ret->home, sizeof(ret->home), "%.*s", SLICE_ARG(home));
    return 0;
}

static int find_group(struct slice groups, const char *group, uint32_t *ret, struct fail *fail)
{
    if (read_id(slice_from_str(group), ret) || read_id(users_field(groups, NAME, group, ID), ret))
        return 0;
    return fail_set(fail, -EINVAL, "there is no group %.64s in the image's /etc/group", group);
}

int users_find(const char *const *roots, size_t count, const char *text, struct user_entry *ret, struct fail *fail)
{
    AUTO_BUFFER passwd = {0};
    AUTO_BUFFER groups = {0};
    const char *colon = strchr(text, ':');
    AUTO_FREE char *user = strndup(text, colon ? (size_t)(colon - text) : strlen(text));
    if (!user)
        return fail_memory(fail);
    *ret = (struct user_entry){0};
    read_first(roots, count, "etc/passwd", &passwd);
    if (colon)
        read_first(roots, count, "etc/group", &groups);
    int code = find_user(buffer_peek(&passwd), user, ret, fail);
    return code == 0 && colon ? find_group(buffer_peek(&groups), colon + 1, &ret->gid, fail) : code;
}
