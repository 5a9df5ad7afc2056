/* What the handlers of workers offer: read, and shared by the workers that offer the same. */
#include "broker/core/needs/offers.h"
#include "broker/core/state/state.h"
#include "schemas/task/task.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- sets of names ------------------------------------------------------------------ */

bool names_next(struct slice names, size_t *at, struct slice *ret)
{
    while (*at < names.len && names.data[*at] == ' ')
        ++*at;
    const size_t from = *at;
    while (*at < names.len && names.data[*at] != ' ')
        ++*at;
    *ret = slice_of(names.data + from, *at - from);
    return ret->len > 0;
}

static int compare(struct slice a, struct slice b)
{
    const size_t len = a.len < b.len ? a.len : b.len;
    const int order = len ? memcmp(a.data, b.data, len) : 0;
    return order ? order : (a.len > b.len) - (a.len < b.len);
}

bool names_are_among(struct slice some, struct slice all)
{
    struct slice wanted, name = {0};
    size_t at = 0, in_all = 0;
    while (names_next(some, &at, &wanted))
        do {
            if (!names_next(all, &in_all, &name) || compare(name, wanted) > 0)
                return false;
        } while (compare(name, wanted) < 0);
    return true;
}

struct slice offers_names(const struct offers *offers) { return slice_of(offers->names, offers->len); }

/* ---- reading ------------------------------------------------------------------------ */

struct reading {
    struct slice names[OFFERED_MAX]; /* "evaluator:grade", without the version */
    size_t count;
    char why[OFFERS_ERROR_MAX + 1]; /* the first that is none, and why */
    size_t refused;
};

static void refuse_offer(struct reading *reading, struct slice offer, const char *why)
{
    if (reading->refused++ == 0)
        snprintf(reading->why, sizeof(reading->why), "%.*s: %s", offer.len < 80 ? (int)offer.len : 80,
                 (const char *)offer.data, why);
}

/* The end of the name, before "@VERSION". */
static size_t name_end(struct slice offer)
{
    const uint8_t *at = memchr(offer.data, '@', offer.len);
    return at ? (size_t)(at - offer.data) : offer.len;
}

static void read_offer(struct reading *reading, struct slice offer, enum stage stage)
{
    const uint8_t *colon = memchr(offer.data, ':', offer.len);
    const size_t role_len = colon ? (size_t)(colon - offer.data) : 0, end = name_end(offer);
    enum handler_role role;
    if (!colon || !handler_role_parse(slice_of(offer.data, role_len), &role))
        refuse_offer(reading, offer, "an offer is agent, tool, evaluator or hook, a ':', a name, '@' and a version");
    else if (end <= role_len || !handler_name_is_valid(slice_of(colon + 1, end - role_len - 1)))
        refuse_offer(reading, offer, "a name is 1 to 64 letters, digits, '_', '.' and '-', beginning with a letter");
    else if ((role != HANDLER_EVALUATOR && stage == STAGE_EVAL) || stage == STAGE_INIT)
        refuse_offer(reading, offer,
                     "run workers offer agents, tools, evaluators and hooks, and eval workers evaluators");
    else if (reading->count == OFFERED_MAX)
        refuse_offer(reading, offer, "a worker offers at most 64 names");
    else
        reading->names[reading->count++] = slice_of(offer.data, end);
}

static int by_name(const void *a, const void *b) { return compare(*(const struct slice *)a, *(const struct slice *)b); }

/* Sorted, each once, into `ret`, which holds as much as was read. */
static struct slice put_names(struct reading *reading, char *ret)
{
    size_t len = 0;
    qsort(reading->names, reading->count, sizeof(reading->names[0]), by_name);
    for (size_t i = 0; i < reading->count; i++) {
        const struct slice name = reading->names[i];
        if (i && slice_equal(name, reading->names[i - 1]))
            continue;
        if (len)
            ret[len++] = ' ';
        memcpy(ret + len, name.data, name.len);
        len += name.len;
    }
    return slice_of(ret, len);
}

