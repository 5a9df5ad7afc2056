#include "workers/sandbox/container/plan.h"

#include <stdio.h>
#include <string.h>

#include "workers/sandbox/container/spawner_setup.h"
#include "workers/sandbox/proto/usage.h"

bool plan_read(struct container_plan *ret, const struct wire_message *message, const struct spawner_setup *setup)
{
    size_t from = sizeof(ret->wanted);
    if (message->head.verb != WIRE_CONTAINER || message->text_len < from)
        return false;
    *ret = (struct container_plan){.id = message->head.id,
                                   .image = wire_next_string(message, &from),
                                   .tier = setup->tier,
                                   .scratch = setup->scratch,
                                   .is_host_root = setup->is_host_root};
    memcpy(&ret->wanted, message->text, sizeof(ret->wanted));
    ret->usage = &setup->usages[ret->wanted.usage];
    ret->wanted.kernels &= setup->has_namespaces;
    ret->harness_name = ret->wanted.has_harness ? wire_next_string(message, &from) : NULL;
    ret->harness_dir = ret->wanted.has_harness ? wire_next_string(message, &from) : NULL;
    const char *layer;
    while ((layer = wire_next_string(message, &from))) {
        if (ret->layer_count == CONTAINER_LAYERS_MAX)
            return false;
        ret->layers[ret->layer_count++] = layer;
    }
    return ret->image != NULL && (!ret->wanted.has_harness || ret->harness_dir != NULL);
}

const char *plan_disk_path(const char *disks, uint32_t id, char path[PLAN_DISK_PATH_MAX])
{
    int len = disks[0] ? snprintf(path, PLAN_DISK_PATH_MAX, "%s/%u", disks, id) : PLAN_DISK_PATH_MAX;
    return len < PLAN_DISK_PATH_MAX ? path : NULL;
}
