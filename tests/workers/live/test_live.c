/* What a job does, told to who watches it: from its beginning, within bounds, and by numbers that miss nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/loop/loop_now.h"
#include "workers/live/ear.h"
#include "workers/live/live.h"
#include "workers/runtime/fiber.h"

static struct activity activity;
static struct record record;
static int64_t now_ms = 100000;

static int set_up(void **state)
{
    (void)state;
    activity = (struct activity){.record = &record};
    activity_begin(&activity, now_ms);
    record_init(&record);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    live_end(&activity);
    spent_finish(&activity.spent);
    activity_finish(&activity);
    record_finish(&record);
    return 0;
}

/* ---- what is told ---------------------------------------------------------------------------- */

/* All events there are now, as one list; the caller checks that numbers follow each other. */
static json_t *take_all(uint64_t *ret_first, uint64_t *ret_behind)
{
    json_t *all = json_array();
    *ret_first = 0;
    for (struct live_batch *batch; (batch = live_take(&activity, now_ms));) {
        json_error_t error;
        assert_true(batch->json.len <= LIVE_BATCH_BYTES);
        json_t *events = json_loadb((const char *)batch->json.data, batch->json.len, 0, &error);
        if (!events)
            fail_msg("%s: %.*s", error.text, 200, (const char *)batch->json.data);
        assert_int_equal(json_array_size(events), batch->count);
        if (*ret_first)
            assert_int_equal(batch->number, *ret_behind);
        else
            *ret_first = batch->number;
        *ret_behind = batch->number + batch->count;
        json_array_extend(all, events);
        json_decref(events);
        live_batch_destroy(batch);
    }
    return all;
}

static json_t *take(void)
{
    uint64_t first, behind;
    return take_all(&first, &behind);
}

/* The n-th event of that kind, borrowed; NULL: there are not so many. */
static const json_t *nth(const json_t *events, const char *kind, size_t n)
{
    size_t i;
    json_t *event;
    json_array_foreach((json_t *)events, i, event)
    {
        if (strcmp(json_string_value(json_object_get(event, "event")), kind) == 0 && n-- == 0)
            return event;
    }
    return NULL;
}

static size_t count(const json_t *events, const char *kind)
{
    size_t n = 0;
    while (nth(events, kind, n))
        n++;
    return n;
}

static const char *text_of(const json_t *event, const char *name)
{
    const char *text = json_string_value(json_object_get(event, name));
    return text ? text : "";
}

static json_int_t number_of(const json_t *event, const char *name)
{
    return json_integer_value(json_object_get(event, name));
}

static void watch(bool anew) { assert_true(live_watch(&activity, now_ms + 15000, anew, now_ms)); }

static void say(const char *role, const char *text)
{
    assert_true(record_say(&record, role, slice_from_str(text), NULL, 0));
}

/* A turn of so many tokens, ids from `first` on. */
static void add_turn(const char *role, uint32_t first, size_t tokens, bool sampled)
{
    uint32_t *ids = calloc(tokens + 1, sizeof(*ids));
    float *logprobs = calloc(tokens + 1, sizeof(*logprobs));
    struct record_turn turn = {.finish = "stop", .engine = "http://e", .prompt_tokens = 7, .seconds = 0.25};
    snprintf(turn.role, sizeof(turn.role), "%s", role);
    for (size_t i = 0; i < tokens; i++) {
        ids[i] = first + (uint32_t)i;
        logprobs[i] = -0.1f * (float)(i % 100);
    }
    assert_true(record_append(&record, &turn, ids, sampled ? logprobs : NULL, tokens, sampled));
    free(ids);
    free(logprobs);
}

/* ---- scenarios ---------------------------------------------------------------------------------- */

