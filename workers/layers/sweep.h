/* sweep.h - what nobody asked for in a long time goes, and what killed workers left half done. */
#ifndef SLUICE_WORKERS_LAYERS_SWEEP_H
#define SLUICE_WORKERS_LAYERS_SWEEP_H

#include "workers/layers/cache.h"

/* Removes what is idle, by `now_s` of the wall clock, and recounts. */
void layer_cache_sweep(const struct layers *layers, int64_t now_s);
/* The same, at most once in LAYER_SWEEP_S. */
void layer_cache_sweep_now_and_then(const struct layers *layers);

#endif
