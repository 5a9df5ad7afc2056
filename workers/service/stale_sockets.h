/* stale_sockets.h - what workers that were killed left in a directory of sockets. */
#ifndef SLUICE_WORKERS_SERVICE_STALE_SOCKETS_H
#define SLUICE_WORKERS_SERVICE_STALE_SOCKETS_H

/*
 * Removes every lane in `directory` on which nobody listens, but for those of the last seconds:
 * their workers may be binding them just now.
 */
void stale_sockets_remove(const char *directory);

#endif
