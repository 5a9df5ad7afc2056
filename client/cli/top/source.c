#include "client/cli/top/source.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "client/cli/command.h"
#include "common/base/cleanup.h"
#include "common/base/clock.h"

/* Of one round of questions. */
struct answers {
    json_t *status, *list; /* status NULL: none, and why */
    char *metrics;         /* NULL: not for this key */
    char why[MODEL_AWAY_SIZE];
};

struct source {
    struct sluice_client *client;
    int64_t interval_ms;
    bool skips_metrics; /* the thread's */
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool ends, is_paused, is_new; /* under the mutex, as all below */
    struct answers answers;
    int event;
};

static void drop(struct answers *answers)
{
    json_decref(answers->status);
    json_decref(answers->list);
    free(answers->metrics);
    *answers = (struct answers){0};
}

/* *skips_metrics: this key, or this broker, has none; they are not asked for again. */
static void ask(struct sluice_client *client, bool *skips_metrics, struct answers *ret)
{
    const char *text;
    *ret = (struct answers){0};
    if (sluice_status(client, &text) == 0)
        ret->status = json_loads(text, 0, NULL);
    if (!ret->status) {
        const char *error = sluice_error(client);
        snprintf(ret->why, sizeof(ret->why), "%s", *error ? error : "the broker's status is not JSON");
        return;
    }
    if (sluice_list(client, &(struct sluice_filter){.limit = SOURCE_ROLLOUTS}, &text) == 0)
        ret->list = json_loads(text, 0, NULL);
    if (*skips_metrics)
        return;
    const int failed = sluice_metrics(client, false, &text);
    if (!failed)
        ret->metrics = strdup(text);
    *skips_metrics = failed && failed != -ETIMEDOUT;
}

/* The model owns the answers then. */
static void give(struct model *model, struct answers *answers)
{
    if (answers->status)
        model_hear(model, take_ptr(&answers->status), take_ptr(&answers->list), clock_ms());
    else
        model_miss(model, answers->why);
    if (answers->metrics)
        model_hear_metrics(model, answers->metrics);
    drop(answers);
}

void source_ask(struct sluice_client *client, bool *skips_metrics, struct model *model)
{
    struct answers answers;
    ask(client, skips_metrics, &answers);
    give(model, &answers);
}

/* ---- the thread ------------------------------------------------------------------------------------- */

/* Under the mutex: answers that nobody took make room for these. */
static void keep(struct source *source, const struct answers *answers)
{
    const uint64_t one = 1;
    drop(&source->answers);
    source->answers = *answers;
    source->is_new = true;
    if (write(source->event, &one, sizeof(one)) < 0)
        source->is_new = true; /* the counter is full: the descriptor is readable anyway */
}

/* Under the mutex: until `until_ms`, the end, or for as long as it is paused. */
static void rest(struct source *source, int64_t until_ms)
{
    while (!source->ends && (source->is_paused || clock_ms() < until_ms)) {
        const struct timespec due = {until_ms / 1000, until_ms % 1000 * 1000000};
        if (source->is_paused)
            pthread_cond_wait(&source->changed, &source->mutex);
        else
            pthread_cond_timedwait(&source->changed, &source->mutex, &due);
    }
}

static void *run(void *arg)
{
    struct source *source = arg;
    pthread_mutex_lock(&source->mutex);
    while (!source->ends) {
        struct answers answers;
        pthread_mutex_unlock(&source->mutex);
        const int64_t asked_ms = clock_ms();
        ask(source->client, &source->skips_metrics, &answers);
        pthread_mutex_lock(&source->mutex);
        keep(source, &answers);
        rest(source, asked_ms + source->interval_ms);
    }
    pthread_mutex_unlock(&source->mutex);
    return NULL;
}

static void free_source(struct source *source)
{
    if (source->event >= 0)
        close(source->event);
    drop(&source->answers);
    pthread_cond_destroy(&source->changed);
    pthread_mutex_destroy(&source->mutex);
    free(source);
}

struct source *source_start(struct sluice_client *client, int64_t interval_ms)
{
    struct source *source = calloc(1, sizeof(*source));
    pthread_condattr_t monotonic;
    if (!source)
        return NULL;
    source->client = client;
    source->interval_ms = interval_ms;
    source->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    pthread_mutex_init(&source->mutex, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&source->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    sluice_set_timeout(client, SOURCE_ANSWER_MS);
    if (source->event < 0 || pthread_create(&source->thread, NULL, run, source) != 0) {
        free_source(source);
        return NULL;
    }
    return source;
}

void source_stop(struct source **source)
{
    if (!*source)
        return;
    pthread_mutex_lock(&(*source)->mutex);
    (*source)->ends = true;
    pthread_cond_signal(&(*source)->changed);
    pthread_mutex_unlock(&(*source)->mutex);
    pthread_join((*source)->thread, NULL);
    free_source(*source);
    *source = NULL;
}

int source_fd(const struct source *source) { return source->event; }

bool source_take(struct source *source, struct model *model)
{
    uint64_t count;
    pthread_mutex_lock(&source->mutex);
    const bool is_new = source->is_new && read(source->event, &count, sizeof(count)) == sizeof(count);
    if (is_new)
        give(model, &source->answers);
    source->is_new = false;
    pthread_mutex_unlock(&source->mutex);
    return is_new;
}

void source_pause(struct source *source, bool yes)
{
    pthread_mutex_lock(&source->mutex);
    source->is_paused = yes;
    pthread_cond_signal(&source->changed);
    pthread_mutex_unlock(&source->mutex);
}
