/*
 * A new container: a process, prewarmed or made now, is bounded, handed the plan and becomes an entry. And kernels
 * in containers that are there.
 */
#include "workers/sandbox/spawner/spawner_containers.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "workers/sandbox/container/plan.h"
#include "workers/sandbox/spawner/spawner_inside.h"

static int answer(const struct spawner_state *state, uint32_t id, int code, const char *sentence, const int *fds,
                  size_t fd_count)
{
    struct wire_head head = {.verb = WIRE_DONE, .id = id, .number = {code}};
    return wire_send(state->worker, &head, slice_from_str(sentence), fds, fd_count);
}

static int refuse(const struct spawner_state *state, uint32_t id, int code, const char *what)
{
    char sentence[256];
    snprintf(sentence, sizeof(sentence), "%s: %s", what, strerror(-code));
    return answer(state, id, code, sentence, NULL, 0);
}

int spawner_fork_kernel(struct spawner_state *state)
{
    int code = -ENOENT;
    for (size_t i = 0; i < state->count; i++) {
        const struct sandbox_entry *entry = &state->entries[i];
        struct container_plan limits = {.wanted = {.processes = entry->limits.processes, .file_mib = entry->file_mib}};
        if (entry->id == (uint32_t)state->asked.head.number[0] && entry->zygote)
            code = zygote_fork_kernel(entry->zygote, &limits, entry->cgroup, state->asked.fds, state->asked.fd_count);
    }
    return answer(state, state->asked.head.id, code, code < 0 ? "there is no fork server" : "", NULL, 0);
}

/* Prewarmed ones are CONTAINER_UID already, and stay who they are. */
static int make_other(struct spawner_state *state, const struct container_plan *plan, struct prewarmed *ret)
{
    struct init_setup setup = spawner_init;
    setup.inside_uid = plan->wanted.uid;
    setup.inside_gid = plan->wanted.gid;
    return prewarmed_make(ret, NULL, &setup, ++state->group);
}

/* In the namespace of its image's zygote where it is to have one. */
static int take_prewarmed(struct spawner_state *state, const struct container_plan *plan, struct prewarmed *ret,
                          struct zygote **zygote)
{
    *zygote = NULL;
    if (plan->wanted.uid != CONTAINER_UID || plan->wanted.gid != CONTAINER_UID)
        return make_other(state, plan, ret);
    *zygote = zygotes_join(&state->zygotes, plan);
    if (*zygote && ((*zygote)->prewarmed.pid > 0 ||
                    prewarmed_make(&(*zygote)->prewarmed, *zygote, &spawner_init, ++state->group) == 0)) {
        *ret = prewarmed_take(&(*zygote)->prewarmed);
        return 0;
    }
    if (*zygote)
        zygotes_leave(take_ptr(zygote));
    int code = state->prewarmed.pid > 0 ? 0 : prewarmed_make(&state->prewarmed, NULL, &spawner_init, ++state->group);
    if (code == 0)
        *ret = prewarmed_take(&state->prewarmed);
    return code;
}

/* Binds it to its CPUs and hands it the worker's order. -EPIPE: it has ended, which its wire does not say as we may
 * still have its end of that. */
static int instruct(const struct spawner_state *state, const struct prewarmed *prewarmed, const cpu_set_t *cpus)
{
    if (poll(&(struct pollfd){prewarmed->pidfd, POLLIN, 0}, 1, 0) > 0)
        return -EPIPE;
    if (CPU_COUNT(cpus) > 0 && sched_setaffinity(prewarmed->pid, sizeof(*cpus), cpus) < 0)
        return -errno;
    return wire_send(prewarmed->control, &state->asked.head, slice_of(state->asked.text, state->asked.text_len), NULL,
                     0);
}

static int settle(struct spawner_state *state, const struct container_plan *plan, struct prewarmed *prewarmed,
                  struct zygote *zygote)
{
    struct sandbox_entry entry = {.id = plan->id,
                                  .pid = prewarmed->pid,
                                  .server = plan->server,
                                  .first = tier_has_root(plan->tier) ? 1 : prewarmed->pid,
                                  .own = {-1, -1, -1, -1, -1, -1},
                                  .its_end = prewarmed->its_end,
                                  .file_mib = plan->wanted.file_mib,
                                  .zygote = zygote,
                                  .cgroup = prewarmed->cgroup,
                                  .group = prewarmed->group,
                                  .limits = {plan->wanted.memory_mib, plan->wanted.processes,
                                             state->setup->is_in_memory ? plan->wanted.disk_mib : 0},
                                  .usage = plan->usage};
    cpus_choose(&state->cpus, plan->wanted.cpus, &entry.cpus);
    int code = prewarmed->cgroup < 0 ? 0 : cgroup_bound(prewarmed->cgroup, &entry.limits, NULL);
    if (code == 0)
        code = instruct(state, prewarmed, &entry.cpus);
    if (code < 0) {
        if (zygote)
            zygotes_leave(zygote);
        return code;
    }
    cpus_load(&state->cpus, &entry.cpus, 1);
    state->entries[state->count++] = entry;
    return 0;
}

/* A prewarmed one may have ended meanwhile, a new one has not. */
static int move_in(struct spawner_state *state, const struct container_plan *plan, struct prewarmed *ret)
{
    int code = -EPIPE;
    for (int tries = 0; tries < 2 && code == -EPIPE; tries++) {
        struct zygote *zygote;
        code = take_prewarmed(state, plan, ret, &zygote);
        if (code == 0 && (code = settle(state, plan, ret, zygote)) < 0)
            prewarmed_drop(ret);
    }
    return code;
}

/* Whoever is forked with its strings, as zygotes are and what serves FUSE: containers are sent them. */
static bool is_inherited(const struct container_plan *plan)
{
    return plan->wanted.kernels || plan->tier == TIER_fuse_overlayfs;
}

static bool read_asked(struct spawner_state *state, struct container_plan *ret)
{
    const struct wire_message *asked = &state->asked;
    if (!plan_read(ret, asked, state->setup))
        return false;
    if (!is_inherited(ret))
        return true;
    memcpy(&spawner_shown, asked, offsetof(struct wire_message, text) + asked->text_len + 1);
    return plan_read(ret, &spawner_shown, state->setup);
}

int spawner_open_container(struct spawner_state *state)
{
    struct container_plan plan;
    struct prewarmed prewarmed;
    struct fail fail;
    char disk[PLAN_DISK_PATH_MAX];
    uint32_t id = state->asked.head.id;
    if (!read_asked(state, &plan))
        return refuse(state, id, -EINVAL, "plan");
    if (state->count == USAGE_COUNT)
        return refuse(state, id, -EAGAIN, "as many sandboxes as there can be");
    if (state->base.code < 0)
        return answer(state, id, state->base.code, state->base.text, NULL, 0);
    if (disks_make(&spawner_disks, &plan, disk, &fail) < 0)
        return answer(state, id, fail.code, fail.text, NULL, 0);
    int code = move_in(state, &plan, &prewarmed);
    if (code < 0) {
        disks_remove(&spawner_disks, id);
        return refuse(state, id, code,
                      "cannot make a process or its namespaces (are those switched off on this machine?)");
    }
    int said = answer(state, id, 0, "", (int[]){prewarmed.pidfd, prewarmed.control, prewarmed.cgroup},
                      prewarmed.cgroup < 0 ? 2 : 3);
    close(prewarmed.pidfd);
    close(prewarmed.control);
    return said;
}
