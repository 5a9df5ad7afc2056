/*
 * core/status/lists.h - what there is, by name: one JSON array each.
 */
#ifndef SLUICE_BROKER_CORE_STATUS_LISTS_H
#define SLUICE_BROKER_CORE_STATUS_LISTS_H

#include "broker/core/status/view.h"

json_t *status_workers(const struct core *core);
json_t *status_lost(const struct core *core);
json_t *status_id_conflicts(const struct core *core);
json_t *status_engines(const struct core *core);
/* What live groups need of handlers, how many jobs wait for it, and who offers it. */
json_t *status_needs(const struct core *core);
json_t *status_images(const struct core *core);
json_t *status_clients(const struct core *core);
json_t *status_streams(struct view view);
/* Each as sampler.state has it. */
json_t *status_samplers(struct view view);

#endif
