#include "workers/live/live.h"

#include <stdlib.h>

#include "common/base/cleanup.h"
#include "common/loop/loop_now.h"
#include "workers/live/ear.h"

enum {
    TOLD_TOKENS = 4096, /* of a turn that was not sampled, at most */
    MESSAGE_COST = 128,
    TURN_COST = 512,
    SAMPLED_COST = 20, /* of a token */
    TOLD_COST = 8
};

/* ---- watching ------------------------------------------------------------------------------ */

static void note(struct live *live, void (*put)(struct live_list *list, const void *what), const void *what)
{
    if (live->own.json.len < LIVE_OWN_BYTES)
        put(&live->own, what);
    else
        live->number++; /* it is dropped, and missed */
}

static void put_phase_now(struct live_list *list, const void *activity) { live_put_phase(list, activity); }

static void on_phase(struct live *live, const struct activity *activity) { note(live, put_phase_now, activity); }

static void put_stands(struct live_list *list, const void *sampling)
{
    live_put_heard(list, *(const uint32_t *)sampling, true);
}

static void put_taken_back(struct live_list *list, const void *sampling)
{
    live_put_heard(list, *(const uint32_t *)sampling, false);
}

void live_note_heard(struct live *live, uint32_t sampling, bool stands)
{
    if (live)
        note(live, stands ? put_stands : put_taken_back, &sampling);
}

bool live_watch(struct activity *activity, int64_t until_ms, bool anew, int64_t now_ms)
{
    if (!activity->live) {
        struct live *live = calloc(1, sizeof(*live));
        if (!live)
            return false;
        STAILQ_INIT(&live->rest);
        live->anew_ms = now_ms - LIVE_ANEW_MS;
        activity->live = live;
        activity->phase_changed = on_phase;
        anew = true;
    }
    activity->live->until_ms = until_ms;
    activity->live->wants_anew |= anew;
    return true;
}

static void drop_rest(struct live *live)
{
    while (!STAILQ_EMPTY(&live->rest)) {
        struct live_batch *batch = STAILQ_FIRST(&live->rest);
        STAILQ_REMOVE_HEAD(&live->rest, links);
        live_batch_destroy(batch);
    }
    live->rest_bytes = 0;
}

void live_end(struct activity *activity)
{
    struct live *live = activity->live;
    activity->live = NULL;
    activity->phase_changed = NULL;
    if (!live)
        return;
    drop_rest(live);
    buffer_finish(&live->own.json);
    free(live);
}

void live_batch_destroy(struct live_batch *batch)
{
    if (batch)
        buffer_finish(&batch->json);
    free(batch);
}

/* ---- from the beginning ---------------------------------------------------------------------- */

/* The first message that is told of those there are. */
static size_t first_message(const struct record *record)
{
    size_t at = record ? record->message_count : 0;
    for (size_t bytes = 0; at > 0; at--) {
        bytes += MESSAGE_COST + strnlen(record->messages[at - 1].content, LIVE_CONTENT_BYTES);
        if (bytes > LIVE_PAST_BYTES)
            break;
    }
    return at;
}

/* How many tokens of it are told. */
static size_t tokens_of(const struct live_turn *turn)
{
    const size_t most = turn->logprobs ? LIVE_TURN_TOKENS : TOLD_TOKENS;
    return turn->count < most ? turn->count : most;
}

static size_t first_turn(const struct activity *activity)
{
    size_t at = live_turns_count(activity);
    for (size_t bytes = 0; at > 0; at--) {
        struct live_turn turn;
        live_turns_get(activity, at - 1, &turn);
        bytes += TURN_COST + tokens_of(&turn) * (turn.logprobs ? SAMPLED_COST : TOLD_COST);
        if (bytes > LIVE_PAST_BYTES)
            break;
    }
    return at;
}

static void begin_anew(struct live *live, struct activity *activity, int64_t now_ms)
{
    live->wants_anew = false;
    live->wants_head = true;
    live->anew_ms = now_ms;
    live->number = 1;
    drop_rest(live);
    buffer_clear(&live->own.json);
    live->own.count = 0;
    live->source = activity->turns;
    live->messages = live->past_messages = first_message(activity->record);
    live->turns = live->past_turns = first_turn(activity);
    live->tokens = 0;
    live->has_begun_turn = false;
    for (struct live_ear *ear = activity->ears; ear; ear = ear->next) {
        ear->told = 0;
        ear->is_told_of = false;
    }
}

/* ---- a batch ----------------------------------------------------------------------------------- */

/* Takes the last event off again, if the list is longer than a batch with it. */
static bool fits(struct live_list *list, size_t before, size_t count)
{
    if (list->json.len + 1 <= LIVE_BATCH_BYTES) /* its last bracket */
        return true;
    list->json.len = before;
    list->count = count;
    return false;
}

static void add_head(struct live *live, const struct activity *activity, struct live_list *list)
{
    live->wants_head = false;
    if (live->past_messages > 0 || live->past_turns > 0)
        live_put_left_out(list, live->past_messages, live->past_turns);
    live_put_times(list, activity);
    live_put_past(list, activity);
    live_put_phase(list, activity);
}

/* False: the rest is for the next batch. */
static bool add_messages(struct live *live, const struct record *record, struct live_list *list)
{
    for (; record && live->messages < record->message_count; live->messages++) {
        const size_t before = list->json.len, count = list->count;
        live_put_message(list, live->messages, &record->messages[live->messages]);
        if (!fits(list, before, count))
            return false;
    }
    return true;
}

