/*
 * Who an engine is, when that changes while it is asked: behind the same address, over the same connections, after any
 * request at all. What is recorded is one server's from its first id to its last, or nothing is.
 */
#include "agent_world.h"

#include "workers/agents/dialogue.h"

static struct world world;

#define RULES "'rules': [{'replies': ['a first', 'a second', 'a third']}]"
enum { TURNS = 3 };

/* ---- a rollout ------------------------------------------------------------------------------ */

struct rollout {
    struct task *task;
    struct record record;
    struct agent_run run;
    int code;
    struct fail fail;
};

static int converse(struct dialogue *dialogue, struct fail *fail)
{
    static const char told[] = "  a cab, 44 \n";
    const struct slice content = slice_from_str(told);
    int error = 0;
    for (int turn = 0; error == 0 && turn < TURNS; turn++) {
        if (turn == 1)
            error = dialogue_tell(dialogue, content, "bash: x", 0, 0, fail);
        if (turn == 2)
            error = dialogue_bridge(dialogue, TELL_TOOL, &content, 1, 0, fail);
        if (error == 0)
            error = dialogue_sample(dialogue, fail);
    }
    return error;
}

static void rollout_fiber(void *arg)
{
    struct rollout *rollout = arg;
    struct dialogue dialogue;
    rollout->run = (struct agent_run){
        .task = rollout->task, .engine = world_engine(fiber_world), .record = &rollout->record};
    rollout->code = dialogue_open(&dialogue, &rollout->run, NULL, &rollout->fail);
    if (rollout->code == 0)
        rollout->code = converse(&dialogue, &rollout->fail);
    dialogue_close(&dialogue);
}

static void rollout_run(struct rollout *rollout)
{
    *rollout = (struct rollout){
        .task = parse_task("{\"task\": \"t\", \"prompt\": \"a b, 4\", \"sampling\": {\"seed\": 7}}")};
    record_init(&rollout->record);
    world_run(&world, rollout_fiber, rollout, 0, 1);
}

static void rollout_finish(struct rollout *rollout)
{
    record_finish(&rollout->record);
    task_destroy(rollout->task);
    free(rollout->run.answer);
}

static bool is_same_trace(const struct record_trace *a, const struct record_trace *b)
{
    return a->token_count == b->token_count &&
           memcmp(a->token_ids, b->token_ids, a->token_count * sizeof(*a->token_ids)) == 0 &&
           memcmp(a->mask, b->mask, a->token_count) == 0 &&
           strcmp(a->template_digest, b->template_digest) == 0 &&
           strcmp(a->tokenizer_digest, b->tokenizer_digest) == 0;
}

static bool is_same(const struct rollout *a, const struct rollout *b)
{
    bool same = a->record.trace_count == b->record.trace_count &&
                strcmp(a->record.tokenizer_digest, b->record.tokenizer_digest) == 0 &&
                strcmp(a->record.template_digest, b->record.template_digest) == 0;
    for (size_t i = 0; same && i < a->record.trace_count; i++)
        same = is_same_trace(&a->record.traces[i], &b->record.traces[i]);
    return same;
}

/* ---- a server that becomes another ------------------------------------------------------------ */

struct change {
    const char *both, *green; /* of the scripts: what both have, and what is another */
    const char *words;        /* of the refusal, at least once */
};

static size_t count_requests(void)
{
    json_t *log = world_log(&world);
    size_t count = json_array_size(log);
    json_decref(log);
    return count;
}

/* As it is with one server alone; returns how many requests it took. */
static size_t run_alone(const char *both, const char *more, struct rollout *ret)
{
    char script[512];
    snprintf(script, sizeof(script), "{" RULES "%s%s}", both, more);
    world_open_on(&world, loop, script, NULL);
    rollout_run(ret);
    if (ret->code < 0)
        fail_msg("%s: %s", script, ret->fail.text);
    size_t count = count_requests();
    world_close(&world);
    return count;
}

