#include "client/gateway/prorl/messages.h"

#include <string.h>

#include "client/gateway/json_text.h"
#include "client/gateway/record/arrays.h"
#include "client/gateway/record/main_trace.h"
#include "client/gateway/record/other_traces.h"

/* Of the main conversation the trace that ends last; NULL: nothing was sampled. */
static const struct sluice_trace *main_of(const struct sluice_trajectory *trajectory)
{
    for (size_t i = trajectory->trace_count; i-- > 0;) {
        const struct sluice_trace *trace = &trajectory->traces[i];
        if (trace_sampled_turns(trace) > 0 && (!*trace->label || strcmp(trace->label, "main") == 0))
            return trace;
    }
    return NULL;
}

/* ---- what was said in the trace ------------------------------------------------------------------------ */

struct talk {
    const struct sluice_trace *trace;
    struct trace_words words;
    size_t replies; /* the last of the assistant's, as many as the trace has turns of them */
    size_t from;    /* the first token that stands on no message yet */
    bool with_input_ids, is_begun;
    struct buffer *out;
};

static bool is_assistant(const struct sluice_message *message) { return strcmp(message->role, "assistant") == 0; }

/* The place of the first reply of the trace; what was said without words is left out: then there are no messages. */
static size_t first_reply(struct talk *talk)
{
    size_t assistants = 0;
    for (size_t i = 0; i < talk->words.count; i++)
        assistants += is_assistant(talk->words.list[i]);
    if (assistants < talk->replies)
        talk->words.count = 0;
    size_t skip = assistants - talk->replies, at = 0;
    for (; at < talk->words.count; at++)
        if (is_assistant(talk->words.list[at]) && skip-- == 0)
            break;
    return at;
}

/* ---- messages --------------------------------------------------------------------------------------------- */

static void begin(struct talk *talk, const char *role, const char *content)
{
    json_text_printf(talk->out, "%j{\"role\":%s,\"content\":%s,\"token_ids\":", talk->is_begun ? "," : "", role,
                     content);
    talk->is_begun = true;
}

/* Everything up to there that stands on no message yet. */
static void write_given(struct talk *talk, const char *role, const char *content, size_t to)
{
    begin(talk, role, content);
    arrays_append_ids(talk->out, talk->trace->token_ids + talk->from, to - talk->from);
    buffer_append_str(talk->out, ",\"input_ids\":null,\"logprobs\":null}");
    talk->from = to;
}

/* "bash: ls -l" as a call; arguments are JSON in a text, as OpenAI's. */
static void write_call(struct buffer *out, const char *tool, const char *joint)
{
    const char *colon = strchr(tool, ':'), *given = colon ? colon + 1 + strspn(colon + 1, " ") : "";
    struct buffer name = {0}, arguments = {0};
    buffer_append(&name, tool, colon ? (size_t)(colon - tool) : strlen(tool));
    if (*given == '{')
        buffer_append_str(&arguments, given);
    else
        json_text_printf(&arguments, "{\"command\":%s}", given);
    buffer_append(&name, "", 1);
    buffer_append(&arguments, "", 1);
    if (name.data && arguments.data)
        json_text_printf(out, "%j{\"name\":%s,\"arguments\":%s}", joint, (char *)name.data, (char *)arguments.data);
    buffer_finish(&name);
    buffer_finish(&arguments);
}

/* Those that are answered behind it. */
static void write_calls(struct talk *talk, size_t at)
{
    bool has_any = false;
    for (at++; at < talk->words.count && !is_assistant(talk->words.list[at]); at++) {
        const char *tool = talk->words.list[at]->tool;
        if (!tool || !*tool)
            continue;
        write_call(talk->out, tool, has_any ? "," : ",\"tool_calls\":[");
        has_any = true;
    }
    buffer_append_str(talk->out, has_any ? "]" : "");
}

static bool is_sampled(const struct sluice_trace *trace, const struct sluice_turn *turn)
{
    return turn->length == 0 || !memchr(trace->mask + turn->offset, 0, turn->length);
}

/* at: its message; the count of them where there is none. */
static void write_reply(struct talk *talk, const struct sluice_turn *turn, size_t at)
{
    const struct sluice_trace *trace = talk->trace;
    const bool trains = is_sampled(trace, turn);
    const size_t length = trains ? turn->length : 0;
    if (talk->from < turn->offset && trains)
        write_given(talk, "user", "", turn->offset); /* nobody said it in words */
    begin(talk, "assistant", at < talk->words.count ? talk->words.list[at]->content : "");
    arrays_append_ids(talk->out, trace->token_ids + turn->offset, length);
    buffer_append_str(talk->out, ",\"input_ids\":");
    if (talk->with_input_ids)
        arrays_append_ids(talk->out, trace->token_ids, turn->offset);
    else
        buffer_append_str(talk->out, "null");
    buffer_append_str(talk->out, ",\"logprobs\":");
    arrays_append_logprobs(talk->out, trace->logprobs + turn->offset, length);
    write_calls(talk, at);
    buffer_append_str(talk->out, "}");
    talk->from = trains ? turn->offset + turn->length : talk->from;
}

/* A reply that was given with the task has no tokens of its own: they are the prompt's. */
static void write_said_before(struct talk *talk, size_t at, const struct sluice_turn *turn)
{
    const struct sluice_message *message = talk->words.list[at];
    if (!is_assistant(message)) {
        write_given(talk, message->role, message->content, turn->offset);
        return;
    }
    if (talk->from < turn->offset)
        write_given(talk, "system", "", turn->offset);
    begin(talk, "assistant", message->content);
    buffer_append_str(talk->out, "[],\"input_ids\":null,\"logprobs\":[]}");
}

static void write_all(struct talk *talk)
{
    const size_t first = first_reply(talk);
    size_t at = 0;
    for (size_t i = 0; i < talk->trace->turn_count; i++) {
        const struct sluice_turn *turn = &talk->trace->turns[i];
        if (!turn_is_sampled(turn))
            continue;
        for (; at < talk->words.count && (at < first || !is_assistant(talk->words.list[at])); at++)
            write_said_before(talk, at, turn);
        write_reply(talk, turn, at);
        at += at < talk->words.count;
    }
}

void messages_write(const struct sluice_trajectory *trajectory, bool with_input_ids, struct buffer *ret)
{
    struct talk talk = {.trace = main_of(trajectory), .with_input_ids = with_input_ids, .out = ret};
    buffer_append_str(ret, "[");
    if (talk.trace && trace_words_read(trajectory, talk.trace, &talk.words)) {
        talk.replies = trace_sampled_turns(talk.trace);
        write_all(&talk);
    }
    trace_words_finish(&talk.words);
    buffer_append_str(ret, "]");
}

void messages_write_others(const struct sluice_trajectory *trajectory, struct buffer *ret)
{
    other_traces_append(trajectory, main_of(trajectory), ret);
}
