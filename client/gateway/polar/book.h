/*
 * book.h - Polar's tasks, as far as the broker tells of them. Nothing is kept on disk: a gateway that starts lists the
 * rollouts that are at work, and is told of those that have ended by their stream, from the oldest that was not
 * acknowledged on; what was asked with them stands in their tasks' metadata.
 *
 * An ended task is let go, and its trajectories are acknowledged, once its results were had for BOOK_KEEP_MS, when its
 * id is used again, or after BOOK_FORGET_MS.
 */
#ifndef SLUICE_CLIENT_GATEWAY_POLAR_BOOK_H
#define SLUICE_CLIENT_GATEWAY_POLAR_BOOK_H

#include "client/gateway/polar/tasks.h"

/* Of an identity; NULL: out of memory. */
struct polar_of *book_of(struct book *book, struct identity *identity);
/* Whether all is known that there was at the start. */
bool book_is_ready(const struct polar_of *of);
/* A task that was cancelled before it came. False: out of memory, or too many. */
bool book_bury(struct book *book, const char *base);
bool book_is_buried(const struct book *book, const char *base);

bool book_open(struct gateway *gateway, struct book **ret);
void book_close(struct book **book);

#endif
