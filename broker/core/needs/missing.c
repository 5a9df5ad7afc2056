#include "broker/core/needs/missing.h"
#include "broker/core/needs/needs.h"
#include "broker/core/needs/offers.h"
#include "broker/core/state/state.h"
#include "common/base/nearest.h"
#include "schemas/task/task.h"

#include <stdarg.h>
#include <stdio.h>

static void add(char *text, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* What does not fit is left out. */
static void add(char *text, size_t size, const char *format, ...)
{
    const size_t len = strlen(text);
    va_list args;
    va_start(args, format);
    vsnprintf(text + len, size - len, format, args);
    va_end(args);
}

static void split(struct slice name, struct slice *ret_role, struct slice *ret_rest)
{
    const uint8_t *colon = memchr(name.data, ':', name.len);
    const size_t len = colon ? (size_t)(colon - name.data) : name.len;
    *ret_role = slice_of(name.data, len);
    *ret_rest = colon ? slice_of(colon + 1, name.len - len - 1) : slice_of(NULL, 0);
}

void need_print(const struct need *need, char *ret, size_t size)
{
    struct slice name, role, rest;
    size_t count = 0;
    ret[0] = '\0';
    for (size_t at = 0; names_next(need_names(need), &at, &name); count++) {
        split(name, &role, &rest);
        add(ret, size, "%sthe %.*s %.*s", count ? " and " : "", SLICE_ARG(role), SLICE_ARG(rest));
    }
}

/* ---- what nobody offers ----------------------------------------------------------------------- */

static bool is_offered(const struct core *core, enum stage stage, struct slice name)
{
    const struct offers *offers;
    LIST_EACH(offers, &core->offers[stage], link)
        if (names_are_among(name, offers_names(offers)))
            return true;
    return false;
}

/* Of what is offered, and of what needs no handler. */
static void find_nearest(const struct core *core, enum stage stage, struct slice wanted, struct nearest *nearest)
{
    struct slice wanted_role, name, role, rest;
    const struct offers *offers;
    enum handler_role built_in;
    split(wanted, &wanted_role, &rest);
    *nearest = (struct nearest){.wanted = rest};
    LIST_EACH(offers, &core->offers[stage], link)
        for (size_t at = 0; names_next(offers_names(offers), &at, &name);) {
            split(name, &role, &rest);
            if (slice_equal(role, wanted_role))
                nearest_offer(nearest, rest);
        }
    if (handler_role_parse(wanted_role, &built_in))
        for (size_t n = 0; (name = handler_built_in(built_in, n)).len; n++)
            nearest_offer(nearest, name);
}

/* The option of a worker's by which it is offered. */
static const char *option_of(struct slice name)
{
    return slice_is(name, TASK_SESSION_NEED) ? "--sessions HOST:PORT" : "--handler";
}

struct slice missing_of(const struct core *core, const struct need *need, struct missing *ret)
{
    struct slice name, role, rest;
    struct nearest nearest = {0};
    const char *option = "--handler";
    char meant[NEAREST_TEXT_SIZE] = "";
    const char *stage = stage_wire(need->stage);
    size_t count = 0;
    ret->text[0] = '\0';
    if (need_workers(core, need))
        return slice_of(NULL, 0);
    for (size_t at = 0; names_next(need_names(need), &at, &name);) {
        if (is_offered(core, need->stage, name))
            continue;
        split(name, &role, &rest);
        if (strlen(ret->text) < sizeof(ret->text) / 2)
            add(ret->text, sizeof(ret->text), "%sthe %.*s %.*s", count ? " and " : "", SLICE_ARG(role),
                SLICE_ARG(rest));
        if (count++ > 0)
            continue;
        option = option_of(name);
        if (!slice_is(name, TASK_SESSION_NEED))
            find_nearest(core, need->stage, name, &nearest);
    }
    if (!count) {
        need_print(need, ret->text, sizeof(ret->text) / 2);
        add(ret->text, sizeof(ret->text), ", which no one %s worker offers together: start one with --handler", stage);
        return slice_from_str(ret->text);
    }
    add(ret->text, sizeof(ret->text), ", which no %s worker offers: start one with %s%s", stage, option,
        nearest_text(&nearest, "", meant));
    return slice_from_str(ret->text);
}

/* That of its runs there is one was asked at the submit. */
static struct slice missing_judge(const struct group_work *work, struct missing *ret)
{
    const struct policy *policy = work->judging ? work->judging->policy : NULL;
    ret->text[0] = '\0';
    if (policy && !policy->engines)
        add(ret->text, sizeof(ret->text), "an engine of the policy %s: sluice engine add URL --policy %s", policy->name,
            policy->name);
    return slice_from_str(ret->text);
}

struct slice missing_of_group(const struct core *core, const struct group_work *work, struct missing *ret)
{
    const struct need *run = core->needs[work->run_need], *eval = core->needs[work->eval_need];
    struct slice missed = run ? missing_of(core, run, ret) : slice_of(NULL, 0);
    if (!missed.len && eval)
        missed = missing_of(core, eval, ret);
    return missed.len ? missed : missing_judge(work, ret);
}
