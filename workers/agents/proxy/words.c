#include "workers/agents/proxy/words.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "workers/agents/formats/reading.h"

/* ---- one message -------------------------------------------------------------------------------- */

static void append_apart(struct buffer *out, const char *text)
{
    buffer_append_str(out, out->len > 0 && *text ? "\n\n" : "");
    buffer_append_str(out, text);
}

/* A call as the model would have written it; arguments that were no JSON as the text they were. */
static void append_call(const struct said_call *call, const struct tool_format *format, struct buffer *out)
{
    json_t *arguments = call->arguments ? json_incref(call->arguments) : json_string(call->text ? call->text : "");
    buffer_append_str(out, out->len > 0 ? "\n" : "");
    format->say(call->name, arguments, out);
    json_decref(arguments);
}

static void append_assistant(const struct said *said, const struct tool_format *format, struct buffer *out)
{
    buffer_append_str(out, said->text);
    for (size_t i = 0; i < said->call_count; i++)
        append_call(&said->calls[i], format, out);
}

static void append_result(const struct said *said, const struct tool_telling *telling, struct buffer *out)
{
    const struct tool_result result = {.text = said->text, .len = strlen(said->text), .is_error = said->is_error};
    tool_telling_say(telling, said->name ? said->name : "", &result, out);
}

/* Results as the form writes them, and words apart from each other. */
static void append_user(const struct said *messages, size_t count, const struct tool_telling *telling,
                        struct buffer *out)
{
    const struct tool_telling unframed = {.format = telling->format};
    for (size_t i = 0; i < count; i++) {
        if (messages[i].role == SAID_TOOL)
            append_result(&messages[i], &unframed, out);
        else
            append_apart(out, messages[i].text);
    }
}

/* ---- a whole conversation -------------------------------------------------------------------------- */

static const char *role_of(const struct said *said, const struct tool_telling *telling)
{
    if (said->role == SAID_ASSISTANT)
        return "assistant";
    return said->role == SAID_TOOL && telling->is_framed ? "tool" : "user";
}

/* In one message as far as it goes: where a run of the role ends. */
static size_t append_run(const struct said_request *request, size_t from, const struct tool_telling *telling,
                         struct buffer *out)
{
    const struct said *first = &request->messages[from];
    const char *role = role_of(first, telling);
    size_t to = from + 1;
    if (strcmp(role, "assistant") == 0)
        return append_assistant(first, telling->format, out), to;
    if (strcmp(role, "tool") == 0)
        return append_result(first, telling, out), to;
    while (to < request->count && strcmp(role_of(&request->messages[to], telling), role) == 0)
        to++;
    append_user(first, to - from, telling, out);
    return to;
}

static bool add(struct words *words, const char *role, struct buffer *text)
{
    struct task_message *message = &words->messages[words->count++];
    message->role = strdup(role);
    message->content = buffer_take_str(text);
    return message->role && message->content;
}

/* The messages of system at the beginning, and the tools; how many of them there are. */
static bool append_system(const struct said_request *request, const struct tool_telling *telling,
                          const struct toolbox *box, struct buffer *out, size_t *ret_count)
{
    AUTO_BUFFER block = {0};
    size_t count = 0;
    for (; count < request->count && request->messages[count].role == SAID_SYSTEM; count++)
        append_apart(out, request->messages[count].text);
    *ret_count = count;
    if (box->count == 0)
        return true;
    if (!telling->format->describe(box, &block))
        return false;
    buffer_append_str(out, out->len > 0 ? "\n\n" : "");
    return buffer_append(out, block.data, block.len);
}

bool words_make(const struct said_request *request, const struct tool_telling *telling, const struct toolbox *box,
                struct words *ret)
{
    AUTO_BUFFER system = {0};
    size_t at;
    *ret = (struct words){.messages = calloc(request->count + 1, sizeof(*ret->messages))};
    bool done = ret->messages && append_system(request, telling, box, &system, &at);
    if (done && system.len > 0)
        done = add(ret, "system", &system);
    while (done && at < request->count) {
        AUTO_BUFFER text = {0};
        const char *role = role_of(&request->messages[at], telling);
        at = append_run(request, at, telling, &text);
        done = add(ret, role, &text);
    }
    return done;
}

