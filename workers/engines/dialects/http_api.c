#include "workers/engines/dialects/http_api.h"

#include <errno.h>

#include "common/base/cleanup.h"
#include "common/base/utf8.h"
#include "common/digest/digest.h"
#include "common/json/json_doc_look.h"
#include "workers/engines/server/identity.h"

int http_api_get(struct engine *engine, const char *path, json_t **ret, struct fail *fail)
{
    struct call call = {.http = engine->http,
                        .line = engine_connection_http(engine),
                        .base = engine->url,
                        .path = path,
                        .timeout_ms = METADATA_TIMEOUT_MS,
                        .ret_pause_ms = &engine->pause_ms};
    struct fail why = {0};
    int error = call_json(&call, ret, &why);
    return error < 0 ? fail_set(fail, error == -EPROTO ? -ENOTSUP : error, "%s", why.text) : 0;
}

int http_api_post(struct engine *engine, const char *path, json_t *body, json_t **ret, struct fail *fail)
{
    if (!body)
        return fail_memory(fail);
    struct call call = {.http = engine->http,
                        .line = engine_connection_http(engine),
                        .base = engine->url,
                        .path = path,
                        .body = body,
                        .timeout_ms = METADATA_TIMEOUT_MS,
                        .ret_pause_ms = &engine->pause_ms};
    return call_json(&call, ret, fail);
}

/* ---- text and ids ------------------------------------------------------------------------ */

int http_api_messages(const struct task_message *messages, size_t count, json_t **ret, struct fail *fail)
{
    *ret = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(*ret, json_pack("{s:s,s:s}", "role", messages[i].role, "content", messages[i].content));
    return json_array_size(*ret) == count ? 0 : fail_set(fail, -EINVAL, "a message is not UTF-8");
}

int http_api_ids(const json_t *answer, struct tokens *ret, struct fail *fail)
{
    const json_t *ids = json_object_get(answer, "tokens"), *id;
    size_t i;
    if (!json_is_array(ids))
        return fail_set(fail, -EPROTO, "the engine's answer has no tokens");
    json_array_foreach(ids, i, id)
    {
        json_int_t value = json_integer_value(id);
        if (!json_is_integer(id) || value < 0 || value > INT32_MAX)
            return fail_set(fail, -EPROTO, "token %zu of the engine's answer is not an id", i);
        if (!tokens_append(ret, &(uint32_t){(uint32_t)value}, 1))
            return fail_memory(fail);
    }
    return 0;
}

void http_api_write_text(const char *name, const char *text, struct buffer *body)
{
    AUTO_JSON json_t *value = json_string(text);
    AUTO_FREE char *escaped = value ? json_dumps(value, JSON_ENCODE_ANY) : NULL;
    if (text[0])
        buffer_printf(body, "\"%s\":%s,", name, escaped ? escaped : "\"\"");
}

static int take_said(const struct call_answer *answer, const char *const *names, struct buffer *ret, struct fail *fail)
{
    const struct json_doc_node *text = NULL;
    while (*names && !text)
        text = json_doc_get(&answer->doc, json_doc_root(&answer->doc), *names++);
    if (!utf8_is_valid(buffer_peek(&answer->text)))
        return fail_set(fail, -EPROTO, "the engine's answer to /detokenize is not UTF-8");
    if (json_doc_string(&answer->doc, text, ret))
        return 0;
    return ret->failed ? fail_memory(fail)
                       : fail_set(fail, -EPROTO, "the engine's answer to /detokenize has no %s", names[-1]);
}

int http_api_say(struct engine *engine, const struct tokens *ids, size_t count, const char *members,
                 const char *const *names, struct buffer *ret, struct fail *fail)
{
    AUTO_BUFFER body = {0};
    AUTO_CALL_ANSWER answer = {0};
    buffer_printf(&body, "{%s\"tokens\":", members);
    tokens_write(&(struct tokens){.ids = ids->ids, .count = count}, &body);
    buffer_append_str(&body, "}");
    AUTO_FREE char *text = buffer_take_str(&body);
    const struct call call = {.http = engine->http,
                              .line = engine_connection_http(engine),
                              .base = engine->url,
                              .path = "/detokenize",
                              .text = text,
                              .timeout_ms = METADATA_TIMEOUT_MS,
                              .ret_pause_ms = &engine->pause_ms};
    const int error = text ? call_tree(&call, &answer, fail) : fail_memory(fail);
    return error < 0 ? error : take_said(&answer, names, ret, fail);
}

