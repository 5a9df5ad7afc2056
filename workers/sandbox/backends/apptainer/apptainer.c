/* The command line of apptainer. */
#include "workers/sandbox/backends/apptainer/apptainer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"

#define COUNT(table) (sizeof(table) / sizeof(*(table)))

/* ---- the environment ------------------------------------------------------------------ */

char *const *apptainer_environment(void)
{
    static char path[] = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", home[] = "HOME=/",
                language[] = "LANG=C.UTF-8";
    static char *const environment[] = {path, home, language, NULL};
    return environment;
}

/* ---- mounts ----------------------------------------------------------------------------- */

/* "--bind FROM:TO:ro" has no way to quote these. */
static bool can_be_said(const char *path) { return path[strcspn(path, ":,\\\n\"")] == '\0'; }

int apptainer_bind(struct apptainer_command *command, const char *from, const char *to, bool is_writable,
                   struct fail *fail)
{
    if (!can_be_said(from) || !can_be_said(to))
        return fail_set(fail, -EINVAL, "apptainer cannot mount a path with one of : , \\ \" in it: %.200s",
                        can_be_said(from) ? to : from);
    if (command->bind_count == APPTAINER_BINDS_MAX)
        return fail_set(fail, -E2BIG, "more than %d mounts", APPTAINER_BINDS_MAX);
    struct apptainer_bind *bind = &command->binds[command->bind_count];
    if (snprintf(bind->from, sizeof(bind->from), "%s", from) >= (int)sizeof(bind->from) ||
        snprintf(bind->to, sizeof(bind->to), "%s", to) >= (int)sizeof(bind->to))
        return fail_set(fail, -ENAMETOOLONG, "a path is too long: %.200s", from);
    bind->is_writable = is_writable;
    command->bind_count++;
    return 0;
}

int apptainer_list_points(const struct apptainer_command *command, char ret[APPTAINER_POINTS_SIZE], struct fail *fail)
{
    size_t len = 0;
    for (size_t i = 0; i < command->bind_count; i++) {
        const struct apptainer_bind *bind = &command->binds[i];
        size_t left = APPTAINER_POINTS_SIZE - len;
        int wrote = snprintf(ret + len, left, "%c%s", bind->is_writable ? 'w' : 'r', bind->to);
        if ((size_t)wrote + 2 > left)
            return fail_set(fail, -E2BIG, "the names of the mounts have more than %d bytes", APPTAINER_POINTS_SIZE);
        len += (size_t)wrote + 1;
    }
    ret[len] = '\0';
    return 0;
}

/* ---- arguments --------------------------------------------------------------------------- */

/*
 * Namespaces of its own, but the user's, which is apptainer's to choose; nothing of the host mounted but by
 * us; no program between it and our pid 1. --contain gives /dev a handful of devices and a devpts.
 */
static const char *const before[] = {"apptainer",
                                     "--silent",
                                     "exec",
                                     "--containall",
                                     "--pid",
                                     "--no-init",
                                     "--ipc",
                                     "--uts",
                                     "--net",
                                     "--network",
                                     "none",
                                     "--hostname",
                                     "sandbox",
                                     "--no-home",
                                     "--no-eval",
                                     "--no-mount",
                                     "bind-paths,sys,cwd,home,tmp,hostfs",
                                     "--pwd",
                                     "/"};

static bool add(char **arguments, size_t *count, const char *argument)
{
    arguments[*count] = strdup(argument);
    return arguments[(*count)++] != NULL;
}

static bool add_bind(char **arguments, size_t *count, const struct apptainer_bind *bind)
{
    char text[sizeof(*bind) + 8];
    snprintf(text, sizeof(text), "%s:%s:%s", bind->from, bind->to, bind->is_writable ? "rw" : "ro");
    return add(arguments, count, "--bind") && add(arguments, count, text);
}

char **apptainer_arguments(const struct apptainer_command *command)
{
    size_t count = 0;
    char **arguments = calloc(COUNT(before) + 2 * command->bind_count + 3, sizeof(*arguments));
    bool is_whole = arguments != NULL;
    for (size_t i = 0; i < COUNT(before) && is_whole; i++)
        is_whole = add(arguments, &count, before[i]);
    for (size_t i = 0; i < command->bind_count && is_whole; i++)
        is_whole = add_bind(arguments, &count, &command->binds[i]);
    is_whole = is_whole && add(arguments, &count, command->root) && add(arguments, &count, "/.sluice/init");
    if (!is_whole && arguments)
        apptainer_free_arguments(take_ptr(&arguments));
    return arguments;
}

void apptainer_free_arguments(char **arguments)
{
    for (size_t i = 0; arguments[i]; i++)
        free(arguments[i]);
    free(arguments);
}

/* ---- version ------------------------------------------------------------------------------ */

bool apptainer_parse_version(const char *text, unsigned *major, unsigned *minor)
{
    static const char word[] = "apptainer version ";
    return strncmp(text, word, sizeof(word) - 1) == 0 && sscanf(text + sizeof(word) - 1, "%u.%u", major, minor) == 2;
}
