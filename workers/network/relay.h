/*
 * relay.h - bytes between two connected sockets, both ways, within bounds: what one side does not
 * read stays unread on the other. An end of one direction is passed on as one (half-close).
 */
#ifndef SLUICE_WORKERS_NETWORK_RELAY_H
#define SLUICE_WORKERS_NETWORK_RELAY_H

enum { RELAY_BYTES = 16384 }; /* held in each direction, at most */

/*
 * In a fiber, over two non-blocking sockets that stay the caller's. 0 once both directions have
 * ended; negative errno when a side broke, or the fiber was cancelled.
 */
int relay_run(int one, int other);

#endif
