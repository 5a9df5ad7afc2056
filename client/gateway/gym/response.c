#include "client/gateway/gym/response.h"

#include <string.h>

#include "client/gateway/json_text.h"
#include "client/gateway/record/arrays.h"
#include "client/gateway/record/main_trace.h"
#include "common/base/cleanup.h"

struct items {
    const struct sluice_trajectory *trajectory;
    const struct sluice_trace *trace;
    struct trace_words words;
    bool with_tokens;
    size_t count;
    struct buffer item;
    void (*each)(void *arg, size_t index, struct slice item);
    void *arg;
};

/* ---- one item ---------------------------------------------------------------------------------------- */

void response_append_tokens(const struct sluice_trace *trace, const struct sluice_turn *turn, struct buffer *out)
{
    buffer_append_str(out, ",\"prompt_token_ids\":");
    arrays_append_ids(out, trace->token_ids, turn->offset);
    buffer_append_str(out, ",\"generation_token_ids\":");
    arrays_append_ids(out, trace->token_ids + turn->offset, turn->length);
    buffer_append_str(out, ",\"generation_log_probs\":");
    arrays_append_logprobs(out, trace->logprobs + turn->offset, turn->length);
}

/* turn: whose tokens the item carries; NULL: none. */
static void give(struct items *items, const struct sluice_turn *turn)
{
    if (turn && items->with_tokens && turn_is_learnt(items->trace, turn))
        response_append_tokens(items->trace, turn, &items->item);
    buffer_append_str(&items->item, "}");
    if (!items->item.failed)
        items->each(items->arg, items->count, buffer_peek(&items->item));
    items->count++;
    buffer_clear(&items->item);
}

static void begin_message(struct items *items, size_t number, const struct sluice_turn *turn, const char *text)
{
    buffer_printf(&items->item, "{\"id\":\"msg_%zu\"", number);
    json_text_printf(&items->item,
                     ",\"type\":\"message\",\"role\":\"assistant\",\"status\":%s,\"content\":[{\"type\":"
                     "\"output_text\",\"text\":%s,\"annotations\":[]}]",
                     strcmp(turn->finish, "stop") == 0 ? "completed" : "incomplete", text);
}

/* "bash: ls -l" as a function's name and its arguments, as JSON. */
static void begin_call(struct items *items, size_t number, const char *tool)
{
    const char *colon = strstr(tool, ": ");
    const struct slice name = slice_of(tool, colon ? (size_t)(colon - tool) : strlen(tool));
    const char *said = colon ? colon + 2 : "";
    json_error_t error;
    json_t *read = json_loads(said, 0, &error);
    AUTO_BUFFER arguments = {0};
    if (json_is_object(read))
        buffer_append_str(&arguments, said);
    else
        json_text_printf(&arguments, "{\"command\":%s}", said);
    json_decref(read);
    buffer_printf(&items->item,
                  "{\"id\":\"fc_%zu\",\"type\":\"function_call\",\"call_id\":\"call_%zu\",\"name\":", number, number);
    json_text_append(&items->item, name);
    buffer_append_str(&items->item, ",\"arguments\":");
    json_text_append(&items->item, buffer_peek(&arguments));
    buffer_append_str(&items->item, ",\"status\":\"completed\"");
}

static void begin_output(struct items *items, size_t number, const char *content)
{
    buffer_printf(&items->item, "{\"id\":\"fco_%zu\",\"type\":\"function_call_output\",\"call_id\":\"call_%zu\"",
                  number, number);
    json_text_printf(&items->item, ",\"output\":%s,\"status\":\"completed\"", content);
}

/* ---- a turn ------------------------------------------------------------------------------------------- */

static bool is_result(const struct sluice_message *message)
{
    return strcmp(message->role, "tool") == 0 && message->tool[0] != '\0';
}

/* How many results of calls follow the message. */
static size_t results_after(const struct trace_words *words, size_t at)
{
    size_t count = 0;
    while (at + 1 + count < words->count && is_result(words->list[at + 1 + count]))
        count++;
    return at < words->count ? count : 0;
}

