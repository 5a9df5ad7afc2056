#include "workers/engines/models/model_dir.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/url.h"
#include "workers/engines/models/model_files.h"

/* ---- those of a worker ------------------------------------------------------------------------------------------ */

static void model_dir_finish(struct model_dir *model)
{
    free(model->url);
    tokenizer_destroy(&model->tokenizer);
    jinja_destroy(&model->template);
    json_decref(model->names);
    tokens_finish(&model->ends);
    *model = (struct model_dir){0};
}

/* The URL in front, where there is one, and the directory. */
static int read_given(const char *given, struct model_dir *ret, struct fail *fail)
{
    const bool has_url = strncmp(given, "http://", 7) == 0 || strncmp(given, "https://", 8) == 0;
    const char *equals = strchr(given, '=');
    struct url url;
    if (has_url && !equals)
        return fail_set(fail, -EINVAL, "--model-dir wants DIR or URL=DIR, not a URL alone");
    if (has_url && url_parse(slice_of(given, (size_t)(equals - given)), &url, fail) < 0)
        return fail_wrap(fail, "--model-dir");
    ret->path = has_url ? equals + 1 : given;
    if (has_url && !(ret->url = strdup(url.base)))
        return fail_memory(fail);
    return *ret->path ? 0 : fail_set(fail, -EINVAL, "--model-dir wants a directory");
}

int model_dirs_add(struct model_dirs *dirs, const char *given, uint64_t context, struct fail *fail)
{
    if (dirs->count == MODEL_DIRS_MAX)
        return fail_set(fail, -EINVAL, "more than %d model directories", MODEL_DIRS_MAX);
    struct model_dir *model = &dirs->list[dirs->count];
    int error = read_given(given, model, fail);
    if (error == 0)
        error = model_files_read(model, context, fail);
    if (error < 0)
        model_dir_finish(model);
    else
        dirs->count++;
    return error;
}

void model_dirs_finish(struct model_dirs *dirs)
{
    while (dirs->count > 0)
        model_dir_finish(&dirs->list[--dirs->count]);
}

const struct model_dir *model_dirs_find(const struct model_dirs *dirs, const char *url)
{
    const struct model_dir *any = NULL;
    for (size_t i = 0; dirs && i < dirs->count; i++) {
        const struct model_dir *model = &dirs->list[i];
        if (model->url && strcmp(model->url, url) == 0)
            return model;
        any = model->url || any ? any : model;
    }
    return any;
}

/* ---- text and ids ------------------------------------------------------------------------------------------------ */

static json_t *globals_of(const struct model_dir *model, const struct task_message *messages, size_t count)
{
    json_t *globals = json_copy(model->names), *list = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(list, json_pack("{s:s,s:s}", "role", messages[i].role, "content", messages[i].content));
    const bool is_whole = json_array_size(list) == count;
    json_object_set_new(globals, "messages", list);
    json_object_set_new(globals, "tools", json_null());
    json_object_set_new(globals, "documents", json_null());
    json_object_set_new(globals, "add_generation_prompt", json_true());
    if (!is_whole) {
        json_decref(globals);
        return NULL;
    }
    return globals;
}

int model_dir_render(const struct model_dir *model, const struct task_message *messages, size_t count,
                     struct buffer *ret, struct fail *fail)
{
    json_t *globals = globals_of(model, messages, count);
    if (!globals)
        return fail_set(fail, -EINVAL, "a message is not UTF-8");
    int error = jinja_render(model->template, globals, ret, fail);
    json_decref(globals);
    return error;
}

int model_dir_encode(const struct model_dir *model, struct slice text, bool specials, struct tokens *ret,
                     struct fail *fail)
{
    struct fail why = {0};
    int error = tokenizer_encode_alone(model->tokenizer, text, specials, ret, &why);
    if (error == -ENOTSUP)
        return fail_set(fail, -EINVAL, "the tokenizer of %s cannot do this exactly: %s", model->path, why.text);
    return error < 0 ? fail_set(fail, error, "%s", why.text) : 0;
}

int model_dir_say(const struct model_dir *model, const struct tokens *ids, size_t count, struct buffer *ret,
                  struct fail *fail)
{
    for (size_t i = 0; i < count; i++) {
        const struct tokens one = {.ids = &ids->ids[i], .count = 1};
        if (!tokenizer_decode(model->tokenizer, &one, ret))
            return ret->failed
                       ? fail_memory(fail)
                       : fail_set(fail, -EPROTO, "token %u is none of the tokenizer in %s", ids->ids[i], model->path);
    }
    return 0;
}
