/*
 * A model's reply, read for calls in every form: what is read are names and objects of few levels,
 * or words that say what is wrong, and never both. What a call says can be said again in the form and
 * is read as the same.
 */
#include "common/base/cleanup.h"
#include "tests/fuzz.h"
#include "workers/agents/formats/tool_format.h"
#include "workers/tools/toolbox.h"
#include "workers/tools/tools.h"
#include "common/base/text.h"

static const char *const seed_replies[] = {
    "I look.\n<tool_call>\n{\"name\": \"edit\", \"arguments\": {\"path\": \"a\", \"view_range\": "
    "[1, "
    "-1]}}\n</tool_call>\n<tool_call>```json\n{\"name\": \"bash\", \"parameters\": "
    "\"{\\\"command\\\": \\\"ls\\\"}\"}\n```</tool_call>",
    "<think>a</think>\n<tool_call>\n<function=edit>\n<parameter=path>\na\n</parameter>\n"
    "<parameter=view_range>\n[1, -1]\n</parameter>\n<parameter=insert_line>\n3\n</parameter>\n"
    "</function>\n</tool_call>\n<function=bash>\n<parameter=tty>\nTrue\n</parameter>\n</function>",
    ("Here:\n<|python_tag|>{\"name\": \"bash\", \"parameters\": {\"command\": \"ls\"}}; {\"type\": "
     "\"function\", \"name\": \"submit\", \"parameters\": null}"),
    "```json\n{\"name\": \"bash\",\n \"parameters\": {\"command\": \"ls\",}}\n```",
    "<function=edit>\n<parameter=command>view</parameter>\n<parameter=file_text>\n "
    "a\n</parameter>\n</funct",
};

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    const char *text = seed_replies[seed / 16 % (sizeof(seed_replies) / sizeof(*seed_replies))];
    if (seed % 16 == 0 && max_size > strlen(text)) {
        size = strlen(text);
        memcpy(data, text, size);
    }
    return LLVMFuzzerMutate(data, size, max_size);
}

static struct toolbox make_box(void)
{
    struct toolbox box = {0};
    for (size_t i = 0; tool_at(i); i++)
        box.tools[box.count++] = tool_at(i);
    return box;
}

/* What ends a value, a call or its type, so that the form cannot say it. */
static bool can_be_said(const char *text) { return !strstr(text, "<parameter=") && !strstr(text, "</"); }

/* In forms without types a string of digits says a number. */
static bool is_same(const json_t *a, const json_t *b)
{
    const char *key;
    json_t *value;
    if (json_object_size(a) != json_object_size(b))
        return false;
    json_object_foreach((json_t *)(uintptr_t)a, key, value) if (json_is_string(value) &&
                                                                !json_equal(value, json_object_get(b, key)) &&
                                                                json_is_string(json_object_get(b, key))) return false;
    return true;
}

static void say_again(const struct tool_format *format, const struct toolbox *box, const struct tool_format_call *call)
{
    AUTO_BUFFER text = {0};
    struct tool_reply reply;
    const bool is_xml = strstr(format->marker, "<function=") != NULL;
    AUTO_FREE char *json = json_dumps(call->arguments, 0);
    must(json);
    if (is_xml && (!can_be_said(json) || strpbrk(call->name, "<>\"'\n ") || strchr(json, '\\')))
        return;
    format->say(call->name, call->arguments, &text);
    AUTO_FREE char *whole = buffer_take_str(&text);
    must(whole);
    tool_format_read(format, box, whole, &reply);
    /* one level more than the arguments had */
    must(reply.count == 1 || is_xml || strstr(reply.wrong, "levels"));
    must(reply.count != 1 || strcmp(reply.calls[0].name, call->name) == 0);
    must(reply.count != 1 || (is_xml ? is_same(call->arguments, reply.calls[0].arguments)
                                     : json_equal(call->arguments, reply.calls[0].arguments)));
    tool_reply_finish(&reply);
}

static void check(const struct tool_format *format, const struct toolbox *box, const char *text)
{
    struct tool_reply reply;
    tool_format_read(format, box, text, &reply);
    must(reply.count <= FORM_CALLS_MAX);
    must(memchr(reply.wrong, '\0', sizeof(reply.wrong)));
    must(reply.count == 0 || !reply.wrong[0]);
    for (size_t i = 0; i < reply.count; i++) {
        must(reply.calls[i].name && json_is_object(reply.calls[i].arguments));
        say_again(format, box, &reply.calls[i]);
    }
    tool_reply_finish(&reply);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct toolbox box = make_box();
    AUTO_FREE char *text = malloc(size + 1);
    must(text);
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    for (size_t i = 0; tool_format_at(i); i++)
        check(tool_format_at(i), &box, text);
    return 0;
}
