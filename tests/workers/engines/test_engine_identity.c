/*
 * Who an engine is, when that changes while it is asked: behind the same address, over the same connections, after any
 * request at all. What is recorded is one server's from its first id to its last, or nothing is.
 */
#include "tests/workers/agents/agent_world.h"

#include "workers/agents/conversation/conversation.h"
#include "workers/engines/calls.h"

static struct world world;

#define RULES "'rules': [{'replies': ['a first', 'a second', 'a third']}]"
enum { TURNS = 3, TRUSTING_TURNS = 16 };

/* ---- a rollout ------------------------------------------------------------------------------ */

struct rollout {
    void (*between)(void); /* before its second turn is told; NULL: nothing */
    bool trusts;           /* and has more turns */
    struct task *task;
    struct record record;
    struct agent_run run;
    int code;
    struct fail fail;
};

static int converse(struct conversation *conversation, void (*between)(void), struct fail *fail)
{
    static const char told[] = "  a cab, 44 \n";
    const struct slice content = slice_from_str(told);
    int error = 0;
    for (int turn = 0; error == 0 && turn < TURNS; turn++) {
        if (turn == 1 && between)
            between();
        if (turn == 1)
            error = conversation_tell(conversation, content, "bash: x", 0, 0, fail);
        if (turn == 2)
            error = conversation_bridge(conversation, TELL_TOOL, &content, 1, 0, fail);
        if (error == 0)
            error = conversation_sample(conversation, fail);
    }
    return error;
}

/* As a proxy does. */
static int converse_trusting(struct conversation *conversation, struct fail *fail)
{
    static const struct slice told = {.data = (const uint8_t *)" a cab, 44", .len = 10};
    int error = 0;
    conversation->model.trusts = true;
    for (int turn = 0; error == 0 && turn < TRUSTING_TURNS; turn++) {
        if (turn > 0)
            error = conversation_tell(conversation, told, "bash: x", 0, 0, fail);
        if (error == 0)
            error = conversation_sample(conversation, fail);
    }
    return error < 0 ? error : model_settle(&conversation->model, fail);
}

static void rollout_fiber(void *arg)
{
    struct rollout *rollout = arg;
    struct conversation conversation;
    rollout->run = (struct agent_run){
        .task = rollout->task, .engine = world_engine(fiber_world), .record = &rollout->record};
    rollout->code = conversation_open(&conversation, &rollout->run, NULL, &rollout->fail);
    if (rollout->code == 0)
        rollout->code = rollout->trusts ? converse_trusting(&conversation, &rollout->fail)
                                        : converse(&conversation, rollout->between, &rollout->fail);
    conversation_close(&conversation);
}

static void rollout_run_with(struct rollout *rollout, bool trusts, void (*between)(void))
{
    *rollout = (struct rollout){
        .between = between,
        .trusts = trusts,
        .task = parse_task("{\"task\": \"t\", \"prompt\": \"a b, 4\", \"sampling\": {\"seed\": 7}}")};
    record_init(&rollout->record);
    world_run(&world, rollout_fiber, rollout, 0, 1);
}

static void rollout_run(struct rollout *rollout) { rollout_run_with(rollout, false, NULL); }

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
           memcmp(a->mask, b->mask, a->token_count) == 0 && strcmp(a->template_digest, b->template_digest) == 0 &&
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
    bool trusts;
};

static size_t count_requests(void)
{
    json_t *log = world_log(&world);
    size_t count = json_array_size(log);
    json_decref(log);
    return count;
}

