/*
 * A chat template, and behind a byte of zero what it is rendered with, as JSON; without one a small conversation. It is
 * refused with a sentence, or read; it is rendered within its bounds and alike each time, or refused with a sentence.
 */
#include <errno.h>

#include "common/base/cleanup.h"
#include "common/base/text.h"
#include "common/base/utf8.h"
#include "tests/fuzz.h"
#include "workers/engines/jinja/jinja.h"
#include "workers/engines/jinja/values/run.h"

static const char conversation[] = "{\"messages\": [{\"role\": \"system\", \"content\": \" Be brief. \"}, {\"role\": "
                                   "\"user\", \"content\": \"Hi \\u00fc\"}, "
                                   "{\"role\": \"assistant\", \"content\": \"<think>\\nhm\\n</think>\\n\\nNo\", "
                                   "\"tool_calls\": [{\"function\": {\"name\": \"f\", "
                                   "\"arguments\": {\"a\": [1, -2.5e3, null, true]}}}]}, {\"role\": \"tool\", "
                                   "\"content\": \"x\"}], \"bos_token\": \"<s>\", "
                                   "\"eos_token\": \"</s>\", \"add_generation_prompt\": true, \"tools\": null}";

static json_t *globals_of(struct slice text)
{
    json_t *json = text_is_shallow(text, TEXT_LEVELS_MAX)
                       ? json_loadb((const char *)text.data, text.len, JSON_ALLOW_NUL, NULL)
                       : NULL;
    if (json_is_object(json))
        return json;
    json_decref(json);
    return json_loads(conversation, 0, NULL);
}

/* UTF-8, NUL as well. */
static bool is_text(struct slice text)
{
    const uint8_t *nul;
    for (; text.len > 0 && (nul = memchr(text.data, 0, text.len));
         text = slice_of(nul + 1, text.len - (size_t)(nul + 1 - text.data)))
        if (!utf8_is_valid(slice_of(text.data, (size_t)(nul - text.data))))
            return false;
    return utf8_is_valid(text);
}

static void check_words(int error, const struct fail *fail)
{
    must(error == 0 || ((error == -EINVAL || error == -ENOMEM) && fail->text[0]));
}

static int render(const struct jinja *jinja, json_t *globals, struct buffer *out)
{
    struct fail fail = {0};
    const int error = jinja_render(jinja, globals, out, &fail);
    check_words(error, &fail);
    must(error == 0 || out->len == 0);
    must(out->len <= JINJA_BYTES_MAX);
    return error;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *end = size > 0 ? memchr(data, 0, size) : NULL;
    const struct slice source = slice_of(data, end ? (size_t)(end - data) : size);
    struct fail fail = {0};
    struct jinja *jinja = NULL;
    AUTO_BUFFER one = {0}, other = {0};
    const int error = jinja_parse(source, &jinja, &fail);
    check_words(error, &fail);
    must((error == 0) == (jinja != NULL));
    if (error < 0)
        return 0;
    json_t *globals = globals_of(end ? slice_of(end + 1, size - source.len - 1) : slice_of(NULL, 0));
    const int first = render(jinja, globals, &one), second = render(jinja, globals, &other);
    const bool has_time = memmem(source.data, source.len, "strftime", 8);
    must(first == second && (has_time || slice_equal(buffer_peek(&one), buffer_peek(&other))));
    must(!utf8_is_valid(source) || is_text(buffer_peek(&one)));
    json_decref(globals);
    jinja_destroy(&jinja);
    return 0;
}
