#include "workers/stages/steps/steps_verdict.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char reward_name[] = "reward";

void steps_verdict_add(struct steps_verdict *steps, struct verdict *verdict)
{
    steps->each[steps->count++] = *verdict;
    *verdict = (struct verdict){0};
}

void steps_verdict_finish(struct steps_verdict *steps)
{
    while (steps->count > 0)
        verdict_finish(&steps->each[--steps->count]);
}

/* ---- parts of one step ------------------------------------------------------------------------- */

static size_t part_count(const struct verdict *verdict) { return verdict->part_count ? verdict->part_count : 1; }

/* One that names no part names its reward. */
static struct verdict_part part_at(const struct verdict *verdict, size_t i)
{
    struct verdict_part part = {.value = verdict->reward, .weight = 1};
    if (verdict->part_count > 0)
        return verdict->parts[i];
    strcpy(part.name, reward_name);
    return part;
}

static bool find_part(const struct verdict *verdict, const char *name, struct verdict_part *ret)
{
    for (size_t i = 0; i < part_count(verdict); i++) {
        *ret = part_at(verdict, i);
        if (strcmp(ret->name, name) == 0)
            return true;
    }
    return false;
}

bool steps_verdict_suffices(const struct steps_verdict *steps, char *why, size_t size)
{
    const struct verdict *verdict = &steps->each[steps->count - 1];
    const struct task_least_list *least = &steps->task->steps[steps->count - 1].min_reward;
    for (size_t i = 0; i < least->count; i++) {
        struct verdict_part part;
        const char *name = least->each[i].name;
        bool has = find_part(verdict, name, &part);
        if (!has && strcmp(name, reward_name) == 0 && !task_has_verifier(steps->task)) {
            part.value = verdict->reward;
            has = true;
        }
        if (has && part.value >= least->each[i].value)
            continue;
        if (has)
            snprintf(why, size, "%s is %.10g, below its min_reward of %.10g", name, part.value, least->each[i].value);
        else
            snprintf(why, size, "it has no %s, of which its min_reward is %.10g", name, least->each[i].value);
        return false;
    }
    return true;
}

/* ---- the reward ------------------------------------------------------------------------------------ */

static bool is_final(const struct steps_verdict *steps) { return strcmp(steps->task->steps_reward, "final") == 0; }

/* Whether rewards are a verifier's part of that name, and 0 where a step has none. */
static bool counts_rewards_alone(const struct steps_verdict *steps)
{
    struct verdict_part part;
    for (size_t i = 0; i < steps->count && task_has_verifier(steps->task) && !is_final(steps); i++)
        if (find_part(&steps->each[i], reward_name, &part))
            return true;
    return false;
}

static double reward_of(const struct steps_verdict *steps, size_t i)
{
    struct verdict_part part;
    if (!counts_rewards_alone(steps))
        return steps->each[i].reward;
    return find_part(&steps->each[i], reward_name, &part) ? part.value : 0;
}

/* long double: the sum of what has a mean may be no double. */
static double joined_reward(const struct steps_verdict *steps)
{
    long double sum = 0;
    if (is_final(steps))
        return reward_of(steps, steps->count - 1);
    for (size_t i = 0; i < steps->count; i++)
        sum += reward_of(steps, i);
    return (double)(sum / (long double)steps->count);
}

/* ---- parts ------------------------------------------------------------------------------------------- */

static double mean_of_part(const struct steps_verdict *steps, const char *name)
{
    struct verdict_part part;
    long double sum = 0;
    for (size_t i = 0; i < steps->count; i++)
        sum += find_part(&steps->each[i], name, &part) ? part.value : 0;
    return (double)(sum / (long double)steps->count);
}