/* ---- those that are there ------------------------------------------------------------- */

static struct offers *find(const struct core *core, enum stage stage, struct slice names)
{
    struct offers *offers;
    LIST_EACH(offers, &core->offers[stage], link)
        if (slice_equal(offers_names(offers), names))
            return offers;
    return NULL;
}

static bool is_taken(const struct core *core, unsigned number)
{
    return core->offers_taken[number / 8] & 1u << number % 8;
}

static void mark_met(struct need *need, const struct offers *offers)
{
    const uint8_t bit = (uint8_t)(1u << offers->number % 8);
    uint8_t *met = &need->met[offers->number / 8];
    *met = (uint8_t)(names_are_among(slice_of(need->names, need->len), offers_names(offers)) ? *met | bit
                                                                                             : *met & ~bit);
}

static struct offers *create(struct core *core, enum stage stage, struct slice names)
{
    unsigned number = 0;
    while (number < OFFERS_MAX && is_taken(core, number))
        number++;
    struct offers *offers = number < OFFERS_MAX ? core_alloc(core, 1, sizeof(*offers) + names.len) : NULL;
    if (!offers)
        return NULL;
    memcpy(offers->names, names.data, names.len);
    offers->len = (uint32_t)names.len;
    offers->number = (uint16_t)number;
    core->offers_taken[number / 8] |= (uint8_t)(1u << number % 8);
    list_push_back(&core->offers[stage], &offers->link);
    for (unsigned i = 1; i <= NEEDS_MAX; i++)
        if (core->needs[i] && core->needs[i]->stage == stage)
            mark_met(core->needs[i], offers);
    return offers;
}

void offers_leave(struct core *core, struct worker *worker)
{
    struct offers *offers = worker->offers;
    if (!offers)
        return;
    offers_refresh(core, worker, false);
    worker->offers = NULL;
    if (--offers->workers > 0)
        return;
    core->offers_taken[offers->number / 8] &= (uint8_t) ~(1u << offers->number % 8);
    list_remove(&offers->link);
    heap_finish(&offers->free);
    free(offers);
}

static void join(struct core *core, struct worker *worker, struct slice names)
{
    struct offers *offers = find(core, worker->stage, names);
    if (worker->offers && worker->offers == offers)
        return;
    offers = offers ? offers : create(core, worker->stage, names);
    offers_leave(core, worker);
    worker->offers = offers;
    if (offers)
        offers->workers++;
}

void offers_say(struct core *core, struct worker *worker, struct slice text)
{
    struct reading reading = {0};
    if (slice_equal(slice_from_str(worker->offered), text))
        return;
    struct slice offer;
    for (size_t at = 0; names_next(text, &at, &offer);)
        read_offer(&reading, offer, worker->stage);
    char names[OFFERS_TEXT_MAX];
    const struct slice set = put_names(&reading, names);
    if (set.len)
        join(core, worker, set);
    else
        offers_leave(core, worker);
    if (set.len && !worker->offers)
        snprintf(reading.why, sizeof(reading.why), "workers offer more than %d different sets of names", OFFERS_MAX);
    core->counters.mistakes += reading.refused;
    free(worker->offered);
    free(worker->offers_error);
    worker->offered = core_strdup(core, text);
    worker->offers_error = core_strdup(core, slice_from_str(reading.why));
}

void offers_refresh(struct core *core, struct worker *worker, bool may_take)
{
    struct offers *offers = worker->offers;
    if (!offers)
        return;
    offers->free_slots -= worker->free_offered;
    worker->free_offered = may_take ? worker->slots - (uint32_t)worker->jobs.count : 0;
    offers->free_slots += worker->free_offered;
    if (!may_take)
        heap_remove(&offers->free, &worker->offering);
    else if (!heap_put(&offers->free, &worker->offering, -(int64_t)worker->free_offered))
        core->failed = true;
}