/* As it is with one server alone; returns how many requests it took. */
static size_t run_alone(const char *both, const char *more, bool trusts, struct rollout *ret)
{
    char script[512];
    snprintf(script, sizeof(script), "{" RULES "%s%s}", both, more);
    world_open_on(&world, loop, script, NULL);
    rollout_run_with(ret, trusts, NULL);
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
    snprintf(script, sizeof(script), "{" RULES "%s, 'green_after': %zu, 'green': {" RULES "%s%s}}", change->both,
             requests, change->both, change->green);
    world_open_on(&world, loop, script, NULL);
    rollout_run_with(&rollout, change->trusts, NULL);
    if (rollout.code == 0 ? !is_same(&rollout, blue) && !is_same(&rollout, green) : rollout.code != -ESTALE)
        fail_msg("%s after %zu requests: %d, %s", change->green, requests, rollout.code,
                 rollout.code ? rollout.fail.text : "mixed");
    rollout_run_with(&next, change->trusts, NULL);
    if (next.code < 0 || !is_same(&next, green))
        fail_msg("%s after %zu requests: the next rollout is not the new one's: %s", change->green, requests,
                 next.fail.text);
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
    const size_t count = run_alone(change->both, "", change->trusts, &blue);
    run_alone(change->both, change->green, change->trusts, &green);
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
    switch_everywhere(&(struct change){", 'start': null", ", 'other_tokenizer': true", "its tokenizer is another"});
}

static void whenever_vllms_template_changes_nothing_is_mixed(void **state)
{
    (void)state;
    switch_everywhere(&(struct change){", 'dialect': 'vllm'", ", 'template': 'trim'", "is another"});
}

static void whenever_vllms_template_changes_in_one_role_nothing_is_mixed(void **state)
{
    (void)state;
    switch_everywhere(&(struct change){", 'dialect': 'vllm', 'start': null", ", 'template': 'qwen'", "is another"});
}

