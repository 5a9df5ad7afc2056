#include "workers/engines/models/model_files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/cleanup.h"
#include "common/base/text.h"
#include "common/base/utf8.h"
#include "common/digest/digest.h"
#include "schemas/tokenizer_sample.h"

enum {
    FILE_MAX = 8 << 20, /* but for tokenizer.json, which has its own */
    FILE_LEVELS_MAX = 32,
    CONTEXT_MAX = 1 << 26,
    ENDS_MAX = 64
};

/* ---- files ------------------------------------------------------------------------------------------------- */

/* A pipe would keep the start waiting for who writes to it. What is not there is for who opens it. */
static int refuse_irregular(const char *path, struct fail *fail)
{
    struct stat info;
    if (stat(path, &info) != 0 || S_ISREG(info.st_mode))
        return 0;
    return fail_set(fail, -EINVAL, "%s: it is no regular file: put the model's own there", path);
}

/* -ENOENT: there is none. */
static int read_file(const struct model_dir *model, const char *name, struct buffer *ret, struct fail *fail)
{
    AUTO_BUFFER path = {0};
    buffer_printf(&path, "%s/%s", model->path, name);
    AUTO_FREE char *text = buffer_take_str(&path);
    char chunk[16384];
    size_t len;
    const int error = text ? refuse_irregular(text, fail) : fail_memory(fail);
    if (error < 0)
        return error;
    AUTO_FCLOSE FILE *file = fopen(text, "re");
    if (!file)
        return fail_set(fail, -errno, "%s: %s", text, strerror(errno));
    while (ret->len <= FILE_MAX && (len = fread(chunk, 1, sizeof(chunk), file)) > 0)
        buffer_append(ret, chunk, len);
    if (ferror(file) || ret->failed)
        return fail_set(fail, -EIO, "%s: it cannot be read", text);
    return ret->len <= FILE_MAX ? 0 : fail_set(fail, -EINVAL, "%s: more than %d MiB", text, FILE_MAX >> 20);
}

/* An object; *ret stays NULL where there is no such file. */
static int read_json(const struct model_dir *model, const char *name, json_t **ret, struct fail *fail)
{
    AUTO_BUFFER text = {0};
    json_error_t error;
    int code = read_file(model, name, &text, fail);
    if (code < 0)
        return code == -ENOENT ? 0 : code;
    if (!text_is_shallow(buffer_peek(&text), FILE_LEVELS_MAX))
        return fail_set(fail, -EINVAL, "%s/%s: more than %d levels", model->path, name, FILE_LEVELS_MAX);
    *ret = json_loadb((const char *)text.data, text.len, JSON_REJECT_DUPLICATES, &error);
    if (json_is_object(*ret))
        return 0;
    return fail_set(fail, -EINVAL, "%s/%s: it is no JSON object: line %d: %.100s", model->path, name, error.line,
                    *ret ? "something else" : error.text);
}

/* ---- the chat template --------------------------------------------------------------------------------------- */

/* The one called "default" where there are several. */
static const json_t *template_of(const json_t *config)
{
    const json_t *template = json_object_get(config, "chat_template"), *one;
    size_t i;
    if (json_is_string(template))
        return template;
    json_array_foreach(template, i, one)
    {
        const char *name = json_string_value(json_object_get(one, "name"));
        if (name && strcmp(name, "default") == 0)
            return json_object_get(one, "template");
    }
    return NULL;
}

static int take_template(struct model_dir *model, struct slice text, const char *file, struct fail *fail)
{
    if (!utf8_is_valid(text))
        return fail_set(fail, -EINVAL, "%s/%s: it is not UTF-8", model->path, file);
    if (!digest_of(text, model->template_digest))
        return fail_memory(fail);
    int error = jinja_parse(text, &model->template, fail);
    return error < 0 ? fail_wrap(fail, "%s/%s", model->path, file) : 0;
}

static int read_template(struct model_dir *model, const json_t *config, struct fail *fail)
{
    AUTO_BUFFER text = {0};
    const json_t *inside = template_of(config);
    int error = read_file(model, "chat_template.jinja", &text, fail);
    if (error == 0)
        return take_template(model, buffer_peek(&text), "chat_template.jinja", fail);
    if (error != -ENOENT)
        return error;
    if (!json_is_string(inside))
        return fail_set(fail, -EINVAL,
                        "%s has no chat template: put it into chat_template.jinja, or into tokenizer_config.json as "
                        "chat_template",
                        model->path);
    return take_template(model, slice_of(json_string_value(inside), json_string_length(inside)),
                         "tokenizer_config.json", fail);
}

/* "bos_token": "<s>", or {"content": "<s>"}. */
static void take_names(struct model_dir *model, const json_t *file)
{
    static const char *const names[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                        "pad_token", "cls_token", "mask_token"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        json_t *value = json_object_get(file, names[i]);
        value = json_is_object(value) ? json_object_get(value, "content") : value;
        if (json_is_string(value))
            json_object_set(model->names, names[i], value);
    }
}

static int read_names(struct model_dir *model, const json_t *config, struct fail *fail)
{
    json_t *map = NULL;
    int error = read_json(model, "special_tokens_map.json", &map, fail);
    model->names = json_object();
    take_names(model, map);
    take_names(model, config);
    json_decref(map);
    return error == 0 && !model->names ? fail_memory(fail) : error;
}