/* ---- sampling ---------------------------------------------------------------------------- */

enum {
    ANSWER_BYTES = 1 << 20, /* of an answer, besides its tokens and the prompt's */
    ANSWER_TOKENS_MAX = 1 << 18
};

static struct call call_of(struct engine *engine, const struct http_api_call *sampling)
{
    const uint64_t tokens = sampling->tokens < ANSWER_TOKENS_MAX ? sampling->tokens : ANSWER_TOKENS_MAX;
    return (struct call){.http = engine->http,
                         .line = engine_connection_http(engine),
                         .base = engine->url,
                         .path = sampling->path,
                         .text = sampling->text,
                         .timeout_ms = GENERATION_TIMEOUT_MS + (int64_t)tokens * GENERATION_TOKEN_MS,
                         .ret_pause_ms = &engine->pause_ms,
                         .answer_max = ANSWER_BYTES + tokens * sampling->token_bytes + sampling->prompt_bytes};
}

int http_api_sample(struct engine *engine, const struct http_api_call *sampling, struct call_answer *ret,
                    struct fail *fail)
{
    const struct call call = call_of(engine, sampling);
    return sampling->text ? call_tree(&call, ret, fail) : fail_memory(fail);
}

int http_api_hear(struct engine *engine, const struct http_api_call *sampling, const struct http_hearer *hearer,
                  struct fail *fail)
{
    AUTO_BUFFER unused = {0};
    struct call call = call_of(engine, sampling);
    call.hearer = hearer;
    return sampling->text ? call_text(&call, &unused, fail) : fail_memory(fail);
}

/* ---- what is served ---------------------------------------------------------------------- */

static int get_model(struct engine *engine, json_t **answer, const json_t **ret, struct fail *fail)
{
    int error = http_api_get(engine, "/v1/models", answer, fail);
    if (error < 0)
        return error;
    *ret = json_array_get(json_object_get(*answer, "data"), 0);
    return json_is_string(json_object_get(*ret, "id")) ? 0 : fail_set(fail, -ENOTSUP, "/v1/models names no model");
}

int digest_members(const json_t *object, const char *const *names, size_t count, char ret[80], struct fail *fail)
{
    AUTO_BUFFER text = {0};
    for (size_t i = 0; i < count; i++) {
        const json_t *value = json_object_get(object, names[i]);
        buffer_append(&text, json_string_value(value), json_string_length(value));
        buffer_append(&text, "", 1);
    }
    return !text.failed && digest_of(buffer_peek(&text), ret) ? 0 : fail_memory(fail);
}

static int digest_model(const json_t *model, char model_digest[80], struct fail *fail)
{
    static const char *const names[] = {"id", "root", "parent"};
    return digest_members(model, names, 3, model_digest, fail);
}

int http_api_model(struct engine *engine, struct engine_info *info, char *ret_digest, struct fail *fail)
{
    AUTO_JSON json_t *answer = NULL;
    const json_t *model = NULL;
    int error = get_model(engine, &answer, &model, fail);
    if (error < 0)
        return error;
    const char *id = json_string_value(json_object_get(model, "id"));
    json_int_t context = json_integer_value(json_object_get(model, "max_model_len"));
    if (strlen(id) >= sizeof(info->model))
        return fail_set(fail, -EPROTO, "the model's name is longer than %zu bytes", sizeof(info->model) - 1);
    snprintf(info->model, sizeof(info->model), "%s", id);
    info->context_tokens = context > 0 ? (uint64_t)context : 0;
    return ret_digest ? digest_model(model, ret_digest, fail) : 0;
}

int tokenizer_digest_take(int error, const struct tokens *ids, char ret[80], struct fail *fail)
{
    ret[0] = '\0';
    if (error == -ENOTSUP || error == -EINVAL)
        return 0;
    if (error == 0 && !digest_of(slice_of(ids->ids, ids->count * sizeof(*ids->ids)), ret))
        error = fail_memory(fail);
    return error;
}
