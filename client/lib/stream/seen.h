/*
 * seen.h - what the heads of a stream said, and whether another one can be of the same ledger. In a ledger nothing goes
 * back: each start of the broker has a greater epoch, and neither the newest number nor the count of rollouts that were
 * accepted shrinks. A head that says otherwise is of another ledger: an emptied one, or an older back-up.
 *
 * Another ledger may have grown again since: then the heads alone do not tell. After each new start whoever reads has
 * the number that it read last told again, which must be the same rollout.
 *
 * Of heads that were asked for: those of FEED may be old.
 */
#ifndef SLUICE_CLIENT_LIB_STREAM_SEEN_H
#define SLUICE_CLIENT_LIB_STREAM_SEEN_H

#include "schemas/messages/message.h"

/* All zero: nothing was heard. */
struct seen {
    uint64_t epoch, start_id; /* of the start that told last; start_id 0: it did not say */
    uint64_t head, accepted;  /* its newest number; all rollouts up to then, ended or not */
};

bool seen_is_new_start(const struct seen *seen, const struct msg_stream_head *head);
bool seen_is_other_ledger(const struct seen *seen, const struct msg_stream_head *head);
/* What it says is so from now on. */
void seen_note(struct seen *seen, const struct msg_stream_head *head);

#endif