static void what_was_is_told_first_and_then_only_what_is_new(void **state)
{
    (void)state;
    uint64_t first, behind, behind_more;
    say("user", "1+1?");
    record_start_trace(&record, "");
    add_turn("prompt", 10, 5, false);
    watch(false);
    json_t *events = take_all(&first, &behind);
    assert_int_equal(first, 1);
    assert_string_equal(text_of(nth(events, "message", 0), "content"), "1+1?");
    assert_string_equal(text_of(nth(events, "phase", 0), "phase"), "sandbox");
    assert_int_equal(count(events, "times"), 1);
    assert_int_equal(count(events, "left-out"), 0);
    assert_true(json_is_null(json_object_get(nth(events, "turn", 0), "after")));
    assert_int_equal(number_of(nth(events, "tokens", 0), "mask"), 0);
    json_decref(events);

    assert_true(record_say_sampled(&record, slice_from_str("It is 2.")));
    add_turn("assistant", 100, 3, true);
    events = take_all(&first, &behind_more);
    assert_int_equal(first, behind);
    assert_int_equal(json_array_size(events), 3);
    assert_true(json_is_true(json_object_get(nth(events, "message", 0), "sampled")));
    assert_int_equal(number_of(nth(events, "message", 0), "index"), 1);
    assert_int_equal(number_of(nth(events, "turn", 0), "after"), 0);
    assert_string_equal(text_of(nth(events, "turn", 0), "finish"), "stop");
    const json_t *tokens = nth(events, "tokens", 0);
    assert_int_equal(json_integer_value(json_array_get(json_object_get(tokens, "ids"), 2)), 102);
    assert_true((float)json_real_value(json_array_get(json_object_get(tokens, "logprobs"), 1)) == -0.1f);
    json_decref(events);
    assert_null(live_take(&activity, now_ms));

    now_ms += LIVE_ANEW_MS;
    watch(true);
    events = take_all(&first, &behind);
    assert_int_equal(first, 1);
    assert_int_equal(count(events, "message"), 2);
    assert_int_equal(count(events, "turn"), 2);
    json_decref(events);
}

static void it_does_not_begin_anew_more_often_than_it_may(void **state)
{
    (void)state;
    uint64_t first, behind;
    say("user", "hi");
    watch(true);
    json_decref(take_all(&first, &behind));
    watch(true);
    json_decref(take_all(&first, &behind));
    assert_int_equal(first, 0);
    now_ms += LIVE_ANEW_MS;
    json_decref(take_all(&first, &behind));
    assert_int_equal(first, 1);
}

static void of_what_is_long_the_last_is_told_and_how_much_is_not(void **state)
{
    (void)state;
    static char text[20001];
    memset(text, 'x', sizeof(text) - 1);
    for (int i = 0; i < 100; i++)
        say("tool", text);
    record_start_trace(&record, "");
    add_turn("prompt", 1, 30000, false);
    for (uint32_t i = 0; i < 40; i++)
        add_turn("assistant", i, 1000, true);
    watch(true);
    json_t *events = take();
    const json_t *left_out = nth(events, "left-out", 0);
    const size_t messages = count(events, "message"), turns = count(events, "turn");
    assert_in_range(messages, 15, 25);
    assert_int_equal(messages + (size_t)number_of(left_out, "messages"), 100);
    assert_in_range(turns, 8, 15);
    assert_int_equal(turns + (size_t)number_of(left_out, "turns"), 41);
    const json_t *last = nth(events, "message", messages - 1);
    assert_int_equal(number_of(last, "index"), 99);
    assert_int_equal(number_of(last, "left_out") + LIVE_CONTENT_BYTES, 20000);
    assert_in_range(strlen(text_of(last, "content")), LIVE_CONTENT_BYTES, LIVE_CONTENT_BYTES + 100);
    json_decref(events);
}

static void tokens_of_a_turn_come_in_pieces_up_to_a_bound(void **state)
{
    (void)state;
    watch(true);
    json_decref(take());
    record_start_trace(&record, "");
    add_turn("prompt", 1, 5000, false);
    add_turn("assistant", 1, 20000, true);
    json_t *events = take();
    size_t told = 0;
    for (size_t i = 0; nth(events, "tokens", i); i++) {
        const json_t *piece = nth(events, "tokens", i);
        if (number_of(piece, "turn") != 1)
            continue;
        assert_int_equal(number_of(piece, "offset"), told);
        told += json_array_size(json_object_get(piece, "ids"));
    }
    assert_int_equal(told, LIVE_TURN_TOKENS);
    assert_int_equal(number_of(nth(events, "turn", 1), "tokens"), 20000);
    json_decref(events);
}

static void whatever_is_said_is_a_string_of_json(void **state)
{
    (void)state;
    static char controls[30001];
    watch(true);
    json_decref(take());
    say("user", "<img onerror=1> \"\\ \x1b]0;t\x07 \xff\xfe \xc3\xa9 \xe2\x80\xae");
    memset(controls, 1, sizeof(controls) - 1);
    say("tool", controls);
    json_t *events = take();
    assert_non_null(
        strstr(text_of(nth(events, "message", 0), "content"), "<img onerror=1> \"\\ \x1b]0;t\x07 \xef\xbf\xbd"));
    assert_true(number_of(nth(events, "message", 1), "left_out") > 20000);
    json_decref(events);
}

