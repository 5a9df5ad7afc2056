#include "workers/sandbox/plan.h"

#include <string.h>

#include "workers/sandbox/gauge.h"

static bool read_room(struct wire_room *ret, const struct wire_message *message)
{
    if (message->head.verb != WIRE_ROOM || message->text_len < sizeof(*ret))
        return false;
    memcpy(ret, message->text, sizeof(*ret));
    return true;
}

bool plan_read(struct room_plan *ret, const struct wire_message *message, const struct spawner_setup *setup)
{
    struct wire_room wanted;
    size_t from = sizeof(wanted);
    if (!read_room(&wanted, message))
        return false;
    *ret = (struct room_plan){.id = message->head.id,
                              .image = wire_next_string(message, &from),
                              .memory_mib = wanted.memory_mib,
                              .disk_mib = wanted.disk_mib,
                              .processes = wanted.processes,
                              .inodes = wanted.inodes,
                              .file_mib = wanted.file_mib,
                              .gauge = &setup->gauges[wanted.gauge],
                              .gauge_number = wanted.gauge,
                              .tier = setup->tier,
                              .scratch = setup->scratch,
                              .kernels = wanted.kernels && setup->is_apart,
                              .is_host_root = setup->is_host_root};
    memcpy(ret->listeners, wanted.listeners, sizeof(ret->listeners));
    ret->listener_count = wanted.listener_count;
    const char *layer;
    while ((layer = wire_next_string(message, &from))) {
        if (ret->layer_count == ROOM_LAYERS_MAX)
            return false;
        ret->layers[ret->layer_count++] = layer;
    }
    return ret->image != NULL;
}

uint64_t plan_cpus(const struct wire_message *message)
{
    struct wire_room wanted;
    return read_room(&wanted, message) ? wanted.cpus : 0;
}
