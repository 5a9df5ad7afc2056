#include "workers/sandbox/plan.h"

#include <string.h>

#include "workers/sandbox/gauge.h"

void plan_take(struct room_plan *plan, const struct wire_room *wanted)
{
    plan->memory_mib = wanted->memory_mib;
    plan->disk_mib = wanted->disk_mib;
    plan->processes = wanted->processes;
    plan->inodes = wanted->inodes;
    plan->file_mib = wanted->file_mib;
    plan->cpus = wanted->cpus;
    plan->gauge_number = wanted->gauge;
    plan->kernels = wanted->kernels;
    plan->listener_count = wanted->listener_count;
    memcpy(plan->listeners, wanted->listeners, sizeof(plan->listeners));
}

void plan_tell(const struct room_plan *plan, struct wire_room *ret)
{
    ret->memory_mib = plan->memory_mib;
    ret->disk_mib = plan->disk_mib;
    ret->processes = plan->processes;
    ret->inodes = plan->inodes;
    ret->file_mib = plan->file_mib;
    ret->cpus = plan->cpus;
    ret->gauge = plan->gauge_number;
    ret->kernels = plan->kernels;
    ret->listener_count = plan->listener_count;
    memcpy(ret->listeners, plan->listeners, sizeof(ret->listeners));
}

bool plan_read(struct room_plan *ret, const struct wire_message *message, const struct spawner_setup *setup)
{
    struct wire_room wanted;
    size_t from = sizeof(wanted);
    if (message->head.verb != WIRE_ROOM || message->text_len < sizeof(wanted))
        return false;
    memcpy(&wanted, message->text, sizeof(wanted));
    *ret = (struct room_plan){.id = message->head.id,
                              .image = wire_next_string(message, &from),
                              .tier = setup->tier,
                              .scratch = setup->scratch,
                              .is_host_root = setup->is_host_root};
    plan_take(ret, &wanted);
    ret->gauge = &setup->gauges[ret->gauge_number];
    ret->kernels &= setup->is_apart;
    const char *layer;
    while ((layer = wire_next_string(message, &from))) {
        if (ret->layer_count == ROOM_LAYERS_MAX)
            return false;
        ret->layers[ret->layer_count++] = layer;
    }
    return ret->image != NULL;
}
