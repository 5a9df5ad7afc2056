#include "client/gateway/record/main_trace.h"

#include <stdlib.h>
#include <string.h>

bool turn_is_sampled(const struct sluice_turn *turn) { return strcmp(turn->role, "assistant") == 0; }

bool turn_is_learnt(const struct sluice_trace *trace, const struct sluice_turn *turn)
{
    return turn_is_sampled(turn) && turn->length > 0 && memchr(trace->mask + turn->offset, 1, turn->length) != NULL;
}

bool trace_is_learnt(const struct sluice_trace *trace)
{
    return trace->token_count > 0 && memchr(trace->mask, 1, trace->token_count) != NULL;
}

size_t trace_sampled_turns(const struct sluice_trace *trace)
{
    size_t count = 0;
    for (size_t i = 0; i < trace->turn_count; i++)
        count += turn_is_sampled(&trace->turns[i]);
    return count;
}

size_t trajectory_sampled_turns(const struct sluice_trajectory *trajectory)
{
    size_t count = 0;
    for (size_t i = 0; i < trajectory->trace_count; i++)
        count += trace_sampled_turns(&trajectory->traces[i]);
    return count;
}

const struct sluice_turn *trace_last_sampled(const struct sluice_trace *trace)
{
    for (size_t i = trace->turn_count; i > 0; i--)
        if (turn_is_sampled(&trace->turns[i - 1]))
            return &trace->turns[i - 1];
    return NULL;
}

static bool is_main(const struct sluice_trace *trace)
{
    return trace->label[0] == '\0' || strcmp(trace->label, "main") == 0;
}

const struct sluice_trace *main_trace(const struct sluice_trajectory *trajectory)
{
    const struct sluice_trace *main = NULL, *learnt = NULL;
    for (size_t i = 0; i < trajectory->trace_count; i++) {
        const struct sluice_trace *trace = &trajectory->traces[i];
        if (trace_is_learnt(trace))
            learnt = trace;
        if (trace_is_learnt(trace) && is_main(trace))
            main = trace;
    }
    return main ? main : learnt ? learnt : trajectory->trace_count > 0 ? trajectory->traces : NULL;
}

/* ---- words ------------------------------------------------------------------------------------------- */

static void add_run(const struct sluice_trajectory *trajectory, size_t offset, size_t length, struct trace_words *ret)
{
    for (size_t i = offset; i < offset + length && i < trajectory->message_count; i++)
        if (strcmp(trajectory->messages[i].role, "note") != 0)
            ret->list[ret->count++] = &trajectory->messages[i];
}

static size_t sampled_messages(const struct trace_words *words)
{
    size_t count = 0;
    for (size_t i = 0; i < words->count; i++)
        count += words->list[i]->sampled;
    return count;
}

/* Where each turn has its message the traces before it say how many there are; else the last ones are taken. */
static size_t said_before(const struct sluice_trajectory *trajectory, const struct sluice_trace *trace,
                          const struct trace_words *words)
{
    const size_t said = sampled_messages(words), turns = trace_sampled_turns(trace);
    size_t before = 0, all = 0;
    for (size_t i = 0; i < trajectory->trace_count; i++) {
        before = &trajectory->traces[i] == trace ? all : before;
        all += trace_sampled_turns(&trajectory->traces[i]);
    }
    return all == said ? before : said > turns ? said - turns : 0;
}

bool trace_words_read(const struct sluice_trajectory *trajectory, const struct sluice_trace *trace,
                      struct trace_words *ret)
{
    size_t room = trajectory->message_count + 1;
    for (size_t i = 0; i < trace->stretch_count; i++)
        room += trace->messages[i].length;
    *ret = (struct trace_words){.list = calloc(room, sizeof(*ret->list))};
    if (!ret->list)
        return false;
    for (size_t i = 0; i < trace->stretch_count; i++)
        add_run(trajectory, trace->messages[i].offset, trace->messages[i].length, ret);
    if (trace->stretch_count == 0)
        add_run(trajectory, 0, trajectory->message_count, ret);
    ret->skipped = trace->stretch_count > 0 ? 0 : said_before(trajectory, trace, ret);
    return true;
}

void trace_words_finish(struct trace_words *words)
{
    free((void *)words->list);
    *words = (struct trace_words){0};
}

size_t trace_words_of(const struct trace_words *words, size_t number)
{
    size_t seen = 0;
    for (size_t i = 0; i < words->count; i++)
        if (words->list[i]->sampled && seen++ == number + words->skipped)
            return i;
    return words->count;
}
