/*
 * syncer.h - makes what was written to a file durable while its writer goes on: a thread that syncs when it is
 * asked to. One sync serves all that was written before it began.
 *
 * A sync that failed is final: what was written since the one before may be on disk or not, and nothing more is synced.
 */
#ifndef SLUICE_BROKER_LEDGER_FILES_SYNCER_H
#define SLUICE_BROKER_LEDGER_FILES_SYNCER_H

#include "broker/ledger/commit_point.h"
#include "common/base/fail.h"

struct syncer;

/* Of an open file, which stays the caller's and open until syncer_stop. */
int syncer_start(struct syncer **ret, int fd, struct fail *fail);
/* After the sync in hand. NULL-safe. */
void syncer_stop(struct syncer **stopping);

/* All up to `point` has been written: a sync that begins from now on serves it. */
void syncer_ask(struct syncer *syncer, struct commit_point point);
/* Up to where all is durable, number 0 before the first. A negative errno: a sync failed. */
int syncer_reached(struct syncer *syncer, struct commit_point *ret);
/* What a sync has failed with, or 0; to be asked by any thread. */
int syncer_code(struct syncer *syncer);
/* Waits until commit `number`, which was asked for, is durable. */
int syncer_await(struct syncer *syncer, uint64_t number);
/* Readable when a sync has ended since syncer_reached was called last. */
int syncer_fd(const struct syncer *syncer);

#endif
