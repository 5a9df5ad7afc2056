#include "client/cli/submit/wait.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/cli/connect.h"
#include "client/json/json.h"
#include "common/base/clock.h"

enum {
    STEP_MS = 500,
    DRAW_MS = 200,      /* between two pictures of the progress bar */
    LINE_MS = 1000,     /* at least between two lines of progress where there is no terminal */
    SILENCE_MS = 20000, /* then what is missing is asked for */
    BAR_WIDTH = 30
};

/* ---- progress ------------------------------------------------------------------------------- */

static void draw_bar(const struct wait *wait)
{
    char bar[BAR_WIDTH + 1];
    size_t full = wait->total ? (size_t)(wait->ended * BAR_WIDTH / wait->total) : BAR_WIDTH;
    memset(bar, '.', BAR_WIDTH);
    memset(bar, '#', full);
    bar[BAR_WIDTH] = '\0';
    fprintf(stderr, "\r[%s] ", bar);
}

static void show_progress(struct wait *wait, bool last)
{
    const int64_t now_ms = clock_ms(), seconds = (now_ms - wait->begun_ms) / 1000;
    const bool is_due = now_ms - wait->shown_ms >= (wait->draws ? DRAW_MS : LINE_MS);
    const bool is_same = wait->shown == wait->ended && !wait->draws;
    if (wait->quiet || (!last && (!is_due || is_same)) || (last && is_same && wait->shown))
        return;
    wait->shown_ms = now_ms;
    wait->shown = wait->ended;
    if (wait->draws)
        draw_bar(wait);
    fprintf(stderr, "%llu of %llu rollouts have ended", (unsigned long long)wait->ended,
            (unsigned long long)wait->total);
    if (wait->rewarded)
        fprintf(stderr, ", mean reward %.3f", wait->reward_sum / (double)wait->rewarded);
    if (wait->ended > wait->trainable)
        fprintf(stderr, ", %llu not trainable", (unsigned long long)(wait->ended - wait->trainable));
    fprintf(stderr, ", %lld s", (long long)seconds);
    fputs(wait->draws && !last ? " \x1b[K" : "\n", stderr);
}

/* ---- what came -------------------------------------------------------------------------------- */

static int compare_groups(const void *a, const void *b)
{
    return strcmp(((const struct wait_group *)a)->name, ((const struct wait_group *)b)->name);
}

struct wait_group *wait_find(struct wait *wait, const char *name)
{
    const struct wait_group key = {.name = name};
    return bsearch(&key, wait->groups, wait->group_count, sizeof(*wait->groups), compare_groups);
}

static void end_sample(struct wait *wait, struct wait_sample *sample, const char *outcome)
{
    snprintf(sample->outcome, sizeof(sample->outcome), "%s", outcome);
    wait->ended++;
    wait->trainable += sample->trainable;
    wait->rewarded += sample->has_reward;
    wait->reward_sum += sample->reward;
    show_progress(wait, false);
}

static void take(struct wait *wait, const struct sluice_trajectory *trajectory)
{
    struct wait_group *group = wait_find(wait, trajectory->group);
    wait->heard_ms = clock_ms();
    if (!group || trajectory->sample >= group->line->samples || *group->samples[trajectory->sample].outcome)
        return;
    struct wait_sample *sample = &group->samples[trajectory->sample];
    sample->trainable = trajectory->trainable;
    sample->has_reward = trajectory->has_reward;
    sample->reward = trajectory->reward;
    if (wait->out)
        json_trajectory(wait->out, trajectory);
    end_sample(wait, sample, trajectory->outcome);
}

int wait_ask(struct wait *wait, struct wait_group *group, bool may_be_lost)
{
    for (unsigned i = 0; i < group->line->samples; i++) {
        struct wait_sample *sample = &group->samples[i];
        char rollout[128];
        const struct sluice_trajectory *trajectory;
        const char *state;
        if (*sample->outcome)
            continue;
        snprintf(rollout, sizeof(rollout), "%s/%u", group->name, i);
        int failed = sluice_get(wait->client, rollout, &trajectory, &state);
        if (trajectory)
            take(wait, trajectory);
        else if (may_be_lost && (failed == -ENOENT || failed == -ENODATA || failed == -EBADMSG))
            end_sample(wait, sample, "lost");
        else if (failed == -ETIMEDOUT)
            return failed;
    }
    return 0;
}

static int ask_for_missing(struct wait *wait)
{
    int failed = 0;
    for (size_t i = 0; i < wait->group_count && !failed; i++)
        failed = wait_ask(wait, &wait->groups[i], true);
    wait->heard_ms = clock_ms();
    return failed == -ETIMEDOUT ? 0 : failed; /* the broker is away: later */
}

/* From where the stream ends now. */
static int subscribe_at_end(struct wait *wait)
{
    uint64_t head;
    int failed = sluice_subscribe(wait->client, wait->stream, 0);
    sluice_stream_state(wait->client, &head, NULL);
    return failed ? failed : sluice_subscribe(wait->client, wait->stream, head + 1);
}

int wait_for(struct wait *wait, int64_t timeout_ms)
{
    int64_t end_ms = clock_ms() + timeout_ms;
    for (int64_t now_ms = clock_ms(); wait->ended < wait->total && now_ms < end_ms; now_ms = clock_ms()) {
        const struct sluice_trajectory *trajectory;
        int failed = sluice_next(wait->client, end_ms - now_ms, &trajectory);
        if (!failed) {
            take(wait, trajectory);
        } else if (failed == -EBADMSG || failed == -ENODATA || failed == -ESTALE) {
            cli_say("%s", sluice_error(wait->client));
            failed = failed != -EBADMSG ? subscribe_at_end(wait) : 0;
            if (!failed)
                failed = ask_for_missing(wait);
            if (failed)
                return failed;
        } else if (failed != -EAGAIN && failed != -EINTR) {
            return failed;
        }
    }
    return 0;
}

/* ---- life --------------------------------------------------------------------------------------- */

int wait_open(struct wait *wait, struct sluice_client *client, const char *stream, const struct tasks_file *tasks)
{
    wait->client = client;
    wait->stream = stream;
    wait->draws = isatty(STDERR_FILENO);
    wait->begun_ms = wait->heard_ms = wait->shown_ms = clock_ms();
    wait->groups = calloc(tasks->count + 1, sizeof(*wait->groups));
    if (!wait->groups)
        return -ENOMEM;
    for (size_t i = 0; i < tasks->count; i++) {
        struct wait_group *group = &wait->groups[wait->group_count++];
        group->line = &tasks->lines[i];
        group->name = group->line->name;
        group->samples = calloc(group->line->samples, sizeof(*group->samples));
        if (!group->samples)
            return -ENOMEM;
        wait->total += group->line->samples;
    }
    qsort(wait->groups, wait->group_count, sizeof(*wait->groups), compare_groups);
    return subscribe_at_end(wait);
}

void wait_finish(struct wait *wait)
{
    for (size_t i = 0; i < wait->group_count; i++)
        free(wait->groups[i].samples);
    free(wait->groups);
    *wait = (struct wait){0};
}

int wait_all(struct wait *wait)
{
    int failed = 0;
    while (wait->ended < wait->total && !failed) {
        failed = wait_for(wait, STEP_MS);
        if (!failed && clock_ms() - wait->heard_ms > SILENCE_MS)
            failed = ask_for_missing(wait);
        show_progress(wait, false);
    }
    show_progress(wait, true);
    return failed;
}
