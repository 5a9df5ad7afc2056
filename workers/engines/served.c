#include "workers/engines/served.h"

#include <errno.h>

#include "common/cleanup.h"
#include "common/digest.h"
#include "workers/engines/call.h"

int served_get(struct engine *engine, const char *path, json_t **ret, struct fail *fail)
{
    struct call call = {.http = engine->http,
                        .base = engine->url,
                        .path = path,
                        .timeout_ms = METADATA_TIMEOUT_MS,
                        .ret_pause_ms = &engine->pause_ms};
    int error = call_json(&call, ret, fail);
    return error == -EPROTO ? fail_set(fail, -ENOTSUP, "no %s", path) : error;
}

static int get_model(struct engine *engine, json_t **answer, const json_t **ret, struct fail *fail)
{
    int error = served_get(engine, "/v1/models", answer, fail);
    if (error < 0)
        return error;
    *ret = json_array_get(json_object_get(*answer, "data"), 0);
    return json_is_string(json_object_get(*ret, "id"))
               ? 0
               : fail_set(fail, -ENOTSUP, "/v1/models names no model");
}

int served_model(struct engine *engine, struct engine_facts *facts, struct fail *fail)
{
    AUTO_JSON json_t *answer = NULL;
    const json_t *model = NULL;
    int error = get_model(engine, &answer, &model, fail);
    if (error < 0)
        return error;
    const char *id = json_string_value(json_object_get(model, "id"));
    json_int_t context = json_integer_value(json_object_get(model, "max_model_len"));
    if (strlen(id) >= sizeof(facts->model))
        return fail_set(fail, -EPROTO, "the model's name is longer than %zu bytes",
                        sizeof(facts->model) - 1);
    snprintf(facts->model, sizeof(facts->model), "%s", id);
    facts->context_tokens = context > 0 ? (uint64_t)context : 0;
    return 0;
}

int digest_members(const json_t *object, const char *const *names, size_t count, char ret[80],
                   struct fail *fail)
{
    AUTO_BUFFER text = {0};
    for (size_t i = 0; i < count; i++) {
        const json_t *value = json_object_get(object, names[i]);
        buffer_append(&text, json_string_value(value), json_string_length(value));
        buffer_append(&text, "", 1);
    }
    return !text.failed && digest_of(buffer_peek(&text), ret)
               ? 0
               : fail_set(fail, -ENOMEM, "out of memory");
}

int served_digest(struct engine *engine, char model_digest[80], struct fail *fail)
{
    static const char *const names[] = {"id", "root", "parent"};
    AUTO_JSON json_t *answer = NULL;
    const json_t *model = NULL;
    int error = get_model(engine, &answer, &model, fail);
    return error < 0 ? error : digest_members(model, names, 3, model_digest, fail);
}
