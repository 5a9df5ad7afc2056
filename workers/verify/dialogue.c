/* dialogue.c - which of a record's messages were said in a trace. */
#include "workers/verify/dialogue.h"

#include <stdlib.h>
#include <string.h>

bool dialogue_is_said(const struct record_turn *turn) { return strcmp(turn->role, "assistant") == 0; }

static size_t count_said(const struct record_trace *trace)
{
    size_t said = 0;
    for (size_t i = 0; i < trace->turn_count; i++)
        said += dialogue_is_said(&trace->turns[i]);
    return said;
}

static bool list_messages(const struct record *record, const struct record_trace *trace, struct dialogue *ret)
{
    ret->messages = calloc(record->message_count + 1, sizeof(*ret->messages));
    for (size_t i = 0; ret->messages && i < trace->messages.count; i++) {
        const struct record_stretch *run = &trace->messages.runs[i];
        memcpy(ret->messages + ret->count, record->messages + run->offset, run->length * sizeof(*ret->messages));
        ret->count += run->length;
    }
    return ret->messages != NULL;
}

bool dialogue_make(const struct record *record, size_t trace, struct dialogue *ret)
{
    *ret = (struct dialogue){.is_listed = record->traces[trace].messages.count > 0};
    if (ret->is_listed) {
        ret->replies = count_said(&record->traces[trace]);
        return list_messages(record, &record->traces[trace], ret);
    }
    ret->messages = record->messages;
    ret->count = record->message_count;
    ret->replies = record_sampled(record).turns;
    for (size_t i = 0; i < trace; i++)
        ret->before += count_said(&record->traces[i]);
    return true;
}

void dialogue_finish(struct dialogue *dialogue)
{
    if (dialogue->is_listed)
        free(dialogue->messages);
}

bool dialogue_find_reply(const struct dialogue *in, size_t which, size_t *ret)
{
    size_t replies = 0;
    for (size_t i = 0; i < in->count; i++)
        replies += strcmp(in->messages[i].role, "assistant") == 0;
    size_t wanted = replies - in->replies + which, at = 0;
    if (replies < in->replies)
        return false;
    for (; at < in->count; at++)
        if (strcmp(in->messages[at].role, "assistant") == 0 && wanted-- == 0)
            break;
    *ret = at;
    return true;
}

bool dialogue_says_the_same(const struct dialogue *one, const struct dialogue *other, size_t count)
{
    bool same = count <= one->count && count <= other->count;
    for (size_t i = 0; i < count && same; i++)
        same = one->messages[i].content == other->messages[i].content; /* the record has it once */
    return same;
}
