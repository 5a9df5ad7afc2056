#include "workers/stages/sandbox/parents.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/cleanup.h"
#include "workers/files/dirtree.h"

static int refuse_file(struct fail *fail)
{
    return fail_set(fail, -EBADMSG, "the layer of init does not say which layers of its build it stands on");
}

static bool parse(char *text, struct parents *ret)
{
    for (char *line = text; *line; ret->count++) {
        char *end = strchr(line, '\n');
        if (!end || ret->count == PARENTS_MAX)
            return false;
        *end = '\0';
        if (!digest_is_valid(line))
            return false;
        strcpy(ret->each[ret->count], line);
        line = end + 1;
    }
    return true;
}

int parents_read(const char *root, struct parents *ret, struct fail *fail)
{
    char text[PARENTS_MAX * DIGEST_SIZE + 1];
    struct stat it;
    AUTO_CLOSE int dir = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    AUTO_CLOSE int file = dir < 0 ? -1 : openat(dir, &PARENTS_FILE[1], O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0 || fstat(file, &it) < 0 || !S_ISREG(it.st_mode) || it.st_size >= (off_t)sizeof(text))
        return refuse_file(fail);
    ssize_t len = read(file, text, sizeof(text) - 1);
    text[len < 0 ? 0 : len] = '\0';
    ret->count = 0;
    return len >= 0 && parse(text, ret) ? 0 : refuse_file(fail);
}

void parents_write(const struct parents *parents, struct buffer *ret)
{
    for (size_t i = 0; i < parents->count; i++)
        buffer_printf(ret, "%s\n", parents->each[i]);
}

int parents_layers(const struct layers *of, struct layers *ret, char **ret_path, struct fail *fail)
{
    *ret_path = dirtree_join(of->store, PARENTS_STORE);
    *ret = *of;
    ret->store = *ret_path;
    ret->keeps_all = true;
    return *ret_path ? 0 : fail_memory(fail);
}
