/*
 * ledger_thread.h - a thread that does the ledger's part of batches while the sockets' thread goes on. The ledger is
 * its own from when it is given something until that was taken back; else it is the sockets' thread's.
 */
#ifndef SLUICE_BROKER_IO_LEDGER_THREAD_H
#define SLUICE_BROKER_IO_LEDGER_THREAD_H

#include <stdbool.h>

#include "common/base/fail.h"

struct ledger_thread;

/* What it does, with `context`, of each thing that it is given. */
typedef void ledger_thread_work(void *context, void *thing);

int ledger_thread_start(struct ledger_thread **ret, ledger_thread_work *work, void *context, struct fail *fail);
/* What it was given is done first, and not taken back. NULL-safe. */
void ledger_thread_stop(struct ledger_thread **stopping);

/* One thing at a time: it must have been taken back before the next is given. */
void ledger_thread_give(struct ledger_thread *thread, void *thing);
/* What is done; NULL: nothing was given, or it is not done yet. */
void *ledger_thread_take(struct ledger_thread *thread);
/* The same, and waits for it. */
void *ledger_thread_await(struct ledger_thread *thread);
/* Whether nothing was given that was not taken back. */
bool ledger_thread_is_idle(const struct ledger_thread *thread);
/* Readable when there is something to take. */
int ledger_thread_fd(const struct ledger_thread *thread);

#endif
