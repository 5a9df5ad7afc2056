/* lane_sweep.h - what workers that were killed left in a directory of sockets. */
#ifndef SLUICE_WORKERS_SERVICE_LANE_SWEEP_H
#define SLUICE_WORKERS_SERVICE_LANE_SWEEP_H

/*
 * Removes every lane in `directory` on which nobody listens, but for those of the last seconds:
 * their workers may be binding them just now.
 */
void lane_sweep(const char *directory);

#endif
