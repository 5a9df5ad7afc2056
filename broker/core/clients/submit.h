/*
 * core/clients/submit.h - group.submit: what may come in.
 */
#ifndef SLUICE_BROKER_CORE_CLIENTS_SUBMIT_H
#define SLUICE_BROKER_CORE_CLIENTS_SUBMIT_H

struct call;
struct core;

void handle_group_submit(struct core *core, const struct call *call);

#endif
