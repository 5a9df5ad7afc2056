#include "client/cli/programs/siblings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/cli/connect.h"

static bool is_program(const char *path) { return access(path, X_OK) == 0; }

static bool find_in_path(const char *program, char *ret, size_t size)
{
    const char *at = getenv("PATH");
    while (at && *at) {
        size_t len = strcspn(at, ":");
        int wrote = snprintf(ret, size, "%.*s/%s", (int)len, at, program);
        if (len && wrote > 0 && (size_t)wrote < size && is_program(ret))
            return true;
        at += len + (at[len] == ':');
    }
    return false;
}

int sibling_find(const char *program, const char *folder, char *ret, size_t size, struct fail *fail)
{
    char self[4096];
    ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (len > 0) {
        self[len] = '\0';
        *strrchr(self, '/') = '\0';
        if (snprintf(ret, size, "%s/%s", self, program) < (int)size && is_program(ret))
            return 0;
        char *up = strrchr(self, '/');
        int up_len = up ? (int)(up - self) : 0;
        if (snprintf(ret, size, "%.*s/%s/%s", up_len, self, folder, program) < (int)size && is_program(ret))
            return 0;
    } else {
        strcpy(self, "?");
    }
    if (find_in_path(program, ret, size))
        return 0;
    return fail_set(fail, -ENOENT, "%s is neither in %s nor in PATH", program, self);
}

int exec_sibling(const struct invocation *in, const char *program, const char *folder)
{
    char path[4096];
    struct fail fail;
    if (sibling_find(program, folder, path, sizeof(path), &fail)) {
        cli_say("%s", fail.text);
        return EXITS_FAILED;
    }
    char **argv = calloc(in->argument_count + 2, sizeof(*argv));
    if (argv) {
        argv[0] = path;
        memcpy(argv + 1, in->arguments, in->argument_count * sizeof(*argv));
        execv(path, argv);
    }
    cli_say("cannot start %s: %s", path, strerror(errno));
    free(argv);
    return EXITS_FAILED;
}
