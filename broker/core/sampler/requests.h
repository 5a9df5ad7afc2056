/*
 * core/sampler/requests.h - what trainers ask of samplers.
 */
#ifndef SLUICE_BROKER_CORE_SAMPLER_REQUESTS_H
#define SLUICE_BROKER_CORE_SAMPLER_REQUESTS_H

struct call;
struct core;

void handle_sampler_open(struct core *core, const struct call *call);
void handle_sampler_get(struct core *core, const struct call *call);
void handle_sampler_next(struct core *core, const struct call *call);
void handle_sampler_close(struct core *core, const struct call *call);

#endif