/* ---- turns that are heard --------------------------------------------------------------------- */

static struct live_ear *open_ear;
static const struct engine_listener *heard_by;

static void hear(const char *text) { heard_by->heard(heard_by->arg, slice_from_str(text)); }

static void (*scenario)(void);

static void run_scenario(void *arg)
{
    (void)arg;
    struct live_ear ear = {0};
    open_ear = &ear;
    heard_by = live_ear_open(&ear, NULL);
    scenario();
    open_ear = NULL;
}

static void stop(void *arg) { loop_stop(arg); }

static void in_fiber(void (*run)(void *arg))
{
    struct loop *loop = loop_create();
    assert_non_null(loop);
    struct fiber *fiber = fiber_start(loop, run, stop, loop);
    fiber_set_activity(fiber, &activity);
    loop_run(loop);
    loop_destroy(&loop);
}

static void listening(void (*run)(void))
{
    scenario = run;
    in_fiber(run_scenario);
}

static void hear_a_turn(void)
{
    assert_non_null(heard_by);
    assert_non_null(heard_by->taken_back); /* it is only looked at */
    hear("It ");
    hear("is");
    json_t *events = take();
    assert_int_equal(count(events, "delta"), 1);
    assert_string_equal(text_of(nth(events, "delta", 0), "text"), "It is");
    assert_int_equal(number_of(nth(events, "delta", 0), "sampling"), 1);
    json_decref(events);
    hear(" 2");
    now_ms += LIVE_ANEW_MS;
    watch(true); /* somebody comes late */
    events = take();
    assert_string_equal(text_of(nth(events, "delta", 0), "text"), "It is 2");
    json_decref(events);
    heard_by->taken_back(heard_by->arg);
    hear("So: 2.");
    events = take();
    assert_string_equal(text_of(json_array_get(events, 0), "event"), "taken-back");
    assert_string_equal(text_of(json_array_get(events, 1), "text"), "So: 2.");
    json_decref(events);
    live_ear_close(open_ear, true);
    events = take();
    assert_string_equal(text_of(json_array_get(events, 0), "event"), "sampled");
    json_decref(events);
}

static void a_turn_is_heard_as_it_is_sampled_and_may_be_taken_back(void **state)
{
    (void)state;
    watch(true);
    json_decref(take());
    listening(hear_a_turn);
}

static void hear_nothing(void)
{
    assert_null(heard_by);
    live_ear_close(open_ear, true);
}

static void without_a_watcher_nobody_listens(void **state)
{
    (void)state;
    listening(hear_nothing);
    assert_int_equal(activity.samplings, 0);
}

static void outlive(void)
{
    hear("half");
    json_decref(take());
    live_end(&activity); /* who watched has gone in the middle of it */
    hear(" a turn");
    heard_by->taken_back(heard_by->arg);
    live_ear_close(open_ear, false);
}

static void watching_may_end_in_the_middle_of_a_turn(void **state)
{
    (void)state;
    watch(true);
    json_decref(take());
    listening(outlive);
}

/* ---- phases --------------------------------------------------------------------------------------- */

static void go_through_phases(void *arg)
{
    (void)arg;
    activity_enter(PHASE_AGENT);
    activity_enter(PHASE_SAMPLING);
    activity_enter(PHASE_SAMPLING); /* of another fiber */
    activity_wait("%s is paused", "http://e");
    activity_enter(PHASE_ENGINE); /* one waits, the other goes on */
    assert_int_equal(activity.phase, PHASE_SAMPLING);
    activity_leave(PHASE_SAMPLING);
    assert_int_equal(activity.phase, PHASE_ENGINE);
    activity_leave(PHASE_ENGINE);
    activity_go_on();
    activity_leave(PHASE_SAMPLING);
    activity_tool("bash");
    activity_enter(PHASE_TOOL);
    activity_leave(PHASE_TOOL);
    activity_leave(PHASE_AGENT);
}

