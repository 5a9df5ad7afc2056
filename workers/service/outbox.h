/*
 * outbox.h - results kept until the broker acknowledges them. Each is sent once at once, again
 * when the broker starts anew or asks for it, and otherwise after 2 s, 4 s, ... 32 s; never while
 * ZeroMQ still holds the bytes of the last time, so that a slow broker costs no memory.
 *
 * What is to be sent at one time goes as bundles where the broker reads them (common/net/bundle.h); large ones go
 * alone, and not copied.
 *
 * It never loses a result for want of room: beyond bytes_max the worker takes no new job until
 * something is acknowledged, so it holds at most that and one more result for each slot.
 */
#ifndef SLUICE_WORKERS_SERVICE_OUTBOX_H
#define SLUICE_WORKERS_SERVICE_OUTBOX_H

#include <sys/queue.h>

#include "common/base/buffer.h"
#include "common/containers/table.h"
#include "workers/service/lane.h"

enum { OUTBOX_COUNT_MAX = 8192 };

struct outbox_entry;
TAILQ_HEAD(outbox_list, outbox_entry);

struct outbox {
    struct outbox_list unsent, waiting; /* each entry is in one of them; waiting: oldest first */
    struct table by_job;                /* all of them; a job has one at most */
    size_t count, bytes, bytes_max;
};

void outbox_init(struct outbox *outbox, size_t bytes_max);
void outbox_finish(struct outbox *outbox);

/* Takes the bytes. False when out of memory: then they are gone. */
bool outbox_push(struct outbox *outbox, struct slice job, uint64_t token, struct buffer *bytes);
bool outbox_has(const struct outbox *outbox, struct slice job);
/* True above either bound: the worker takes no new job until something is acknowledged. */
bool outbox_is_full(const struct outbox *outbox);

/* Forgets the job's result if it is of this dispatch or an older one; UINT64_MAX: of any. */
void outbox_forget(struct outbox *outbox, struct slice job, uint64_t token);

/* To be sent again at the next flush: one, those that are due, all. */
void outbox_resend(struct outbox *outbox, struct slice job);
void outbox_resend_due(struct outbox *outbox, int64_t now_ms);
void outbox_resend_all(struct outbox *outbox);

/* Sends what is to be sent, as far as the lane takes it. */
void outbox_flush(struct outbox *outbox, struct lane *lane, int64_t now_ms);

/* Appends (job, token) of each, as jobs_append; false when out of memory. */
bool outbox_list_jobs(const struct outbox *outbox, struct buffer *packed);

#endif
