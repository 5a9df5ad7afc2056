#include "workers/engines/dialects/call.h"

#include <errno.h>

#include "common/base/cleanup.h"
#include "workers/runtime/fiber.h"
#include "common/loop/loop_now.h"
#include "common/base/text.h"

#define REFUSES "the engine refuses the request"

/* ---- what refusals mean ------------------------------------------------------------------ */

static const struct {
    long first, last;
    int code;
    const char *words;
} statuses[] = {
    {401, 403, -EPROTO, "the engine wants credentials"}, {404, 405, -EPROTO, "the engine has no such route"},
    {408, 408, -EIO, "the engine gave up reading"},      {413, 413, -E2BIG, "the request is too large for the engine"},
    {429, 429, -EAGAIN, "the engine is overloaded"},     {400, 499, -EINVAL, REFUSES},
    {503, 503, -EAGAIN, "the engine is not ready"},      {500, 599, -EIO, "the engine failed"},
};

/* How servers say, in a refused request, that it is too long: a type or a part of a sentence. */
static const char *const too_long[] = {
    "exceed_context_size_error",
    "maximum context length",
    "exceeds the available context size",
    "longer than the model's context length",
    "longer than the maximum model length",
};

static const char *words_of(const json_t *body)
{
    const json_t *error = json_object_get(body, "error");
    const char *words = json_string_value(error);
    if (!words)
        words = json_string_value(json_object_get(json_is_object(error) ? error : body, "message"));
    return words ? words : "";
}

static bool says_too_long(const json_t *body)
{
    const char *type = json_string_value(json_object_get(json_object_get(body, "error"), "type"));
    for (size_t i = 0; i < sizeof(too_long) / sizeof(*too_long); i++)
        if (strstr(words_of(body), too_long[i]) || (type && strcmp(type, too_long[i]) == 0))
            return true;
    return false;
}

/* llama.cpp's server fails at a conversation that its chat template raises an exception at; NULL: none of these. */
static const char *template_words(const json_t *body)
{
    static const char mark[] = "Jinja Exception: ";
    const char *words = words_of(body), *at = strstr(words, mark);
    if (at)
        return at + sizeof(mark) - 1;
    return strstr(words, "raise_exception(") ? words : NULL;
}

int call_refusal(long status, const json_t *body, struct fail *fail)
{
    const char *raised = status == 500 ? template_words(body) : NULL;
    if (raised)
        return fail_set(fail, -EINVAL, REFUSES " (%ld): %.300s", status, raised);
    for (size_t i = 0; i < sizeof(statuses) / sizeof(*statuses); i++)
        if (status >= statuses[i].first && status <= statuses[i].last) {
            bool long_request = statuses[i].code == -EINVAL && says_too_long(body);
            return fail_set(fail, long_request ? -E2BIG : statuses[i].code, "%s (%ld): %.300s", statuses[i].words,
                            status, words_of(body));
        }
    return fail_set(fail, -EPROTO, "the engine answered with status %ld", status);
}

const char *call_refused_words(const struct fail *fail)
{
    const char *refusal = strstr(fail->text, REFUSES " ("), *words = refusal ? strstr(refusal, "): ") : NULL;
    return words ? words + strlen("): ") : fail->text;
}

/* ---- the call ---------------------------------------------------------------------------- */

static int request(const struct call *call, const char *body, struct http_reply *reply, struct fail *fail)
{
    AUTO_BUFFER url = {0};
    buffer_printf(&url, "%s%s", call->base, call->path);
    AUTO_FREE char *text = buffer_take_str(&url);
    if (!text)
        return fail_memory(fail);
    size_t answer_max = call->answer_max ? call->answer_max : CALL_ANSWER_MAX;
    fiber_push_deadline(loop_now_ms() + call->timeout_ms);
    int error = http_request_heard(call->http, call->line, text, body, answer_max, call->hearer, reply, fail);
    fiber_pop_deadline();
    return error == -EMSGSIZE ? fail_set(fail, -EPROTO, "%s%s: the engine's answer is longer than %zu bytes",
                                         call->base, call->path, answer_max)
                              : error;
}

static json_t *parse(struct slice text)
{
    return text_is_shallow(text, TEXT_LEVELS_MAX)
               ? json_loadb((const char *)text.data, text.len, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, NULL)
               : NULL;
}

static int answer(const struct call *call, const char *body, struct buffer *ret, struct fail *fail)
{
    struct http_reply reply = {0};
    int error = request(call, body, &reply, fail);
    if (error == 0 && reply.retry_after_s > 0 && call->ret_pause_ms)
        *call->ret_pause_ms = reply.retry_after_s * 1000;
    if (error == 0 && reply.status == 200) {
        *ret = reply.body;
        return 0;
    }
    if (error == 0) {
        AUTO_JSON json_t *json = parse(buffer_peek(&reply.body));
        call_refusal(reply.status, json, fail);
        error = fail_wrap(fail, "%s%s", call->base, call->path);
    }
    buffer_finish(&reply.body);
    return error;
}

int call_text(const struct call *call, struct buffer *ret, struct fail *fail)
{
    AUTO_FREE char *body = call->body ? json_dumps(call->body, JSON_COMPACT) : NULL;
    if (call->body && !body)
        return fail_memory(fail);
    return answer(call, body ? body : call->text, ret, fail);
}

int call_json(const struct call *call, json_t **ret, struct fail *fail)
{
    AUTO_BUFFER text = {0};
    int error = call_text(call, &text, fail);
    if (error < 0)
        return error;
    *ret = parse(buffer_peek(&text));
    if (*ret)
        return 0;
    fail_set(fail, -EPROTO, "the engine's answer is not JSON, or gives a key twice");
    return fail_wrap(fail, "%s%s", call->base, call->path);
}

void call_answer_finish(struct call_answer *answer)
{
    json_doc_finish(&answer->doc);
    buffer_finish(&answer->text);
}

int call_tree(const struct call *call, struct call_answer *ret, struct fail *fail)
{
    int error = call_text(call, &ret->text, fail);
    if (error == 0 && (error = json_doc_parse(buffer_peek(&ret->text), &ret->doc, fail)) < 0)
        fail_wrap(fail, "%s%s", call->base, call->path);
    return error;
}
