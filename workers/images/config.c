#include "workers/images/config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/buffer.h"
#include "common/base/cleanup.h"
#include "schemas/task/task.h"
#include "workers/files/dirtree.h"
#include "workers/images/exports.h"

#define BESIDE ".config.json"

void image_config_finish(struct image_config *config)
{
    for (size_t i = 0; i < config->variable_count; i++)
        free(config->variables[i]);
    free(config->variables);
    free(config->user);
    free(config->workdir);
    *config = (struct image_config){0};
}

/* ---- variables ------------------------------------------------------------------------------ */

static char **find(const struct image_config *config, const char *name)
{
    const size_t len = strlen(name);
    for (size_t i = 0; i < config->variable_count; i++)
        if (strncmp(config->variables[i], name, len) == 0 && config->variables[i][len] == '=')
            return &config->variables[i];
    return NULL;
}

const char *image_config_get(const struct image_config *config, const char *name)
{
    char **at = find(config, name);
    return at ? *at + strlen(name) + 1 : NULL;
}

static int add(struct image_config *config, char *variable)
{
    if (config->variable_count == IMAGE_VARIABLES_MAX) {
        free(variable);
        return -E2BIG;
    }
    char **more = reallocarray(config->variables, config->variable_count + 1, sizeof(*more));
    if (!more) {
        free(variable);
        return -ENOMEM;
    }
    config->variables = more;
    config->variables[config->variable_count++] = variable;
    return 0;
}

int image_config_set(struct image_config *config, const char *name, const char *value)
{
    char *variable = NULL, **at = find(config, name);
    const size_t before = at ? strlen(*at) + 1 : 0, size = strlen(name) + strlen(value) + 2;
    if (!task_variable_is_valid(name) || strncmp(name, "SLUICE_", 7) == 0)
        return -EINVAL;
    if (config->bytes - before + size > IMAGE_VARIABLES_BYTES_MAX)
        return -E2BIG;
    if (asprintf(&variable, "%s=%s", name, value) < 0)
        return -ENOMEM;
    config->bytes = config->bytes - before + size;
    if (!at)
        return add(config, variable);
    free(*at);
    *at = variable;
    return 0;
}

bool image_config_copy(const struct image_config *from, struct image_config *ret)
{
    *ret = (struct image_config){.bytes = from->bytes};
    bool good = (!from->user || (ret->user = strdup(from->user))) &&
                (!from->workdir || (ret->workdir = strdup(from->workdir)));
    if (good && from->variable_count > 0)
        good = (ret->variables = calloc(from->variable_count, sizeof(*ret->variables))) != NULL;
    for (size_t i = 0; good && i < from->variable_count; i++)
        if ((good = (ret->variables[i] = strdup(from->variables[i])) != NULL))
            ret->variable_count++;
    if (!good)
        image_config_finish(ret);
    return good;
}

/* ---- OCI's form ----------------------------------------------------------------------------- */

static int refuse_config(struct fail *fail, const char *what)
{
    return fail_set(fail, -EINVAL, "the image's config: %s", what);
}

static int read_variable(const json_t *json, struct image_config *ret, struct fail *fail)
{
    const char *text = json_string_value(json), *equals = text ? strchr(text, '=') : NULL;
    if (!equals)
        return refuse_config(fail, "an element of Env is not NAME=VALUE");
    AUTO_FREE char *name = strndup(text, (size_t)(equals - text));
    int code = name ? image_config_set(ret, name, equals + 1) : -ENOMEM;
    if (code == -E2BIG)
        return refuse_config(fail, "Env holds more than a sandbox's environment may");
    return code == -ENOMEM ? fail_memory(fail) : 0; /* of a name that no shell could use nothing comes */
}

static int read_text(const json_t *object, const char *name, char **ret, struct fail *fail)
{
    const json_t *value = json_object_get(object, name);
    if (!value || json_is_null(value) || (json_is_string(value) && json_string_length(value) == 0))
        return 0;
    if (!json_is_string(value) || json_string_length(value) >= 4096)
        return refuse_config(fail, "User or WorkingDir is not a text, or is too long");
    *ret = strdup(json_string_value(value));
    return *ret ? 0 : fail_memory(fail);
}

static int read_document(const json_t *json, struct image_config *ret, struct fail *fail)
{
    const json_t *config = json_object_get(json, "config"), *one;
    size_t i;
    config = config ? config : json;
    if (!json_is_object(config) && !json_is_null(config))
        return refuse_config(fail, "config is not an object");
    const json_t *variables = json_object_get(config, "Env");
    if (variables && !json_is_array(variables) && !json_is_null(variables))
        return refuse_config(fail, "Env is not a list");
    int code = read_text(config, "User", &ret->user, fail);
    if (code == 0)
        code = read_text(config, "WorkingDir", &ret->workdir, fail);
    if (code == 0 && ret->user && !task_user_is_valid(ret->user))
        code = refuse_config(fail, "User is neither a user nor user:group");
    if (code == 0 && ret->workdir && (ret->workdir[0] != '/' || path_climbs(ret->workdir)))
        code = refuse_config(fail, "WorkingDir is not an absolute path");
    json_array_foreach(variables, i, one) code = code < 0 ? code : read_variable(one, ret, fail);
    return code;
}

