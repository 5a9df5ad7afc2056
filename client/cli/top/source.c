#include "client/cli/top/source.h"

#include <pthread.h>
#include <stdlib.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "client/cli/command.h"
#include "common/base/clock.h"

struct source {
    struct sluice_client *client;
    int64_t interval_ms;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool ends, is_paused, is_new; /* under the mutex, as all below */
    json_t *status, *list;
    char why[MODEL_AWAY_SIZE];
    int event;
};

/* Answers, or NULL and why. */
static json_t *ask(struct sluice_client *client, json_t **ret_list, char why[MODEL_AWAY_SIZE])
{
    const char *text;
    json_t *status = NULL;
    *ret_list = NULL;
    if (sluice_status(client, &text) == 0)
        status = json_loads(text, 0, NULL);
    if (status && sluice_list(client, &(struct sluice_filter){.limit = SOURCE_ROLLOUTS}, &text) == 0)
        *ret_list = json_loads(text, 0, NULL);
    const char *error = sluice_error(client);
    snprintf(why, MODEL_AWAY_SIZE, "%s", status ? "" : *error ? error : "the broker's status is not JSON");
    return status;
}

static void give(struct model *model, json_t *status, json_t *list, const char *why)
{
    if (status)
        model_hear(model, status, list, clock_ms());
    else
        model_miss(model, why);
}

void source_ask(struct sluice_client *client, struct model *model)
{
    char why[MODEL_AWAY_SIZE];
    json_t *list, *status = ask(client, &list, why);
    give(model, status, list, why);
}

/* ---- the thread ------------------------------------------------------------------------------------- */

/* Under the mutex: an answer that nobody took makes room for this one. */
static void keep(struct source *source, json_t *status, json_t *list, const char *why)
{
    const uint64_t one = 1;
    json_decref(source->status);
    json_decref(source->list);
    source->status = status;
    source->list = list;
    snprintf(source->why, sizeof(source->why), "%s", why);
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
        char why[MODEL_AWAY_SIZE];
        json_t *list;
        pthread_mutex_unlock(&source->mutex);
        const int64_t asked_ms = clock_ms();
        json_t *status = ask(source->client, &list, why);
        pthread_mutex_lock(&source->mutex);
        keep(source, status, list, why);
        rest(source, asked_ms + source->interval_ms);
    }
    pthread_mutex_unlock(&source->mutex);
    return NULL;
}

static void free_source(struct source *source)
{
    if (source->event >= 0)
        close(source->event);
    json_decref(source->status);
    json_decref(source->list);
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
        give(model, source->status, source->list, source->why);
    if (is_new)
        source->status = source->list = NULL;
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
