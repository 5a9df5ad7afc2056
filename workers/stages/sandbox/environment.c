#include "workers/stages/sandbox/environment.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "workers/runtime/offload.h"
#include "workers/images/users.h"

enum { USUAL_ID = 1000 };

void environment_finish(struct environment *environment) { image_config_finish(&environment->values); }

/* ---- the user ------------------------------------------------------------------------------- */

struct lookup {
    const struct environment_sources *sources;
    const char *text;
    struct user_entry found;
    struct fail *fail;
};

static int lookup_work(void *arg, const atomic_bool *stop)
{
    struct lookup *lookup = arg;
    (void)stop;
    return users_find(lookup->sources->roots, lookup->sources->root_count, lookup->text, &lookup->found, lookup->fail);
}

/* Root is uid 0 in every image, also in one that lists no users. */
static bool is_root(const char *text)
{
    return strcmp(text, "root") == 0 || strcmp(text, "0") == 0 || strcmp(text, "root:root") == 0 ||
           strcmp(text, "0:0") == 0;
}

static int find_user(const struct environment_sources *sources, struct environment *ret, char home[USERS_HOME_SIZE],
                     struct fail *fail)
{
    const char *text = sources->user ? sources->user : sources->image->user;
    home[0] = '\0';
    if (!text)
        return 0;
    ret->has_user = true;
    if (is_root(text)) {
        strcpy(home, "/root");
        return 0;
    }
    struct lookup lookup = {.sources = sources, .text = text, .fail = fail};
    int code = offload_run(lookup_work, &lookup, fail);
    if (code < 0)
        return code;
    ret->user = (struct sandbox_user){lookup.found.uid, lookup.found.gid};
    strcpy(home, lookup.found.uid == 0 && !lookup.found.home[0] ? "/root" : lookup.found.home);
    ret->has_user = ret->user.uid != USUAL_ID || ret->user.gid != USUAL_ID || home[0];
    return 0;
}

/* ---- variables ------------------------------------------------------------------------------ */

static int add_variables(const struct task_variables *variables, struct image_config *ret)
{
    int code = 0;
    for (size_t i = 0; variables && i < variables->count && code == 0; i++) {
        const char *text = variables->each[i], *equals = strchr(text, '=');
        AUTO_FREE char *name = strndup(text, (size_t)(equals - text));
        code = name ? image_config_set(ret, name, equals + 1) : -ENOMEM;
    }
    return code;
}

static int merge(const struct environment_sources *sources, const char *home, struct environment *ret,
                 struct fail *fail)
{
    if (!image_config_copy(sources->image, &ret->values))
        return fail_memory(fail);
    int code = home[0] && !image_config_get(&ret->values, "HOME") ? image_config_set(&ret->values, "HOME", home) : 0;
    for (size_t i = 0; i < 2 && code == 0; i++)
        code = add_variables(sources->variables[i], &ret->values);
    if (code == -ENOMEM)
        return fail_memory(fail);
    return code < 0 ? fail_set(fail, -EINVAL,
                               "the environment of image and task together has more than %d variables or %d bytes",
                               IMAGE_VARIABLES_MAX, IMAGE_VARIABLES_BYTES_MAX)
                    : 0;
}

int environment_make(const struct environment_sources *sources, struct environment *ret, struct fail *fail)
{
    char home[USERS_HOME_SIZE];
    *ret = (struct environment){.workdir = sources->workdir ? sources->workdir : sources->image->workdir};
    int code = find_user(sources, ret, home, fail);
    if (code == 0)
        code = merge(sources, home, ret, fail);
    if (code < 0)
        environment_finish(ret);
    return code;
}
