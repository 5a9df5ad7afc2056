/*
 * core/queue/dispatch.h - which worker gets which job.
 */
#ifndef SLUICE_BROKER_CORE_QUEUE_DISPATCH_H
#define SLUICE_BROKER_CORE_QUEUE_DISPATCH_H

struct core;

void dispatch(struct core *core);

#endif
