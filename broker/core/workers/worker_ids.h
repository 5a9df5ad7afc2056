/*
 * core/workers/worker_ids.h - whose a worker's id is, and who else has tried to use it.
 */
#ifndef SLUICE_BROKER_CORE_WORKERS_WORKER_IDS_H
#define SLUICE_BROKER_CORE_WORKERS_WORKER_IDS_H

#include "broker/core/state/worker.h"

struct call;
struct core;

/*
 * Whether the caller may speak as the worker of this id: an id belongs to the key that used it first, for as long as
 * its worker lives, and is remembered as lost; after a restart, while jobs wait for adoption, to the key that had jobs
 * under it. If not, it is noted. *ret: the worker, NULL where none lives.
 */
bool worker_speaks(struct core *core, const struct call *call, struct slice id, struct worker **ret);
/* An id and its key from the ledger. */
void claims_note(struct core *core, struct slice id, struct slice key);
void claims_finish(struct core *core);
/* The n-th newest that is not older than lost_shown_ms, or NULL. */
const struct id_conflict *id_conflict_nth(const struct core *core, uint64_t n);

#endif