static void whenever_vllms_tokenizer_changes_nothing_is_mixed(void **state)
{
    (void)state;
    switch_everywhere(&(struct change){", 'dialect': 'vllm'", ", 'other_tokenizer': true", "its tokenizer is another"});
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

/* ---- trust --------------------------------------------------------------------------------------- */

static void whenever_a_trusted_engine_changes_nothing_is_mixed(void **state)
{
    (void)state;
    switch_everywhere(&(struct change){"", ", 'other_tokenizer': true", "its tokenizer is another", true});
    switch_everywhere(&(struct change){", 'dialect': 'vllm'", ", 'other_tokenizer': true", "is another", true});
}

static size_t count_asked(const char *script)
{
    struct rollout rollout;
    world_open_on(&world, loop, script, NULL);
    rollout_run_with(&rollout, true, NULL);
    assert_int_equal(rollout.code, 0);
    rollout_finish(&rollout);
    json_t *log = world_log(&world), *one;
    size_t count = 0, i;
    json_array_foreach(log, i, one) count += strcmp(json_string_value(json_object_get(one, "path")), "/props") == 0;
    json_decref(log);
    world_close(&world);
    return count;
}

static void an_engine_that_was_the_same_all_along_is_trusted_for_a_while_and_one_that_tells_no_start_is_not(
    void **state)
{
    (void)state;
    const size_t trusted = count_asked("{" RULES "}");
    const size_t untrusted = count_asked("{" RULES ", 'start': null}");
    if (trusted + TRUSTING_TURNS / 2 > untrusted)
        fail_msg("asked %zu times, and %zu times where it tells no start", trusted, untrusted);
}

/* ---- a pause ---------------------------------------------------------------------------------- */

/* The green server differs in two words of no sample, and neither says that it was started. */
static void open_before_a_pause(char path[64])
{
    char script[512];
    strcpy(path, "/tmp/sluice-green-XXXXXX");
    assert_non_null(mkdtemp(path));
    snprintf(script, sizeof(script),
             "{" RULES ", 'start': null, 'green_path': '%s/green', 'green': {" RULES
             ", 'start': null, 'swapped': [1, 2]}}",
             path);
    world_open_on(&world, loop, script, NULL);
}

static char green_folder[64];

static void appear_in_a_pause(void)
{
    struct engine *engine = world_engine(&world);
    char path[128];
    engine_told(engine, slice_from_str(""), 1, slice_from_str("finish"), 60000);
    snprintf(path, sizeof(path), "%s/green", green_folder);
    fclose(fopen(path, "w"));
    engine_told(engine, slice_from_str(""), 1, slice_from_str(""), 0);
}

static void after_a_pause_an_engine_that_tells_no_start_is_asked_everything_anew(void **state)
{
    (void)state;
    struct rollout rollout;
    char path[128];
    open_before_a_pause(green_folder);
    rollout_run_with(&rollout, false, appear_in_a_pause);
    assert_int_equal(rollout.code, -ESTALE);
    assert_non_null(strstr(rollout.fail.text, "its name, path or vocabulary is another"));
    assert_int_equal(rollout.record.traces[0].turn_count, 2);
    rollout_finish(&rollout);
    world_close(&world);
    snprintf(path, sizeof(path), "%s/green", green_folder);
    unlink(path);
    rmdir(green_folder);
}

/* ---- several servers behind one address --------------------------------------------------------- */

/* Connections to `url` lead to the world's engine and to the other one in turn. */
static pid_t open_turns(const char *url, const char *other, char ret[64])
{
    char program[512], one[16], two[16];
    pid_t pid;
    snprintf(program, sizeof(program), "%s/tests/engines/tcp_turns.py", source_dir());
    snprintf(one, sizeof(one), "%s", strrchr(url, ':') + 1);
    snprintf(two, sizeof(two), "%s", strrchr(other, ':') + 1);
    const char *argv[] = {"/usr/bin/python3", program, one, two, NULL};
    snprintf(ret, 64, "http://127.0.0.1:%d", child_start(&pid, (char *const *)argv));
    return pid;
}

static void run_behind_turns(const struct rollout *blue, const struct rollout *green)
{
    struct rollout rollouts[6];
    for (size_t i = 0; i < COUNT(rollouts); i++) {
        rollouts[i] = (struct rollout){
            .task = parse_task("{\"task\": \"t\", \"prompt\": \"a b, 4\", \"sampling\": {\"seed\": 7}}")};
        record_init(&rollouts[i].record);
    }
    world_run(&world, rollout_fiber, rollouts, sizeof(*rollouts), COUNT(rollouts));
    for (size_t i = 0; i < COUNT(rollouts); i++) {
        if (rollouts[i].code == 0 && !is_same(&rollouts[i], blue) && !is_same(&rollouts[i], green))
            fail_msg("a rollout is of two servers");
        rollout_finish(&rollouts[i]);
    }
}

static void of_servers_that_are_not_alike_behind_one_address_no_rollout_is_mixed(void **state)
{
    (void)state;
    struct rollout blue, green;
    struct world other;
    char url[64];
    run_alone("", "", false, &blue);
    run_alone("", ", 'other_tokenizer': true", false, &green);
    world_open_on(&other, loop, "{" RULES ", 'other_tokenizer': true}", NULL);
    world_open_on(&world, loop, "{" RULES "}", NULL);
    pid_t turns = open_turns(world.url, other.url, url);
    snprintf(world.url, sizeof(world.url), "%s", url);
    run_behind_turns(&blue, &green);
    child_stop(&turns);
    rollout_finish(&blue);
    rollout_finish(&green);
    world_close(&world);
    world_close(&other);
}

static void servers_that_are_alike_may_stand_behind_one_address(void **state)
{
    (void)state;
    struct rollout alone, rollout;
    struct world other;
    char url[64];
    run_alone("", "", false, &alone);
    world_open_on(&other, loop, "{" RULES "}", NULL);
    world_open_on(&world, loop, "{" RULES "}", NULL);
    pid_t turns = open_turns(world.url, other.url, url);
    snprintf(world.url, sizeof(world.url), "%s", url);
    for (int i = 0; i < 2; i++) {
        rollout_run(&rollout);
        assert_int_equal(rollout.code, 0);
        assert_true(is_same(&rollout, &alone));
        rollout_finish(&rollout);
    }
    child_stop(&turns);
    rollout_finish(&alone);
    world_close(&world);
    world_close(&other);
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
        TEST(whenever_a_trusted_engine_changes_nothing_is_mixed),
        TEST(an_engine_that_was_the_same_all_along_is_trusted_for_a_while_and_one_that_tells_no_start_is_not),
        TEST(of_servers_that_are_not_alike_behind_one_address_no_rollout_is_mixed),
        TEST(servers_that_are_alike_may_stand_behind_one_address),
        TEST(after_a_pause_an_engine_that_tells_no_start_is_asked_everything_anew),
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
