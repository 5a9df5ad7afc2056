#include "broker/core/watches/watches.h"
#include "broker/core/state/effects.h"
#include "broker/core/state/state.h"

#include <stdlib.h>

/* A client that looks. */
struct watcher {
    struct list link; /* in its watch */
    int64_t until_ms;
    uint64_t tag;
    uint32_t len;
    uint8_t client[]; /* its route */
};

/* A rollout that is looked at. */
struct watch {
    struct list watchers;
    size_t count;
    int64_t until_ms;      /* of the last one */
    uint64_t told;         /* the dispatch whose worker knows, ... */
    int64_t told_until_ms; /* ... and for how long */
    uint32_t len;
    uint8_t rollout[];
};

static struct slice rollout_of(const struct watch *watch) { return slice_of(watch->rollout, watch->len); }
static struct slice client_of(const struct watcher *watcher) { return slice_of(watcher->client, watcher->len); }

/* ---- what is over ---------------------------------------------------------------------- */

static void watch_destroy(struct watch *watch)
{
    while (!list_is_empty(&watch->watchers)) {
        struct watcher *watcher = container_of(watch->watchers.next, struct watcher, link);
        list_remove(&watcher->link);
        free(watcher);
    }
    free(watch);
}

static struct watch *next_over(const struct core *core)
{
    size_t at = 0;
    struct watch *watch;
    while ((watch = table_next(&core->watches, &at)) && watch->until_ms > core->now_ms)
        ;
    return watch;
}

static void forget_those_over(struct core *core)
{
    for (struct watch *watch; (watch = next_over(core));)
        watch_destroy(table_take(&core->watches, rollout_of(watch)));
}

static void forget_watchers_over(const struct core *core, struct watch *watch)
{
    struct list *next;
    for (struct list *at = watch->watchers.next; at != &watch->watchers; at = next) {
        struct watcher *watcher = container_of(at, struct watcher, link);
        next = at->next;
        if (watcher->until_ms > core->now_ms)
            continue;
        list_remove(at);
        free(watcher);
        watch->count--;
    }
}

void watches_finish(struct core *core)
{
    size_t at = 0;
    for (struct watch *watch; (watch = table_next(&core->watches, &at));)
        watch_destroy(watch);
    table_finish(&core->watches);
}

/* ---- asking ---------------------------------------------------------------------------- */

static struct watch *add_watch(struct core *core, struct slice rollout)
{
    struct watch *watch = core_alloc(core, 1, sizeof(*watch) + rollout.len);
    if (!watch)
        return NULL;
    list_init(&watch->watchers);
    watch->len = (uint32_t)rollout.len;
    memcpy(watch->rollout, rollout.data, rollout.len);
    if (table_put(&core->watches, rollout_of(watch), watch))
        return watch;
    core->failed = true;
    free(watch);
    return NULL;
}

static struct watcher *find_watcher(const struct watch *watch, const struct call *call)
{
    struct watcher *watcher;
    LIST_EACH(watcher, &watch->watchers, link)
        if (watcher->tag == call->tag && slice_equal(client_of(watcher), call->client))
            return watcher;
    return NULL;
}

static struct watcher *add_watcher(struct core *core, struct watch *watch, const struct call *call)
{
    struct watcher *watcher = core_alloc(core, 1, sizeof(*watcher) + call->client.len);
    if (!watcher)
        return NULL;
    watcher->tag = call->tag;
    watcher->len = (uint32_t)call->client.len;
    memcpy(watcher->client, call->client.data, call->client.len);
    list_push_back(&watch->watchers, &watcher->link);
    watch->count++;
    return watcher;
}

