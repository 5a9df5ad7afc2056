#include "workers/handlers/handlers.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "common/base/log.h"
#include "workers/handlers/processes/supervisor_program.h"
#include "workers/runtime/loop_now.h"
#include "workers/sandbox/embedded/program.h"

enum { FULL_MS = 20 }; /* until a full handler is looked at again */

struct handlers {
    struct loop *loop;
    enum stage stage;
    int program;
    struct handler_spec *specs;
    size_t spec_count;
    struct handler_process *processes;
    size_t process_count;
    char offers[HANDLERS_OFFERS_MAX + 1], error[256];
    bool is_over_bound; /* not all that is offered fits there */
    void (*changed)(void *arg);
    void *arg;
};

/* ---- what is offered ------------------------------------------------------------------------ */

static bool is_of_stage(const struct handlers *handlers, enum handler_role role)
{
    return handlers->stage == STAGE_RUN ||
           role == HANDLER_EVALUATOR; /* some tasks are evaluated where the agent worked */
}

static bool is_ready(const struct handler_process *process)
{
    return process->state == HANDLER_READY && peer_is_ready(&process->peer);
}

/* Whether a process before this one offers it, too. */
static bool is_told(const struct handlers *handlers, size_t before, const struct offer *offer)
{
    for (size_t i = 0; i < before; i++)
        if (is_ready(&handlers->processes[i]) &&
            offers_find(&handlers->processes[i].peer.offers, offer->role, offer->name))
            return true;
    return false;
}

static bool add_offer(const struct offer *offer, char *text, size_t size, size_t *len)
{
    const int need = snprintf(NULL, 0, "%s%s:%s@%s", *len ? " " : "", handler_role_wire(offer->role), offer->name,
                              offer->version);
    if (*len + (size_t)need >= size)
        return false;
    *len += (size_t)snprintf(text + *len, size - *len, "%s%s:%s@%s", *len ? " " : "", handler_role_wire(offer->role),
                             offer->name, offer->version);
    return true;
}

static void list_offers(struct handlers *handlers)
{
    size_t len = 0, left_out = 0;
    handlers->offers[0] = '\0';
    for (size_t i = 0; i < handlers->process_count; i++) {
        const struct handler_process *process = &handlers->processes[i];
        const struct offers *offers = &process->peer.offers;
        for (size_t k = 0; is_ready(process) && k < offers->count; k++)
            if (is_of_stage(handlers, offers->list[k].role) && !is_told(handlers, i, &offers->list[k]))
                left_out += !add_offer(&offers->list[k], handlers->offers, sizeof(handlers->offers), &len);
    }
    if (left_out && !handlers->is_over_bound)
        log_event(LOG_ERROR, "handler.too-many",
                  "offers=%zu why=\"a worker tells of %d bytes of names\" action=not-told", left_out,
                  HANDLERS_OFFERS_MAX);
    handlers->is_over_bound = left_out > 0;
}

static void note_error(struct handlers *handlers)
{
    handlers->error[0] = '\0';
    for (size_t i = 0; i < handlers->process_count && !handlers->error[0]; i++) {
        const struct handler_process *process = &handlers->processes[i];
        if (process->state != HANDLER_READY && process->why[0])
            snprintf(handlers->error, sizeof(handlers->error), "the handler %s is not ready: %.150s",
                     process->spec->name, process->why);
    }
}

static void changed(void *arg)
{
    struct handlers *handlers = arg;
    list_offers(handlers);
    note_error(handlers);
    if (handlers->changed)
        handlers->changed(handlers->arg);
}

const char *handlers_offers(const struct handlers *handlers) { return handlers ? handlers->offers : ""; }

const char *handlers_error(const struct handlers *handlers)
{
    return handlers && handlers->error[0] ? handlers->error : NULL;
}

const struct offer *handlers_find_offer(const struct handlers *handlers, enum handler_role role, const char *name)
{
    const struct offer *offer = NULL;
    for (size_t i = 0; handlers && i < handlers->process_count && !offer; i++)
        if (is_ready(&handlers->processes[i]))
            offer = offers_find(&handlers->processes[i].peer.offers, role, name);
    return offer;
}