void words_finish(struct words *words)
{
    for (size_t i = 0; i < words->count; i++) {
        free(words->messages[i].role);
        free(words->messages[i].content);
    }
    free(words->messages);
    *words = (struct words){0};
}

/* ---- what follows a turn ------------------------------------------------------------------------------ */

static bool are_results(const struct said *messages, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (messages[i].role != SAID_TOOL)
            return false;
    return true;
}

bool told_make(const struct said *messages, size_t count, const struct tool_telling *telling, struct told *ret)
{
    const bool is_tools = telling->is_framed && are_results(messages, count);
    *ret = (struct told){.role = is_tools ? TELL_TOOL : TELL_USER, .count = is_tools ? count : 1};
    ret->texts = calloc(ret->count, sizeof(*ret->texts));
    ret->contents = calloc(ret->count, sizeof(*ret->contents));
    bool done = ret->texts && ret->contents;
    if (done && is_tools)
        for (size_t i = 0; i < count; i++)
            append_result(&messages[i], telling, &ret->texts[i]);
    else if (done)
        append_user(messages, count, telling, &ret->texts[0]);
    for (size_t i = 0; i < ret->count && done; i++) {
        done = !ret->texts[i].failed;
        ret->contents[i] = buffer_peek(&ret->texts[i]);
    }
    return done;
}

void told_finish(struct told *told)
{
    for (size_t i = 0; told->texts && i < told->count; i++)
        buffer_finish(&told->texts[i]);
    free(told->texts);
    free(told->contents);
    *told = (struct told){0};
}

/* ---- a reply -------------------------------------------------------------------------------------------- */

static bool is_blank(char c) { return strchr(WORDS_BLANKS, c) != NULL; }

static char *trimmed(const char *from, const char *to)
{
    while (from < to && is_blank(*from))
        from++;
    while (to > from && is_blank(to[-1]))
        to--;
    return strndup(from, (size_t)(to - from));
}

/* What it thought before it spoke; where that ends. */
static const char *take_thinking(const char *text, char **ret)
{
    const char *from = text + strspn(text, WORDS_BLANKS);
    if (!starts_with(from, THINK_TAG))
        return text;
    from += strlen(THINK_TAG);
    const char *end = strstr(from, THINK_END), *to = end ? end : from + strlen(from);
    *ret = trimmed(from, to);
    return end ? end + strlen(THINK_END) : to;
}

static bool hear(const char *text, bool is_cut, const struct tool_format *format, const struct toolbox *box,
                 struct heard *ret)
{
    if (box->count > 0 && !is_cut)
        tool_format_read(format, box, text, &ret->reply);
    const char *from = take_thinking(text, &ret->thinking), *to = from + strlen(from);
    if (ret->reply.count > 0)
        to = text + ret->reply.begin < from ? from : text + ret->reply.begin;
    ret->text = trimmed(from, to);
    return ret->text != NULL;
}

bool heard_make(const char *text, bool is_opened, bool is_cut, const struct tool_format *format,
                const struct toolbox *box, struct heard *ret)
{
    *ret = (struct heard){0};
    if (!is_opened)
        return hear(text, is_cut, format, box, ret);
    AUTO_BUFFER whole = {0};
    buffer_printf(&whole, "%s%s", THINK_TAG, text);
    AUTO_FREE char *opened = buffer_take_str(&whole);
    return opened && hear(opened, is_cut, format, box, ret);
}

void heard_finish(struct heard *heard)
{
    tool_reply_finish(&heard->reply);
    free(heard->thinking);
    free(heard->text);
    *heard = (struct heard){0};
}
