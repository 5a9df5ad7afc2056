/*
 * A model's reply, read for calls in every form: what is read are names and objects of few levels,
 * or words that say what is wrong, and never both. What a call says can be said again and is read
 * as the same.
 */
#include "common/cleanup.h"
#include "tests/fuzz.h"
#include "workers/agents/form.h"
#include "workers/text.h"

static const char seed_reply[] =
    "I look.\n<tool_call>\n{\"name\": \"edit\", \"arguments\": {\"path\": \"a\", \"view_range\": [1, "
    "-1]}}\n</tool_call>\n<tool_call>```json\n{\"name\": \"bash\", \"parameters\": "
    "\"{\\\"command\\\": \\\"ls\\\"}\"}\n```</tool_call>";

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    if (seed % 16 == 0 && max_size > sizeof(seed_reply)) {
        size = sizeof(seed_reply) - 1;
        memcpy(data, seed_reply, size);
    }
    return LLVMFuzzerMutate(data, size, max_size);
}

static void say_again(const struct form *form, const struct form_call *call)
{
    AUTO_BUFFER text = {0};
    struct form_reply reply;
    json_t *json = json_pack("{s:s, s:O}", "name", call->name, "arguments", call->arguments);
    AUTO_FREE char *said = json_dumps(json, 0);
    json_decref(json);
    must(said);
    buffer_printf(&text, "<tool_call>\n%s\n</tool_call>", said);
    AUTO_FREE char *whole = buffer_take_str(&text);
    must(whole);
    if (strstr(said, "<tool_call>") || strstr(said, "</t") || strstr(said, "<think>"))
        return; /* a tag within a string ends it */
    form->read(whole, &reply);
    /* one level more than the arguments had */
    must(reply.count == 1 || strstr(reply.wrong, "levels"));
    must(reply.count == 0 || (strcmp(reply.calls[0].name, call->name) == 0 &&
                              json_equal(reply.calls[0].arguments, call->arguments)));
    form_reply_finish(&reply);
}

static void check(const struct form *form, const char *text)
{
    struct form_reply reply;
    form->read(text, &reply);
    must(reply.count <= FORM_CALLS_MAX);
    must(memchr(reply.wrong, '\0', sizeof(reply.wrong)));
    must(reply.count == 0 || !reply.wrong[0]);
    for (size_t i = 0; i < reply.count; i++) {
        must(reply.calls[i].name && json_is_object(reply.calls[i].arguments));
        say_again(form, &reply.calls[i]);
    }
    form_reply_finish(&reply);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO_FREE char *text = malloc(size + 1);
    must(text);
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    for (size_t i = 0; form_at(i); i++)
        check(form_at(i), text);
    return 0;
}