/* The one with the fewest jobs; NULL: none offers it. */
static struct handler_peer *find_least(struct handlers *handlers, enum handler_role role, const char *name)
{
    struct handler_peer *best = NULL;
    for (size_t i = 0; handlers && i < handlers->process_count; i++) {
        struct handler_peer *peer = &handlers->processes[i].peer;
        if (is_ready(&handlers->processes[i]) && offers_find(&peer->offers, role, name) &&
            (!best || peer->jobs.count < best->jobs.count))
            best = peer;
    }
    return best;
}

int handlers_find(struct handlers *handlers, enum handler_role role, const char *name, struct handler_peer **ret,
                  struct fail *fail)
{
    for (;;) {
        *ret = find_least(handlers, role, name);
        if (!*ret) {
            const char *error = handlers_error(handlers);
            return fail_set(fail, -EOWNERDEAD, "no handler of this worker offers the %s %s%s%s",
                            handler_role_wire(role), name, error ? ": " : "", error ? error : "");
        }
        if ((*ret)->jobs.count < PEER_JOBS_MAX)
            return 0;
        int code = await_until(loop_now_ms() + FULL_MS, fail);
        if (code < 0)
            return code;
    }
}

/* ---- life ------------------------------------------------------------------------------------- */

static int read_specs(struct handlers *handlers, const struct handlers_plan *plan, struct fail *fail)
{
    for (size_t i = 0; i < plan->count; i++) {
        struct handler_spec *spec = &handlers->specs[handlers->spec_count];
        int code = handler_spec_parse(plan->texts[i], spec, fail);
        if (code < 0)
            return code;
        for (size_t k = 0; k < handlers->spec_count; k++)
            if (strcmp(handlers->specs[k].name, spec->name) == 0)
                return fail_set(fail, -EINVAL, "--handler %s is given twice", spec->name);
        handlers->spec_count++;
    }
    return 0;
}

static void start_all(struct handlers *handlers, const struct handlers_plan *plan)
{
    for (size_t i = 0; i < handlers->process_count; i++) {
        struct handler_process *process = &handlers->processes[i];
        *process = (struct handler_process){.spec = &handlers->specs[i / plan->processes],
                                            .stage = stage_wire(plan->stage),
                                            .loop = handlers->loop,
                                            .program = handlers->program,
                                            .hello_ms = HANDLER_HELLO_MS,
                                            .changed = changed,
                                            .arg = handlers};
        handler_process_start(process);
    }
}

struct handlers *handlers_create(struct loop *loop, const struct handlers_plan *plan, struct fail *fail)
{
    struct handlers *handlers = calloc(1, sizeof(*handlers));
    if (!handlers) {
        fail_memory(fail);
        return NULL;
    }
    *handlers = (struct handlers){
        .loop = loop, .stage = plan->stage, .program = -1, .changed = plan->changed, .arg = plan->arg};
    handlers->specs = calloc(plan->count + 1, sizeof(*handlers->specs));
    handlers->processes = calloc(plan->count * plan->processes + 1, sizeof(*handlers->processes));
    if (!handlers->specs || !handlers->processes)
        fail_memory(fail);
    else if (read_specs(handlers, plan, fail) == 0)
        handlers->program = program_open(supervisor_program(), "sluice-supervisor", plan->scratch, fail);
    if (handlers->program < 0) {
        handlers_destroy(&handlers);
        return NULL;
    }
    handlers->process_count = plan->count * plan->processes;
    start_all(handlers, plan);
    return handlers;
}

void handlers_destroy(struct handlers **handlers)
{
    struct handlers *old = take_ptr(handlers);
    if (!old)
        return;
    for (size_t i = 0; i < old->process_count; i++)
        handler_process_finish(&old->processes[i]);
    cleanup_close(&old->program);
    free(old->processes);
    free(old->specs);
    free(old);
}

void handlers_stop(struct handlers *handlers)
{
    for (size_t i = 0; handlers && i < handlers->process_count; i++)
        handler_process_stop(&handlers->processes[i]);
}

void handlers_set_hello(struct handlers *handlers, int64_t bound_ms)
{
    for (size_t i = 0; i < handlers->process_count; i++)
        handlers->processes[i].hello_ms = bound_ms;
}

bool handlers_are_over(const struct handlers *handlers)
{
    for (size_t i = 0; handlers && i < handlers->process_count; i++)
        if (handlers->processes[i].pid > 0)
            return false;
    return true;
}