static void each_phase_is_told_with_its_reason(void **state)
{
    (void)state;
    static const char *const told[][2] = {{"agent", ""},    {"sampling", ""}, {"engine", "http://e is paused"},
                                          {"sampling", ""}, {"agent", ""},    {"tool", "bash"},
                                          {"agent", ""},    {"sandbox", ""}};
    watch(true);
    json_decref(take());
    in_fiber(go_through_phases);
    json_t *events = take();
    assert_int_equal(count(events, "phase"), sizeof(told) / sizeof(*told));
    for (size_t i = 0; i < sizeof(told) / sizeof(*told); i++) {
        assert_string_equal(text_of(nth(events, "phase", i), "phase"), told[i][0]);
        assert_string_equal(text_of(nth(events, "phase", i), "of"), told[i][1]);
    }
    json_decref(events);
}

static void go_round(void *arg)
{
    (void)arg;
    for (int i = 0; i < 100; i++) {
        activity_tool("a tool whose name is longer than is kept of it");
        activity_enter(PHASE_TOOL);
        activity_leave(PHASE_TOOL);
    }
}

static void who_comes_late_is_told_the_last_phases_too(void **state)
{
    (void)state;
    in_fiber(go_round);
    watch(true);
    json_t *events = take();
    assert_int_equal(count(events, "phase"), ACTIVITY_PAST_MAX + 1);
    assert_string_equal(text_of(nth(events, "phase", ACTIVITY_PAST_MAX - 1), "phase"), "tool");
    assert_string_equal(text_of(nth(events, "phase", ACTIVITY_PAST_MAX - 1), "of"), "a tool whose name is longer tha");
    assert_string_equal(text_of(nth(events, "phase", ACTIVITY_PAST_MAX), "phase"), "sandbox");
    json_decref(events);
    int64_t sum_ms = 0; /* no time is lost between what is counted and what is kept */
    for (enum activity_phase phase = 0; phase < PHASE_COUNT; phase++)
        sum_ms += activity.spent_ms[phase];
    assert_int_equal(sum_ms, activity_past(&activity, 0)->since_ms - activity.began_ms);
}

static void what_is_not_taken_is_bounded_and_its_numbers_are_missed(void **state)
{
    (void)state;
    uint64_t first, behind, behind_more;
    watch(true);
    json_decref(take_all(&first, &behind));
    for (uint32_t i = 0; i < 2000; i++)
        live_note_heard(activity.live, i, true);
    assert_true(activity.live->own.json.len < LIVE_OWN_BYTES + 200);
    json_t *events = take_all(&first, &behind_more);
    assert_in_range(json_array_size(events), 100, 1000);
    assert_int_equal(first + json_array_size(events) - behind, 2000);
    json_decref(events);
}

/* ---- the end ---------------------------------------------------------------------------------------- */

static void show_and_hide(void *arg)
{
    (void)arg;
    live_show(&record);
    say("user", "the last words");
    live_hide();
    assert_null(activity.record);
}

static void what_was_said_last_is_told_when_the_record_has_gone(void **state)
{
    (void)state;
    watch(true);
    json_decref(take());
    in_fiber(show_and_hide);
    now_ms += LIVE_ANEW_MS;
    watch(true); /* too late: it cannot begin again */
    uint64_t first, behind;
    json_t *events = take_all(&first, &behind);
    assert_true(first > 1);
    assert_string_equal(text_of(nth(events, "message", 0), "content"), "the last words");
    json_decref(events);
    struct live_batch *last = live_take_last(&activity, now_ms, "ok", "3 turns");
    assert_int_equal(last->number, behind);
    assert_non_null(memmem(last->json.data, last->json.len, "\"outcome\":\"ok\",\"detail\":\"3 turns\"", 32));
    live_batch_destroy(last);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(what_was_is_told_first_and_then_only_what_is_new),
        CASE(it_does_not_begin_anew_more_often_than_it_may),
        CASE(of_what_is_long_the_last_is_told_and_how_much_is_not),
        CASE(tokens_of_a_turn_come_in_pieces_up_to_a_bound),
        CASE(whatever_is_said_is_a_string_of_json),
        CASE(a_turn_is_heard_as_it_is_sampled_and_may_be_taken_back),
        CASE(without_a_watcher_nobody_listens),
        CASE(watching_may_end_in_the_middle_of_a_turn),
        CASE(each_phase_is_told_with_its_reason),
        CASE(who_comes_late_is_told_the_last_phases_too),
        CASE(what_is_not_taken_is_bounded_and_its_numbers_are_missed),
        CASE(what_was_said_last_is_told_when_the_record_has_gone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