/* Its outcome is the blue server's, the green one's, or that there were two; and the next rollout is all green. */
static bool switch_after(const struct change *change, size_t requests, const struct rollout *blue,
                         const struct rollout *green)
{
    char script[1024];
    struct rollout rollout, next;
    snprintf(script, sizeof(script), "{" RULES "%s, 'green_after': %zu, 'green': {" RULES "%s%s}}",
             change->both, requests, change->both, change->green);
    world_open_on(&world, loop, script, NULL);
    rollout_run(&rollout);
    if (rollout.code == 0 ? !is_same(&rollout, blue) && !is_same(&rollout, green)
                          : rollout.code != -ESTALE)
        fail_msg("%s after %zu requests: %d, %s", change->green, requests, rollout.code,
                 rollout.code ? rollout.fail.text : "mixed");
    rollout_run(&next);
    if (next.code < 0 || !is_same(&next, green))
        fail_msg("%s after %zu requests: the next rollout is not the new one's: %s", change->green,
                 requests, next.fail.text);
    const bool is_refused = rollout.code == -ESTALE && strstr(rollout.fail.text, change->words);
    rollout_finish(&rollout);
    rollout_finish(&next);
    world_close(&world);
    return is_refused;
}

enum { POINTS = 6 }; /* of a rollout at which a switch is tried; all of its requests with SLUICE_TEST_ALL */

static void switch_everywhere(const struct change *change)
{
    struct rollout blue, green;
    const size_t count = run_alone(change->both, "", &blue);
    run_alone(change->both, change->green, &green);
    assert_false(is_same(&blue, &green));
    size_t refused = 0;
    const size_t step = getenv("SLUICE_TEST_ALL") ? 1 : (count + POINTS - 1) / POINTS;
    for (size_t at = 1; at <= count; at += step)
        refused += switch_after(change, at, &blue, &green);
    assert_true(refused > 0);
    rollout_finish(&blue);
    rollout_finish(&green);
}

static void whenever_llamas_vocabulary_changes_nothing_is_mixed(void **state)
{
    (void)state;
    switch_everywhere(&(struct change){"", ", 'other_tokenizer': true", "its tokenizer is another"});
}

static void whenever_llamas_template_changes_nothing_is_mixed(void **state)
{
    (void)state;
    switch_everywhere(&(struct change){"", ", 'template': 'trim'", "its chat template is another"});
}

static void whenever_llama_without_a_start_id_changes_nothing_is_mixed(void **state)
{
    (void)state;
    switch_everywhere(
        &(struct change){", 'start': null", ", 'other_tokenizer': true", "its tokenizer is another"});
}

static void whenever_vllms_template_changes_nothing_is_mixed(void **state)
{
    (void)state;
    switch_everywhere(&(struct change){", 'dialect': 'vllm'", ", 'template': 'trim'", "is another"});
}

static void whenever_vllms_template_changes_in_one_role_nothing_is_mixed(void **state)
{
    (void)state;
    switch_everywhere(
        &(struct change){", 'dialect': 'vllm', 'start': null", ", 'template': 'qwen'", "is another"});
}

static void whenever_vllms_tokenizer_changes_nothing_is_mixed(void **state)
{
    (void)state;
    switch_everywhere(
        &(struct change){", 'dialect': 'vllm'", ", 'other_tokenizer': true", "its tokenizer is another"});
}

static void whenever_sglangs_tokenizer_changes_nothing_is_mixed(void **state)
{
    (void)state;
    switch_everywhere(
        &(struct change){", 'dialect': 'sglang'", ", 'other_tokenizer': true", "its tokenizer is another"});
}

static void whenever_a_routers_tokenizer_changes_nothing_is_mixed(void **state)
{
    (void)state;
    switch_everywhere(
        &(struct change){", 'dialect': 'openai'", ", 'other_tokenizer': true", "its tokenizer is another"});
}

static int group(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(whenever_llamas_vocabulary_changes_nothing_is_mixed),
        TEST(whenever_llamas_template_changes_nothing_is_mixed),
        TEST(whenever_llama_without_a_start_id_changes_nothing_is_mixed),
        TEST(whenever_vllms_template_changes_nothing_is_mixed),
        TEST(whenever_vllms_template_changes_in_one_role_nothing_is_mixed),
        TEST(whenever_vllms_tokenizer_changes_nothing_is_mixed),
        TEST(whenever_sglangs_tokenizer_changes_nothing_is_mixed),
        TEST(whenever_a_routers_tokenizer_changes_nothing_is_mixed),
    };
    return cmocka_run_group_tests_name("engine_identity", tests, NULL, NULL);
}

/* One argument: a pattern of the tests to run. */
int main(int argc, char **argv)
{
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return group();
}
