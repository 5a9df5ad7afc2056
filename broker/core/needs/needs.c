#include "broker/core/needs/needs.h"
#include "broker/core/needs/lines.h"
#include "broker/core/needs/offers.h"
#include "broker/core/state/state.h"

#include <stdlib.h>

struct slice need_names(const struct need *need) { return slice_of(need->names, need->len); }

/* ---- those that live groups have --------------------------------------------------------- */

/* Its number; 0: it is not there. *ret_free: a number that none has, or 0. */
static uint16_t find(const struct core *core, enum stage stage, struct slice names, uint16_t *ret_free)
{
    *ret_free = 0;
    for (uint16_t i = 1; i <= NEEDS_MAX; i++) {
        const struct need *need = core->needs[i];
        if (need && need->stage == stage && slice_equal(need_names(need), names))
            return i;
        if (!need && !*ret_free)
            *ret_free = i;
    }
    return 0;
}

bool needs_have_room(const struct core *core, const struct core_task *task)
{
    size_t wanted = 0, there = 0;
    uint16_t free_number;
    for (enum stage stage = STAGE_RUN; stage < STAGE_COUNT; stage++)
        wanted += task->needs[stage].len && !find(core, stage, task->needs[stage], &free_number);
    if (!wanted)
        return true;
    for (unsigned i = 1; i <= NEEDS_MAX; i++)
        there += core->needs[i] != NULL;
    return there + wanted <= NEEDS_MAX;
}

static bool has_bit(const struct need *need, const struct offers *offers)
{
    return need->met[offers->number / 8] & 1u << offers->number % 8;
}

static uint16_t create(struct core *core, enum stage stage, struct slice names, uint16_t number)
{
    struct need *need = number ? core_alloc(core, 1, sizeof(*need) + names.len) : NULL;
    const struct offers *offers;
    if (!need)
        return 0;
    need->stage = stage;
    need->len = (uint32_t)names.len;
    memcpy(need->names, names.data, names.len);
    list_init(&need->clients);
    list_init(&need->link);
    LIST_EACH(offers, &core->offers[stage], link)
        if (names_are_among(names, offers_names(offers)))
            need->met[offers->number / 8] |= (uint8_t)(1u << offers->number % 8);
    core->needs[number] = need;
    return number;
}

static uint16_t intern(struct core *core, enum stage stage, struct slice names)
{
    uint16_t free_number, number = names.len ? find(core, stage, names, &free_number) : 0;
    if (names.len && !number)
        number = create(core, stage, names, free_number);
    if (number)
        core->needs[number]->groups++;
    return number;
}

void needs_join(struct core *core, struct group_work *work, const struct core_task *task)
{
    work->run_need = intern(core, STAGE_RUN, task->needs[STAGE_RUN]);
    work->eval_need = intern(core, STAGE_EVAL, task->needs[STAGE_EVAL]);
}

static void part(struct core *core, uint16_t number)
{
    struct need *need = number ? core->needs[number] : NULL;
    if (!need || --need->groups > 0)
        return;
    core->needs[number] = NULL;
    list_remove(&need->link);
    free(need);
}

void needs_part(struct core *core, struct group_work *work)
{
    part(core, work->run_need);
    part(core, work->eval_need);
    work->run_need = work->eval_need = 0;
}

void needs_finish(struct core *core)
{
    for (unsigned i = 1; i <= NEEDS_MAX; i++) {
        if (core->needs[i])
            lines_finish(core->needs[i]);
        free(core->needs[i]);
    }
}

/* ---- which workers meet it ------------------------------------------------------------------ */

bool need_is_met(const struct need *need, const struct worker *worker)
{
    return !need || (worker->offers && has_bit(need, worker->offers));
}

uint64_t need_workers(const struct core *core, const struct need *need)
{
    uint64_t workers = 0;
    const struct offers *offers;
    LIST_EACH(offers, &core->offers[need->stage], link)
        workers += has_bit(need, offers) ? offers->workers : 0;
    return workers;
}

uint64_t need_free_slots(const struct core *core, const struct need *need)
{
    uint64_t slots = 0;
    const struct offers *offers;
    LIST_EACH(offers, &core->offers[need->stage], link)
        slots += has_bit(need, offers) ? offers->free_slots : 0;
    return slots;
}

static struct worker *freer(struct worker *best, struct heap_node *node)
{
    struct worker *worker = container_of(node, struct worker, offering);
    return !best || worker->offering.key < best->offering.key ? worker : best;
}

/* All of them are looked at, as the freest is the one that is avoided. */
static struct worker *find_other(const struct core *core, const struct need *need, const struct worker *avoided)
{
    struct worker *best = NULL;
    const struct offers *offers;
    LIST_EACH(offers, &core->offers[need->stage], link)
        for (size_t i = 0; has_bit(need, offers) && i < offers->free.count; i++)
            if (offers->free.nodes[i] != &avoided->offering)
                best = freer(best, offers->free.nodes[i]);
    return best;
}

struct worker *need_worker(const struct core *core, const struct need *need, struct slice avoided)
{
    struct worker *best = NULL;
    const struct offers *offers;
    LIST_EACH(offers, &core->offers[need->stage], link) {
        struct heap_node *freest = has_bit(need, offers) ? heap_peek(&offers->free) : NULL;
        if (freest)
            best = freer(best, freest);
    }
    struct worker *other = best && slice_equal(worker_id(best), avoided) ? find_other(core, need, best) : NULL;
    return other ? other : best;
}
