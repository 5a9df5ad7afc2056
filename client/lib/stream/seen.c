#include "client/lib/stream/seen.h"

static bool has_other_id(const struct seen *seen, const struct msg_stream_head *head)
{
    return seen->start_id && head->has_start_id && head->start_id != seen->start_id;
}

bool seen_is_new_start(const struct seen *seen, const struct msg_stream_head *head)
{
    return seen->epoch && (head->epoch != seen->epoch || has_other_id(seen, head));
}

bool seen_is_other_ledger(const struct seen *seen, const struct msg_stream_head *head)
{
    return head->epoch < seen->epoch || (head->epoch == seen->epoch && has_other_id(seen, head)) ||
           head->head < seen->head || head->head + head->pending < seen->accepted;
}

void seen_note(struct seen *seen, const struct msg_stream_head *head)
{
    *seen = (struct seen){.epoch = head->epoch,
                          .start_id = head->has_start_id ? head->start_id : 0,
                          .head = head->head,
                          .accepted = head->head + head->pending};
}