/* What there is no room for, or is there already, is left out. */
static void add_parts(const struct steps_verdict *steps, struct verdict *ret)
{
    struct refusal no;
    const bool rewards_alone = counts_rewards_alone(steps);
    for (size_t i = is_final(steps) ? steps->count - 1 : 0; i < steps->count; i++)
        for (size_t k = 0; k < part_count(&steps->each[i]); k++) {
            const struct verdict_part part = part_at(&steps->each[i], k);
            const double weight = rewards_alone ? strcmp(part.name, reward_name) == 0 : part.weight;
            verdict_add_part(ret, part.name, is_final(steps) ? part.value : mean_of_part(steps, part.name), weight,
                             &no);
        }
    for (size_t i = 0; i < steps->count; i++) {
        char name[sizeof(ret->parts->name)];
        snprintf(name, sizeof(name), "step.%s", steps->task->steps[i].name);
        verdict_add_part(ret, name, reward_of(steps, i), 0, &no);
    }
}

/* ---- what else it has -------------------------------------------------------------------------------- */

static void add_metric(struct verdict *ret, const char *step, const char *of, double value)
{
    struct refusal no;
    char name[sizeof(ret->metrics->name)];
    if ((size_t)snprintf(name, sizeof(name), "%s.%s", step, of) < sizeof(name))
        verdict_add_metric(ret, name, value, &no);
}

static void add_metrics(const struct verdict *verdict, const char *step, struct verdict *ret)
{
    for (size_t i = 0; i < verdict->part_count; i++)
        if (verdict->part_count > 1 || strcmp(verdict->parts[i].name, reward_name) != 0)
            add_metric(ret, step, verdict->parts[i].name, verdict->parts[i].value);
    for (size_t i = 0; i < verdict->metric_count; i++)
        add_metric(ret, step, verdict->metrics[i].name, verdict->metrics[i].value);
}

static bool add_test(const struct verdict_test *test, const char *step, struct verdict *ret)
{
    struct refusal no;
    enum test_status status = TEST_ERROR;
    char *name = NULL;
    test_status_parse(slice_from_str(test->status), &status);
    if (asprintf(&name, "%s: %s", step, test->name) < 0)
        return false;
    const bool good = verdict_add_test(ret, name, status, test->message,
                                       test->seconds.is_known ? &test->seconds.value : NULL, &no);
    free(name);
    return good;
}

static bool add_tests(const struct verdict *verdict, const char *step, struct verdict *ret)
{
    const struct verdict_tests *from = verdict->tests;
    struct verdict_tests before = {0};
    if (!from)
        return true;
    if (ret->tests)
        before = *ret->tests;
    bool good = true;
    for (size_t i = 0; i < from->list_count && good; i++)
        good = add_test(&from->list[i], step, ret);
    if (!good || !ret->tests)
        return good;
    ret->tests->passed = before.passed + from->passed; /* also those that are not listed */
    ret->tests->failed = before.failed + from->failed;
    ret->tests->skipped = before.skipped + from->skipped;
    ret->tests->error = before.error + from->error;
    return true;
}

static void say(const struct steps_verdict *steps, struct verdict *ret)
{
    char why[VERDICT_WHY_BYTES];
    const size_t last = steps->count - 1, end = sizeof(why) / 2;
    size_t len = (size_t)snprintf(why, sizeof(why), "%.10g is %s of %zu of %zu steps:", ret->reward,
                                  is_final(steps) ? "the last" : "the mean", steps->count, steps->task->step_count);
    for (size_t i = 0; i < steps->count && len < end; i++)
        len += (size_t)snprintf(why + len, sizeof(why) - len, "%s %s %.10g", i ? "," : "", steps->task->steps[i].name,
                                reward_of(steps, i));
    snprintf(why + len, sizeof(why) - len, "; %s: %s", steps->task->steps[last].name, steps->each[last].why);
    verdict_say(ret, "%s", why);
}

bool steps_verdict_join(const struct steps_verdict *steps, struct verdict *ret)
{
    struct refusal no;
    if (steps->count == 0)
        return true;
    verdict_set_reward(ret, joined_reward(steps), &no);
    add_parts(steps, ret);
    bool good = true;
    for (size_t i = 0; i < steps->count && good; i++) {
        add_metrics(&steps->each[i], steps->task->steps[i].name, ret);
        good = add_tests(&steps->each[i], steps->task->steps[i].name, ret);
    }
    say(steps, ret);
    return good;
}
