#include "workers/handlers/handlers.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "common/base/log.h"
#include "workers/handlers/processes/supervisor_program.h"
#include "common/loop/loop_now.h"
#include "workers/sandbox/embedded/program.h"

enum { FULL_MS = 20 }; /* until a full handler is looked at again */

struct handlers {
    struct loop *loop;
    enum stage stage;
    int program;
    struct handler_spec *specs;
    size_t spec_count;
    struct handler_process *processes;
    size_t process_count, hook_count; /* the last specs are those of hooks */
    int64_t hook_ms;
    char offers[HANDLERS_OFFERS_MAX + 1], error[256];
    bool is_over_bound; /* not all that is offered fits there */
    void (*changed)(void *arg);
    void *arg;
};

/* ---- what is offered ------------------------------------------------------------------------ */

static bool is_of_stage(const struct handlers *handlers, const struct handler_process *process, enum handler_role role)
{
    if (role == HANDLER_HOOK)
        return process->spec->is_hook;
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
            if (is_of_stage(handlers, process, offers->list[k].role) && !is_told(handlers, i, &offers->list[k]))
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

/* ---- hooks ------------------------------------------------------------------------------------ */

size_t handlers_count_hooks(const struct handlers *handlers) { return handlers ? handlers->hook_count : 0; }

int64_t handlers_hook_ms(const struct handlers *handlers) { return handlers->hook_ms; }

static const struct handler_spec *hook_spec(const struct handlers *handlers, size_t which)
{
    return &handlers->specs[handlers->spec_count - handlers->hook_count + which];
}

const char *handlers_hook_name(const struct handlers *handlers, size_t which)
{
    return hook_spec(handlers, which)->name;
}

static const char *offered_hook(const struct handler_peer *peer)
{
    for (size_t i = 0; i < peer->offers.count; i++)
        if (peer->offers.list[i].role == HANDLER_HOOK)
            return peer->offers.list[i].name;
    return NULL;
}

/* The ready one of it with the fewest jobs; `why` none is. */
static struct handler_process *find_hook(struct handlers *handlers, const struct handler_spec *spec, const char **why)
{
    struct handler_process *best = NULL;
    *why = "it is not ready";
    for (size_t i = 0; i < handlers->process_count; i++) {
        struct handler_process *process = &handlers->processes[i];
        if (process->spec != spec || (!is_ready(process) && !process->why[0]))
            continue;
        if (!is_ready(process))
            *why = process->why;
        else if (!offered_hook(&process->peer))
            *why = "it offers no hook";
        else if (process->peer.jobs.count < PEER_JOBS_MAX &&
                 (!best || process->peer.jobs.count < best->peer.jobs.count))
            best = process;
    }
    return best;
}

int handlers_find_hook(struct handlers *handlers, size_t which, struct handler_peer **ret, const char **ret_name,
                       struct fail *fail)
{
    const char *why;
    for (;;) {
        struct handler_process *process = find_hook(handlers, hook_spec(handlers, which), &why);
        if (process) {
            *ret = &process->peer;
            *ret_name = offered_hook(&process->peer);
            return 0;
        }
        int code = await_until(loop_now_ms() + FULL_MS, fail);
        if (code < 0)
            return fail_set(fail, code, "%.200s", why);
    }
}

/* ---- life ------------------------------------------------------------------------------------- */

static int read_spec(struct handlers *handlers, const char *text, bool is_hook, struct fail *fail)
{
    struct handler_spec *spec = &handlers->specs[handlers->spec_count];
    int code = handler_spec_parse(text, spec, fail);
    if (code < 0)
        return code;
    for (size_t k = 0; k < handlers->spec_count; k++)
        if (strcmp(handlers->specs[k].name, spec->name) == 0)
            return fail_set(fail, -EINVAL, "--handler or --hook %s is given twice", spec->name);
    spec->is_hook = is_hook;
    handlers->spec_count++;
    handlers->hook_count += is_hook;
    return 0;
}

static int read_specs(struct handlers *handlers, const struct handlers_plan *plan, struct fail *fail)
{
    int code = 0;
    for (size_t i = 0; i < plan->count && code == 0; i++)
        code = read_spec(handlers, plan->texts[i], false, fail);
    for (size_t i = 0; i < plan->hook_count && code == 0; i++)
        code = read_spec(handlers, plan->hooks[i], true, fail);
    return code;
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
    const size_t count = plan->count + plan->hook_count;
    *handlers = (struct handlers){.loop = loop,
                                  .stage = plan->stage,
                                  .program = -1,
                                  .hook_ms = plan->hook_ms,
                                  .changed = plan->changed,
                                  .arg = plan->arg};
    handlers->specs = calloc(count + 1, sizeof(*handlers->specs));
    handlers->processes = calloc(count * plan->processes + 1, sizeof(*handlers->processes));
    if (!handlers->specs || !handlers->processes)
        fail_memory(fail);
    else if (read_specs(handlers, plan, fail) == 0)
        handlers->program = program_open(supervisor_program(), "sluice-supervisor", plan->scratch, fail);
    if (handlers->program < 0) {
        handlers_destroy(&handlers);
        return NULL;
    }
    handlers->process_count = count * plan->processes;
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