int image_config_parse(struct slice text, struct image_config *ret, struct fail *fail)
{
    *ret = (struct image_config){0};
    json_t *json = json_loadb((const char *)text.data, text.len, JSON_REJECT_DUPLICATES, NULL);
    int code = json_is_object(json) ? read_document(json, ret, fail) : refuse_config(fail, "it is not a JSON object");
    json_decref(json);
    if (code < 0)
        image_config_finish(ret);
    return code;
}

json_t *image_config_json(const struct image_config *config)
{
    json_t *variables = json_array(), *inner = json_object();
    for (size_t i = 0; i < config->variable_count; i++)
        json_array_append_new(variables, json_string(config->variables[i]));
    if (config->variable_count > 0)
        json_object_set(inner, "Env", variables);
    if (config->workdir)
        json_object_set_new(inner, "WorkingDir", json_string(config->workdir));
    if (config->user)
        json_object_set_new(inner, "User", json_string(config->user));
    json_decref(variables);
    return json_pack("{s:o}", "config", inner);
}

/* ---- where it is ---------------------------------------------------------------------------- */

/* 1: it is there and was read; 0: it is not there. A link, a FIFO and what is too long are refused. */
static int read_whole(int dir, const char *path, struct buffer *ret, struct fail *fail)
{
    struct stat it;
    AUTO_CLOSE int file = openat(dir, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP || errno == ENAMETOOLONG))
        return 0;
    if (file < 0 || fstat(file, &it) < 0)
        return fail_set(fail, -EIO, "%.300s: %s", path, strerror(errno));
    if (!S_ISREG(it.st_mode) || it.st_size > IMAGE_CONFIG_MAX)
        return fail_set(fail, -EINVAL, "%.300s is not a file of at most %d bytes", path, IMAGE_CONFIG_MAX);
    uint8_t *room = buffer_reserve(ret, (size_t)it.st_size + 1);
    ssize_t got = room ? read(file, room, (size_t)it.st_size) : -1;
    if (got < 0)
        return fail_set(fail, room ? -errno : -ENOMEM, "%.300s cannot be read", path);
    ret->len = (size_t)got;
    return 1;
}

static int load_document(const char *path, struct image_config *ret, struct fail *fail)
{
    AUTO_BUFFER text = {0};
    int code = read_whole(AT_FDCWD, path, &text, fail);
    if (code <= 0)
        return code;
    code = image_config_parse(buffer_peek(&text), ret, fail);
    if (code < 0)
        fail_wrap(fail, "%.300s", path);
    return code < 0 ? code : 1;
}

static int is_script(const struct dirent *entry)
{
    const char *end = strrchr(entry->d_name, '.');
    return end && strcmp(end, ".sh") == 0;
}

static int read_scripts(int dir, struct dirent **names, int count, struct image_config *ret, struct fail *fail)
{
    int code = 0;
    for (int i = 0; i < count && code == 0; i++) {
        AUTO_BUFFER text = {0};
        code = read_whole(dir, names[i]->d_name, &text, fail);
        if (code == 1 && (code = image_config_read_exports(buffer_peek(&text), ret)) < 0)
            fail_set(fail, code == -E2BIG ? -EINVAL : code, "the image's /.singularity.d/env says too much");
    }
    return code < 0 ? fail->code : 0;
}

/* No link is followed on the way there, so none leads out of the image. */
static int load_apptainers(const char *root, struct image_config *ret, struct fail *fail)
{
    struct dirent **names = NULL;
    AUTO_CLOSE int top = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    AUTO_CLOSE int there = top < 0 ? -1 : openat(top, ".singularity.d", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    AUTO_CLOSE int dir = there < 0 ? -1 : openat(there, "env", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int count = dir < 0 ? -1 : scandirat(dir, ".", &names, is_script, alphasort);
    if (count < 0)
        return 0;
    int code = read_scripts(dir, names, count, ret, fail);
    for (int i = 0; i < count; i++)
        free(names[i]);
    free(names);
    return code;
}

int image_config_load(const char *name, const char *root, const char *prepared, struct image_config *ret,
                      struct fail *fail)
{
    AUTO_FREE char *beside = NULL;
    AUTO_FREE char *own = prepared ? dirtree_join(prepared, IMAGE_CONFIG_NAME) : NULL;
    *ret = (struct image_config){0};
    if (asprintf(&beside, "%s" BESIDE, name) < 0) {
        beside = NULL;
        return fail_memory(fail);
    }
    int code = load_document(beside, ret, fail);
    if (code == 0 && own)
        code = load_document(own, ret, fail);
    if (code == 0)
        code = load_apptainers(root, ret, fail);
    if (code < 0)
        image_config_finish(ret);
    return code < 0 ? code : 0;
}
