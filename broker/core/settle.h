/*
 * core/settle.h - what was noted in a step, and what follows from it.
 */
#ifndef SLUICE_BROKER_CORE_SETTLE_H
#define SLUICE_BROKER_CORE_SETTLE_H

struct core;

/* At the end of each step: of a message, or of what was due. */
void settle(struct core *core);

#endif
