/*
 * What clients send to the gateway's APIs: the first byte chooses the API, the second a message of the native one, the
 * rest is the body. It is refused with words, or what it becomes is JSON that the broker reads as a task, or refuses
 * with words.
 */
#include "client/gateway/api/message_json.h"
#include "client/gateway/bodies/loose_json.h"
#include "client/gateway/gym/answer.h"
#include "client/gateway/gym/row.h"
#include "client/gateway/json_text.h"
#include "client/gateway/polar/task_request.h"
#include "client/gateway/prorl/instance.h"
#include "client/gateway/prorl/task.h"
#include "client/gateway/sandboxfusion/code_task.h"
#include "client/gateway/sandboxfusion/languages.h"
#include "common/base/cleanup.h"
#include "common/base/utf8.h"
#include "schemas/task/task.h"
#include "tests/fuzz_json.h"

enum { HEAD = 2, DEPTH_MAX = 1000 };

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    return mutate_json(data, size, max_size, HEAD, seed);
}

static bool is_words(const char *text) { return text[0] && utf8_is_valid(slice_from_str(text)); }

/* Written, read and written again it is the same text. */
static void check_text(struct slice text)
{
    AUTO_BUFFER again = {0};
    json_t *read = json_loadb((const char *)text.data, text.len, JSON_ALLOW_NUL | JSON_DECODE_ANY, NULL);
    must(read);
    json_text_append_value(&again, read);
    must(slice_equal(text, buffer_peek(&again)));
    json_decref(read);
}

static void check_task_text(struct slice text)
{
    struct refusal no = {0};
    struct task *task = task_parse(text, &no);
    must(task || (no.reason != REFUSAL_NONE && is_words(no.text)));
    task_destroy(task);
}

static void check_task(const json_t *task)
{
    AUTO_BUFFER text = {0};
    must(json_is_object(task));
    json_text_append_value(&text, task);
    must(!text.failed);
    check_text(buffer_peek(&text));
    check_task_text(buffer_peek(&text));
}

/* The task, which is taken, or why there is none. */
static void check_made(json_t *task, const char *why)
{
    if (task)
        check_task(task);
    else
        must(is_words(why));
    json_decref(task);
}

/* ---- each API ---------------------------------------------------------------------------------------- */

static void native(uint8_t which, const json_t *body)
{
    const enum message_id id = which % MESSAGE_COUNT;
    const struct message *message = message_get(id);
    AUTO_FREE void *out = calloc(1, message->size);
    AUTO_BUFFER bytes = {0};
    struct kept_texts kept = {0};
    struct refusal no = {0};
    must(out);
    const bool is_read = message_from_json(message, body, &kept, out, &no) && message_is_complete(message, out, &no) &&
                         message_encode(id, out, &bytes, &no);
    must(is_read || (no.reason != REFUSAL_NONE && is_words(no.text)));
    if (is_read) {
        AUTO_BUFFER told = {0};
        buffer_append_str(&told, "{");
        message_append_members(message, out, &told);
        buffer_append_str(&told, "}");
        json_t *again = json_loadb((char *)told.data, told.len, JSON_ALLOW_NUL, NULL);
        must(json_is_object(again));
        json_decref(again);
    }
    kept_texts_finish(&kept);
}

static void prorl(uint8_t which, const json_t *body)
{
    char why[WHY_SIZE] = "";
    const json_t *instance = json_object_get(body, "instance"), *params = json_object_get(body, "sampling_params");
    if (!json_is_object(instance) || !json_is_object(params))
        return; /* which models.h refuses */
    const struct task_plan plan = {.instance = instance,
                                   .params = params,
                                   .source = task_source(instance),
                                   .timeout_ms = 300000,
                                   .images = which % 2 ? "/images/{sif}/{image}/{instance}" : NULL};
    check_made(task_make(&plan, why), why);
}

static void gym(uint8_t which, const json_t *body)
{
    struct fail why = {0};
    AUTO_BUFFER columns = {0};
    if (which % 3 == 0)
        check_made(row_request_task(body, "responses", &why), why.text);
    else if (which % 3 == 1)
        check_made(row_session_task(body, &why), why.text);
    else
        check_made(row_task(body, &why), why.text);
    buffer_append_str(&columns, "{");
    answer_keep_columns(body, &columns);
    buffer_append_str(&columns, "\"end\":1}");
    json_t *kept = json_loadb((char *)columns.data, columns.len, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, NULL);
    must(json_is_object(kept));
    json_decref(kept);
}

static void polar(const json_t *body)
{
    struct task_request request;
    struct problem problem = {0};
    if (!task_request_read(body, 1700000000000, &request, &problem)) {
        must(is_words(problem.words) && utf8_is_valid(slice_from_str(problem.field)));
        return;
    }
    must(request.task_id[0] && request.samples >= 1 && request.samples <= TASK_SAMPLES_MAX);
    check_task(request.task);
    task_request_finish(&request);
}

static void run_code(const json_t *body)
{
    const json_t *code = json_object_get(body, "code"), *stdin_text = json_object_get(body, "stdin");
    const char *language = json_string_value(json_object_get(body, "language"));
    AUTO_BUFFER text = {0};
    if (!json_is_string(code) || !language || !language_find(language) ||
        (stdin_text && !json_is_null(stdin_text) && !json_is_string(stdin_text)))
        return; /* which models.h and the API refuse */
    must(code_task_write(body, "/images/code", &text));
    check_text(buffer_peek(&text));
    check_task_text(buffer_peek(&text));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < HEAD)
        return 0;
    size_t depth = 0;
    for (size_t i = HEAD; i < size; i++)
        depth += data[i] == '[' || data[i] == '{';
    json_error_t error;
    json_t *body = depth > DEPTH_MAX ? NULL : loose_json_read(slice_of(data + HEAD, size - HEAD), &error);
    if (json_is_object(body))
        switch (data[0] % 5) {
        case 0: native(data[1], body); break;
        case 1: prorl(data[1], body); break;
        case 2: gym(data[1], body); break;
        case 3: polar(body); break;
        default: run_code(body); break;
        }
    json_decref(body);
    return 0;
}
