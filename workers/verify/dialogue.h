/* dialogue.h - which of a record's messages were said in a trace. */
#ifndef SLUICE_WORKERS_VERIFY_DIALOGUE_H
#define SLUICE_WORKERS_VERIFY_DIALOGUE_H

#include "schemas/trajectory/trajectory.h"

/* What was said in a trace. Its replies are the last of the assistant's, as many as it has turns of them. */
struct dialogue {
    struct record_message *messages; /* borrowed texts; owned where the trace says which they are */
    size_t count, replies;
    size_t before;  /* replies that other traces have */
    bool is_listed; /* the trace says which messages are its own; else all of the record's are */
};

/* False: out of memory. */
bool dialogue_make(const struct record *record, size_t trace, struct dialogue *ret);
void dialogue_finish(struct dialogue *dialogue);
/* The message of the `which`-th reply that was sampled, or their end; false: they are not told. */
bool dialogue_find_reply(const struct dialogue *in, size_t which, size_t *ret);
/* The first `count` messages of both are the same ones of the record. */
bool dialogue_says_the_same(const struct dialogue *one, const struct dialogue *other, size_t count);
bool dialogue_is_said(const struct record_turn *turn);

#endif
