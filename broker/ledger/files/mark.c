/*
 * The note beside the lock: whether the broker before this one left its ledger open, so that there is a -wal that must
 * be there at the next start, whether what is in it was synced, and up to where.
 */
#include "broker/ledger/inner.h"

#include <inttypes.h>
#include <stdio.h>

static const char note_full[] = "open full", note_process[] = "open process";

static const char *note_of(const struct ledger *ledger)
{
    return ledger->durability == LEDGER_FULL ? note_full : note_process;
}

enum ledger_left ledger_state_left(const struct ledger *ledger)
{
    const char *note = ledger->lock.note;
    if (strcmp(note, note_full) == 0)
        return LEDGER_WAS_OPEN_FULL;
    return strcmp(note, note_process) == 0 ? LEDGER_WAS_OPEN_PROCESS : LEDGER_WAS_CLOSED;
}

int ledger_mark(struct ledger *ledger, bool is_open, struct fail *fail)
{
    if (ledger->durability == LEDGER_NONE)
        return 0;
    return lock_note(&ledger->lock, is_open ? note_of(ledger) : "", fail);
}

void ledger_mark_durable(struct ledger *ledger)
{
    const struct commit_point *point = &ledger->durable;
    char mark[LOCK_MARK_SIZE];
    snprintf(mark, sizeof(mark), "%08" PRIx32 " %08" PRIx32 " %" PRIu32, point->salts[0], point->salts[1],
             point->frames);
    lock_mark(&ledger->lock, mark);
}

struct commit_point ledger_marked_durable(const struct ledger *ledger)
{
    struct commit_point point = {0};
    if (sscanf(ledger->lock.mark, "%" SCNx32 " %" SCNx32 " %" SCNu32, &point.salts[0], &point.salts[1],
               &point.frames) != 3)
        return (struct commit_point){0};
    return point;
}