/* ---- what ends a turn ----------------------------------------------------------------------------------------- */

static int add_end(struct model_dir *model, const json_t *id, const char *file, struct fail *fail)
{
    const json_int_t value = json_integer_value(id);
    AUTO_BUFFER name = {0};
    const uint32_t one = (uint32_t)value;
    const struct tokens ids = {.ids = (uint32_t *)(uintptr_t)&one, .count = 1};
    if (!json_is_integer(id) || value < 0 || value > INT32_MAX || !tokenizer_decode(model->tokenizer, &ids, &name))
        return fail_set(fail, -EINVAL, "%s/%s: an eos_token_id that is no id of its tokenizer", model->path, file);
    if (tokens_have(&model->ends, one))
        return 0;
    return model->ends.count < ENDS_MAX && tokens_append(&model->ends, &one, 1) ? 0 : fail_memory(fail);
}

static int add_ends(struct model_dir *model, const json_t *file, const char *name, struct fail *fail)
{
    const json_t *ids = json_object_get(file, "eos_token_id"), *id;
    int error = 0;
    size_t i;
    if (json_is_integer(ids))
        return add_end(model, ids, name, fail);
    json_array_foreach(ids, i, id) if (error == 0) error = add_end(model, id, name, fail);
    return error;
}

/* The end token by its name. */
static int add_named_end(struct model_dir *model, struct fail *fail)
{
    const json_t *name = json_object_get(model->names, "eos_token");
    struct tokens ids = {0};
    int error = 0;
    if (json_is_string(name))
        error = tokenizer_encode(model->tokenizer, slice_of(json_string_value(name), json_string_length(name)), true,
                                 &ids, fail);
    if (error == 0 && ids.count == 1 && !tokens_have(&model->ends, ids.ids[0]) &&
        !tokens_append(&model->ends, ids.ids, 1))
        error = fail_memory(fail);
    tokens_finish(&ids);
    return error;
}

/* ---- the model -------------------------------------------------------------------------------------------------- */

static uint64_t context_of(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    const double tokens = json_number_value(value);
    return tokens >= 2 && tokens <= CONTEXT_MAX ? (uint64_t)tokens : 0;
}

/* The smaller of what the model and the tokenizer say, of which some say something without a meaning. */
static int read_context(struct model_dir *model, const json_t *config, const json_t *tokenizer_config, uint64_t given,
                        struct fail *fail)
{
    const json_t *text = json_object_get(config, "text_config");
    const uint64_t model_says = context_of(text ? text : config, "max_position_embeddings");
    const uint64_t tokenizer_says = context_of(tokenizer_config, "model_max_length");
    const bool is_less = tokenizer_says && (!model_says || tokenizer_says < model_says);
    model->context = given ? given : is_less ? tokenizer_says : model_says;
    return model->context ? 0
                          : fail_set(fail, -EINVAL,
                                     "%s says nothing of the context (max_position_embeddings of config.json): give "
                                     "--model-context",
                                     model->path);
}

static int read_tokenizer(struct model_dir *model, struct fail *fail)
{
    AUTO_BUFFER path = {0};
    struct tokens ids = {0};
    buffer_printf(&path, "%s/tokenizer.json", model->path);
    AUTO_FREE char *file = buffer_take_str(&path);
    int error = file ? refuse_irregular(file, fail) : fail_memory(fail);
    if (error == 0)
        error = tokenizer_load(file, &model->tokenizer, fail);
    if (error == 0)
        error = tokenizer_encode_alone(model->tokenizer, slice_from_str(tokenizer_sample), false, &ids, fail);
    if (error == 0 && !digest_of(slice_of(ids.ids, ids.count * sizeof(*ids.ids)), model->tokenizer_digest))
        error = fail_memory(fail);
    tokens_finish(&ids);
    return error;
}

static int read_all(struct model_dir *model, json_t *files[3], uint64_t context, struct fail *fail)
{
    static const char *const names[] = {"tokenizer_config.json", "config.json", "generation_config.json"};
    int error = 0;
    for (size_t i = 0; error == 0 && i < 3; i++)
        error = read_json(model, names[i], &files[i], fail);
    if (error == 0)
        error = read_tokenizer(model, fail);
    if (error == 0)
        error = read_names(model, files[0], fail);
    if (error == 0)
        error = read_template(model, files[0], fail);
    for (size_t i = 1; error == 0 && i < 3; i++)
        error = add_ends(model, files[i], names[i], fail);
    if (error == 0)
        error = add_named_end(model, fail);
    return error < 0 ? error : read_context(model, files[1], files[0], context, fail);
}

int model_files_read(struct model_dir *model, uint64_t context, struct fail *fail)
{
    json_t *files[3] = {NULL};
    int error = read_all(model, files, context, fail);
    AUTO_FREE char *config = error == 0 ? json_dumps(files[1] ? files[1] : model->names, JSON_SORT_KEYS) : NULL;
    if (error == 0 && (!config || !digest_of(slice_from_str(config), model->model_digest)))
        error = fail_memory(fail);
    for (size_t i = 0; i < 3; i++)
        json_decref(files[i]);
    return error;
}