static bool begin_turn(struct live *live, const struct live_turn *turn, struct live_list *list)
{
    const size_t before = list->json.len, count = list->count;
    if (live->has_begun_turn)
        return true;
    if (turn->after == LIVE_NO_TURN)
        live_put_trace(list, turn);
    live_put_turn(list, live->turns, turn);
    live->has_begun_turn = fits(list, before, count);
    return live->has_begun_turn;
}

static bool add_turn(struct live *live, const struct live_turn *turn, struct live_list *list)
{
    const size_t most = tokens_of(turn);
    if (!begin_turn(live, turn, list))
        return false;
    while (live->tokens < most) {
        const size_t before = list->json.len, count = list->count;
        const size_t put = live_put_tokens(list, live->turns, turn, live->tokens);
        if (!fits(list, before, count))
            return false;
        live->tokens += put;
    }
    live->turns++;
    live->tokens = 0;
    live->has_begun_turn = false;
    return true;
}

static bool add_turns(struct live *live, const struct activity *activity, struct live_list *list)
{
    bool goes_on = true;
    for (const size_t count = live_turns_count(activity); goes_on && live->turns < count;) {
        struct live_turn turn;
        live_turns_get(activity, live->turns, &turn);
        goes_on = add_turn(live, &turn, list);
    }
    return goes_on;
}

static bool add_own(struct live *live, struct live_list *list)
{
    if (live->own.count == 0)
        return true;
    if (list->json.len + live->own.json.len + 2 > LIVE_BATCH_BYTES)
        return false;
    buffer_append(&list->json, ",", list->count > 0);
    buffer_append(&list->json, live->own.json.data, live->own.json.len);
    list->count += live->own.count;
    buffer_clear(&live->own.json);
    live->own.count = 0;
    return true;
}

static bool add_deltas(const struct activity *activity, struct live_list *list)
{
    for (struct live_ear *ear = activity->ears; ear; ear = ear->next)
        while (ear->told < ear->said.len) {
            const size_t before = list->json.len, count = list->count;
            const struct slice news = slice_of(ear->said.data + ear->told, ear->said.len - ear->told);
            const size_t put = live_put_delta(list, ear->sampling, news);
            if (!fits(list, before, count))
                return false;
            ear->told += put;
            ear->is_told_of = true;
        }
    return true;
}

static void fill(struct live *live, const struct activity *activity, struct live_list *list)
{
    if (live->wants_head)
        add_head(live, activity, list);
    if (add_messages(live, activity->record, list) && add_turns(live, activity, list) && add_own(live, list))
        add_deltas(activity, list);
}

/* NULL: it is empty, or there is no memory, and what was to be in it is missed. */
static struct live_batch *seal(struct live *live, struct live_list *list)
{
    struct live_batch *batch = NULL;
    if (list->count > 0 && buffer_append_str(&list->json, "]"))
        batch = calloc(1, sizeof(*batch));
    if (batch) {
        *batch = (struct live_batch){.number = live->number, .count = list->count, .json = list->json};
        list->json = (struct buffer){0};
    }
    live->number += list->count;
    buffer_finish(&list->json);
    return batch;
}

static struct live_batch *make(struct live *live, struct activity *activity)
{
    struct live_list list = {0};
    buffer_append_str(&list.json, "[");
    fill(live, activity, &list);
    return seal(live, &list);
}

struct live_batch *live_take(struct activity *activity, int64_t now_ms)
{
    struct live *live = activity->live;
    const bool is_other = live->source != activity->turns; /* its turns have other numbers */
    const bool is_wanted = live->wants_anew && now_ms - live->anew_ms >= LIVE_ANEW_MS;
    if ((is_other || is_wanted) && !live->is_over)
        begin_anew(live, activity, now_ms);
    if (live->number == 0) /* it has not begun */
        return NULL;
    struct live_batch *batch = STAILQ_FIRST(&live->rest);
    if (!batch)
        return make(live, activity);
    STAILQ_REMOVE_HEAD(&live->rest, links);
    live->rest_bytes -= batch->json.len;
    return batch;
}

struct live_batch *live_take_last(struct activity *activity, int64_t now_ms, const char *outcome, const char *detail)
{
    struct live_list list = {0};
    buffer_append_str(&list.json, "[");
    live_put_end(&list, activity, now_ms, outcome, detail);
    return seal(activity->live, &list);
}

/* ---- what there is to see ------------------------------------------------------------------------ */

void live_show(const struct record *record)
{
    struct activity *activity = activity_current();
    if (activity)
        activity->record = record;
}

void live_show_turns(const struct live_turns *turns)
{
    struct activity *activity = activity_current();
    if (activity)
        activity->turns = turns;
}

static void keep_rest(struct live *live, struct activity *activity)
{
    struct live_batches made = STAILQ_HEAD_INITIALIZER(made);
    for (struct live_batch *batch;
         live->rest_bytes < LIVE_REST_BYTES && (batch = live_take(activity, loop_now_ms()));) {
        STAILQ_INSERT_TAIL(&made, batch, links);
        live->rest_bytes += batch->json.len;
    }
    live->number += live->rest_bytes >= LIVE_REST_BYTES; /* more is missed */
    live->is_over = true;
    STAILQ_CONCAT(&live->rest, &made);
}

void live_hide(void)
{
    struct activity *activity = activity_current();
    if (!activity)
        return;
    if (activity->live)
        keep_rest(activity->live, activity);
    activity->record = NULL;
    activity->turns = NULL;
}