static void give_turn(struct items *items, const struct sluice_turn *turn, size_t number)
{
    const struct trace_words *words = &items->words;
    const size_t at = trace_words_of(words, number), results = results_after(words, at), first = items->count;
    begin_message(items, number, turn, at < words->count ? words->list[at]->content : "");
    give(items, results == 0 ? turn : NULL);
    for (size_t i = 0; i < results; i++) {
        begin_call(items, first + i, words->list[at + 1 + i]->tool);
        give(items, i + 1 == results ? turn : NULL);
    }
    for (size_t i = 0; i < results; i++) {
        begin_output(items, first + i, words->list[at + 1 + i]->content);
        give(items, NULL);
    }
}

void response_each(const struct sluice_trajectory *trajectory, bool with_tokens,
                   void (*each)(void *arg, size_t index, struct slice item), void *arg)
{
    struct items items = {.trajectory = trajectory, .with_tokens = with_tokens, .each = each, .arg = arg};
    size_t number = 0;
    items.trace = trajectory ? main_trace(trajectory) : NULL;
    if (!items.trace || !trace_words_read(trajectory, items.trace, &items.words))
        return;
    for (size_t i = 0; i < items.trace->turn_count; i++)
        if (turn_is_sampled(&items.trace->turns[i]))
            give_turn(&items, &items.trace->turns[i], number++);
    trace_words_finish(&items.words);
    buffer_finish(&items.item);
}

bool response_has_tokens(const struct sluice_trajectory *trajectory)
{
    const struct sluice_trace *trace = main_trace(trajectory);
    for (size_t i = 0; trace && i < trace->turn_count; i++)
        if (turn_is_learnt(trace, &trace->turns[i]))
            return true;
    return false;
}

/* ---- the whole ------------------------------------------------------------------------------------------ */

static void append_item(void *arg, size_t index, struct slice item)
{
    struct buffer *out = arg;
    buffer_append_str(out, index > 0 ? "," : "");
    buffer_append(out, item.data, item.len);
}

static void append_usage(struct buffer *out, const struct sluice_trace *trace)
{
    uint64_t input = 0, cached = 0, output = 0;
    for (size_t i = 0; i < trace->turn_count; i++)
        if (turn_is_sampled(&trace->turns[i])) {
            input += trace->turns[i].offset;
            cached += trace->turns[i].cached_tokens;
            output += trace->turns[i].length;
        }
    json_text_printf(out,
                     ",\"usage\":{\"input_tokens\":%u,\"output_tokens\":%u,\"total_tokens\":%u,"
                     "\"input_tokens_details\":{\"cached_tokens\":%u},\"output_tokens_details\":{"
                     "\"reasoning_tokens\":0}}",
                     input, output, input + output, cached);
}

static void append_status(struct buffer *out, const struct sluice_turn *last)
{
    if (last && strcmp(last->finish, "length") == 0)
        buffer_append_str(out, ",\"status\":\"incomplete\",\"incomplete_details\":{\"reason\":\"max_output_tokens\"}");
    else
        buffer_append_str(out, ",\"status\":\"completed\"");
}

void response_append(const struct sluice_trajectory *trajectory, const struct response_asked *asked, struct buffer *out)
{
    const struct sluice_trace *trace = trajectory ? main_trace(trajectory) : NULL;
    const struct sluice_turn *last = trace ? trace_last_sampled(trace) : NULL;
    const char *model = asked->model ? asked->model : last && last->version[0] ? last->version : "policy";
    buffer_append_str(out, "{\"id\":");
    AUTO_BUFFER id = {0};
    buffer_printf(&id, "resp_%s", trajectory ? trajectory->rollout : "none");
    json_text_append(out, buffer_peek(&id));
    json_text_printf(out, ",\"object\":\"response\",\"created_at\":%u,\"model\":%s,\"output\":[",
                     trajectory ? trajectory->ended_ms / 1000 : (uint64_t)0, model);
    response_each(trajectory, asked->with_tokens, append_item, out);
    buffer_append_str(out, "]");
    append_status(out, last);
    buffer_append_str(out, ",\"parallel_tool_calls\":false,\"tool_choice\":\"auto\",\"tools\":");
    if (json_is_array(asked->tools))
        json_text_append_value(out, asked->tools);
    else
        buffer_append_str(out, "[]");
    if (last)
        append_usage(out, trace);
    buffer_append_str(out, "}");
}