const char *watch_renew(struct core *core, const struct call *call, struct slice rollout)
{
    struct watch *watch = table_find(&core->watches, rollout);
    if (!watch) {
        forget_those_over(core);
        if (core->watches.count >= WATCHES_MAX)
            return "as many rollouts are watched as may be, 256; try again later";
        watch = add_watch(core, rollout);
    }
    struct watcher *watcher = watch ? find_watcher(watch, call) : NULL;
    if (watch && !watcher) {
        forget_watchers_over(core, watch);
        if (watch->count >= WATCHERS_MAX)
            return "as many watch this rollout as may, 64; try again later";
        watcher = add_watcher(core, watch, call);
    }
    if (watcher)
        watcher->until_ms = watch->until_ms = core->now_ms + WATCH_MS;
    return NULL; /* without memory the core has failed */
}

/* ---- the rollouts of a job --------------------------------------------------------------- */

/* Of another rollout's watch than the job's own: whether the group's init is its, too. */
static bool is_of_group(const struct watch *watch, const struct group *group)
{
    return watch->len > group->id_len && memcmp(watch->rollout, group->id, group->id_len) == 0 &&
           watch->rollout[group->id_len] == '/' &&
           !memchr(watch->rollout + group->id_len + 1, '/', watch->len - group->id_len - 1);
}

/* The next watch that is one of the job's, begun with *at = 0; NULL: there is no other. */
static struct watch *next_of_job(struct core *core, const struct job *job, size_t *at)
{
    struct watch *watch = NULL;
    if (job->stage != STAGE_INIT && *at == 0) {
        *at = SIZE_MAX;
        watch = table_find(&core->watches, rollout_name(core, job));
        return watch && watch->until_ms > core->now_ms ? watch : NULL;
    }
    while (job->stage == STAGE_INIT && (watch = table_next(&core->watches, at)))
        if (watch->until_ms > core->now_ms && is_of_group(watch, job->group))
            return watch;
    return NULL;
}

static void send_watch(struct core *core, const struct job *job, bool anew)
{
    const struct msg_lane_watch watch = {
        .job = job_name(core, job), .token = job->course->token, .watch_ms = WATCH_MS, .has_anew = anew, .anew = anew};
    send_worker(core, job->course->worker, MSG_lane_watch, &watch);
}

void watch_tell(struct core *core, struct job *job, bool anew)
{
    if (core->watches.count == 0 || job->place != PLACE_LEASED)
        return;
    bool is_wanted = false;
    size_t at = 0;
    for (struct watch *watch; (watch = next_of_job(core, job, &at));) {
        const bool is_new = watch->told != job->course->token;
        if (!anew && !is_new && watch->told_until_ms - core->now_ms >= WATCH_TELL_MS)
            continue;
        is_wanted = true;
        anew |= is_new;
        watch->told = job->course->token;
        watch->told_until_ms = core->now_ms + WATCH_MS;
    }
    if (is_wanted)
        send_watch(core, job, anew);
}

/* ---- what is said ------------------------------------------------------------------------ */

static void send_to_watchers(struct core *core, const struct watch *watch, struct msg_rollout_events *events)
{
    struct watcher *watcher;
    events->rollout = rollout_of(watch);
    LIST_EACH(watcher, &watch->watchers, link) {
        if (watcher->until_ms <= core->now_ms)
            continue;
        if (core->live_bytes >= WATCH_CYCLE_BYTES) {
            core->counters.live_dropped++;
            continue;
        }
        events->tag = watcher->tag;
        const struct slice bytes = effect_encode(core, MSG_rollout_events, events);
        const struct slice client = effect_copy(core, client_of(watcher));
        struct effect *send = effect_push(core, SEND_EVENTS);
        send->client = client;
        send->bytes = bytes;
        core->live_bytes += bytes.len;
    }
}

void watch_publish(struct core *core, const struct job *job, const struct msg_rollout_live *in)
{
    struct msg_rollout_events events = {.stage = slice_from_str(stage_wire(job->stage)),
                                        .attempt = job->course->attempt,
                                        .number = in->number,
                                        .count = in->count,
                                        .events = in->events};
    size_t at = 0;
    core->counters.live++;
    for (struct watch *watch; (watch = next_of_job(core, job, &at));)
        send_to_watchers(core, watch, &events);
}
