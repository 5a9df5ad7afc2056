#include "workers/tools/ipython/jupyter_spec.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/text.h"

enum { SPEC_MAX = 65536, NAME_MAX_LEN = 64 };

static const char *const directories[] = {"/workspace/.local/share/jupyter/kernels",
                                          "/usr/local/share/jupyter/kernels",
                                          "/usr/share/jupyter/kernels",
                                          "/opt/conda/share/jupyter/kernels"};

static bool is_name(const char *name)
{
    size_t len = strlen(name);
    for (size_t i = 0; i < len; i++)
        if (!isalnum((unsigned char)name[i]) && !strchr("._-", name[i]))
            return false;
    return len > 0 && len <= NAME_MAX_LEN && name[0] != '.';
}

static json_t *load(struct sandbox *sandbox, const char *name)
{
    char path[256];
    AUTO_FREE char *text = malloc(SPEC_MAX);
    for (size_t i = 0; text && i < sizeof(directories) / sizeof(*directories); i++) {
        struct fail fail;
        snprintf(path, sizeof(path), "%s/%s/kernel.json", directories[i], name);
        AUTO_CLOSE int fd = sandbox_open_file(sandbox, path, O_RDONLY, 0, &fail);
        ssize_t got = fd < 0 ? -1 : read(fd, text, SPEC_MAX);
        if (got > 0)
            return text_is_shallow(slice_of(text, (size_t)got), TEXT_LEVELS_MAX)
                       ? json_loadb(text, (size_t)got, 0, NULL)
                       : NULL;
    }
    return NULL;
}

/* The argument with {connection_file} replaced. */
static char *fill_in(const char *argument, const char *connection_file)
{
    static const char mark[] = "{connection_file}";
    AUTO_BUFFER text = {0};
    const char *at = strstr(argument, mark);
    if (at)
        buffer_printf(&text, "%.*s%s%s", (int)(at - argument), argument, connection_file,
                      at + strlen(mark));
    else
        buffer_append_str(&text, argument);
    return buffer_take_str(&text);
}

/* /usr/bin/env finds programs and sets variables. */
static bool add(struct jupyter_spec *spec, size_t *count, char *argument)
{
    if (*count == JUPYTER_ARGS_MAX || !argument) {
        free(argument);
        return false;
    }
    spec->argv[(*count)++] = argument;
    return true;
}

static bool read_spec(const json_t *json, const char *connection_file, struct jupyter_spec *ret)
{
    const json_t *argv = json_object_get(json, "argv"), *value;
    json_t *environment = json_object_get(json, "env");
    const char *key, *mode = json_string_value(json_object_get(json, "interrupt_mode"));
    size_t count = 0, i;
    bool good = json_array_size(argv) > 0 && add(ret, &count, strdup("/usr/bin/env"));
    json_object_foreach(environment, key, value) {
        AUTO_BUFFER text = {0};
        if (!json_is_string(value) || strchr(key, '='))
            return false;
        buffer_printf(&text, "%s=%s", key, json_string_value(value));
        good = good && add(ret, &count, buffer_take_str(&text));
    }
    json_array_foreach(argv, i, value)
        good = good && json_is_string(value) &&
               add(ret, &count, fill_in(json_string_value(value), connection_file));
    ret->by_message = mode && strcmp(mode, "message") == 0;
    return good;
}

int jupyter_spec_read(struct sandbox *sandbox, const char *name, const char *connection_file,
                      struct jupyter_spec *ret, struct fail *fail)
{
    *ret = (struct jupyter_spec){0};
    json_t *json = is_name(name) ? load(sandbox, name) : NULL;
    if (!json)
        return fail_set(fail, -EINVAL, "there is no Jupyter kernel \"%.64s\" in the image", name);
    bool good = read_spec(json, connection_file, ret);
    json_decref(json);
    if (good)
        return 0;
    jupyter_spec_finish(ret);
    return fail_set(fail, -EINVAL, "the kernelspec %s is not understood", name);
}

void jupyter_spec_finish(struct jupyter_spec *spec)
{
    for (size_t i = 0; i < JUPYTER_ARGS_MAX; i++)
        free(spec->argv[i]);
    *spec = (struct jupyter_spec){0};
}
