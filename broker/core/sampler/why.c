/* The watchdog: why a batch is not there, and what to do about it. */
#include "broker/core/sampler/sampling.h"
#include "broker/core/sampled/sampled.h"
#include "broker/core/state/state.h"

#include <stdarg.h>
#include <stdio.h>

enum { HOPELESS_LEAST = 16 }; /* verdicts of which none was `kept`, before that is said */

static bool needs_engine(const struct sampler *sampler)
{
    const struct list *live = &sampler->groups[SAMPLED_LIVE];
    const struct sampled *oldest = list_is_empty(live) ? NULL : container_of(live->next, struct sampled, link);
    return oldest && oldest->group && oldest->group->work && oldest->group->work->needs_engine;
}

/* ---- why no group is kept ------------------------------------------------------------------- */

/* What is said of late groups and their cure; cut where it would be longer than may be. */
struct words {
    char *text;
    size_t size, len;
};

static void say(struct words *words, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(struct words *words, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int len = vsnprintf(words->text + words->len, words->size - words->len, format, args);
    va_end(args);
    const size_t left = words->size - words->len - 1;
    words->len += len < 0 ? 0 : (size_t)len < left ? (size_t)len : left;
}

/* Whether each that was dropped as uniform since the last batch has one rollout, whose rewards cannot differ. */
static bool are_single(const struct sampler *sampler)
{
    const struct sampled *sampled;
    LIST_EACH(sampled, &sampler->groups[SAMPLED_DROPPED], link)
        if (sampled->row.samples > 1 && sampled->row.verdict >= SAMPLER_UNIFORM_0 &&
            sampled->row.verdict <= SAMPLER_UNIFORM_OTHER)
            return false;
    return !sampler->row.rule.keeps_uniform && sampler->counts[SAMPLED_DROPPED] > 0;
}

static void say_stale(const struct core *core, const struct sampler *sampler, struct words *words)
{
    say(words,
        "staleness is %llu, the newest version %llu; allow more, keep fewer batches ahead, or set versions less "
        "often",
        (unsigned long long)sampler->row.rule.staleness, (unsigned long long)core->versions);
}

/* Of the verdict that most of them have. */
static void say_cure(const struct core *core, const struct sampler *sampler, enum sampler_count most,
                     struct words *words)
{
    if (most == SAMPLER_STALE) {
        say(words, ": ");
        say_stale(core, sampler, words);
    } else if (most == SAMPLER_NO_REWARD) {
        say(words, "; their rollouts end without a reward: the broker's log says why (rollout.failed); a task without "
                   "an evaluator has none");
    } else if (are_single(sampler)) {
        say(words, "; each has one rollout, and the rewards of one cannot differ: submit them with 2 samples or more, "
                   "or open the sampler with filter none");
    } else if (most == SAMPLER_UNIFORM_OTHER) {
        say(words, "; look at their rewards: all of a group are alike, and neither 0 nor 1");
    } else {
        say(words, "; submit %s tasks, or look at their rewards", most == SAMPLER_UNIFORM_0 ? "easier" : "harder");
    }
}

/* What the last verdicts were, by name, and what to do about the most frequent one. */
static void say_hopeless(const struct core *core, const struct sampler *sampler, struct words *words)
{
    const uint64_t *recent = sampler->row.recent;
    enum sampler_count most = SAMPLER_KEPT + 1;
    say(words, "no group is admissible: of the last %llu", (unsigned long long)sampler_recent(sampler));
    const char *glue = ", ";
    for (unsigned i = SAMPLER_KEPT + 1; i < SAMPLER_VERDICTS; i++) {
        most = recent[i] > recent[most] ? (enum sampler_count)i : most;
        if (recent[i])
            say(words, "%s%llu are %s", glue, (unsigned long long)recent[i], sampler_count_word((enum sampler_count)i));
        glue = recent[i] ? " and " : glue;
    }
    say_cure(core, sampler, most, words);
}

/* ---- why there is no batch -------------------------------------------------------------------- */

void sampler_why(const struct core *core, const struct sampler *sampler, char ret[SAMPLER_WHY_MAX + 1])
{
    const size_t size = SAMPLER_WHY_MAX + 1;
    struct words words = {.text = ret, .size = size};
    const unsigned long long ready = sampler->counts[SAMPLED_READY], live = sampler->counts[SAMPLED_LIVE];
    const unsigned long long held = sampler->counts[SAMPLED_HELD], wanted = sampler_wanted(sampler);
    const unsigned long long groups = sampler->row.rule.groups, stale = sampler->row.since[SAMPLER_STALE];
    if (sampler->row.is_closing)
        snprintf(ret, size, "the sampler is being closed");
    else if (ready >= groups)
        snprintf(ret, size, "%llu of %llu groups are ready: ask for batch %llu", ready, groups,
                 (unsigned long long)sampler->row.batch + 1);
    else if (needs_engine(sampler) && !core->engines_registered)
        snprintf(ret, size, "no engine is registered: sluice engine add URL");
    else if (sampler_recent(sampler) >= HOPELESS_LEAST && !sampler->row.recent[SAMPLER_KEPT])
        say_hopeless(core, sampler, &words);
    else if (!held && live < wanted)
        snprintf(ret, size,
                 "the pool is empty: %llu of %llu groups are ready, %llu are at work, %llu would be; submit more tasks",
                 ready, groups, live, wanted);
    else if (stale && !ready) {
        say(&words, "%llu groups were dropped as stale since the last batch: ", stale);
        say_stale(core, sampler, &words);
    } else
        snprintf(ret, size, "%llu of %llu groups are ready, %llu are at work, %llu are held", ready, groups, live,
                 held);
}
