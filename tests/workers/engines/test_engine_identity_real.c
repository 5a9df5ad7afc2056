/*
 * A real llama.cpp server that is started again, while a rollout is between two turns, at the same path and port with a
 * vocabulary in which two words have changed places. Needs SLUICE_LLAMA_SERVER and SLUICE_MODEL; says so if not.
 */
#include "tests/workers/agents/agent_world.h"
#include "tests/workers/engines/real_engine.h"

#include "workers/agents/conversation/conversation.h"
#include "workers/engines/engines.h"

static struct world world;
static struct real_engine server;
static char folder[64], path[96];

/* ---- the server ----------------------------------------------------------------------------- */

static void write_model(const char *original, const char *one, const char *other)
{
    char swap[512], made[128];
    snprintf(swap, sizeof(swap), "%s/tests/engines/gguf_swap.py", source_dir());
    snprintf(made, sizeof(made), "%s.new", path);
    pid_t pid = fork();
    if (pid == 0) {
        execl("/usr/bin/python3", "python3", swap, original, made, one, other, (char *)NULL);
        _exit(127);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(rename(made, path), 0);
}

/* The same model under a path of the test's own. */
static char *open_server(void)
{
    real_engine_or_skip();
    char *original = strdup(getenv("SLUICE_MODEL"));
    strcpy(folder, "/tmp/sluice-identity-XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/model.gguf", folder);
    assert_int_equal(symlink(original, path), 0);
    setenv("SLUICE_MODEL", path, 1);
    real_engine_start(&server, NULL);
    world_open_on(&world, loop, NULL, NULL);
    world_run(&world, real_engine_await, &server, 0, 1);
    return original;
}

static void close_server(const char *original)
{
    world_close(&world);
    real_engine_stop(&server);
    setenv("SLUICE_MODEL", original, 1);
    unlink(path);
    rmdir(folder);
}

/* ---- a rollout ------------------------------------------------------------------------------ */

struct rollout {
    const char *original, *one, *other; /* NULL: nothing is swapped */
    struct task *task;
    struct record record;
    struct agent_run run;
    int code;
    struct fail fail;
};

static void swap(struct rollout *rollout)
{
    const int port = atoi(strrchr(server.url, ':') + 1);
    real_engine_stop(&server);
    write_model(rollout->original, rollout->one, rollout->other);
    real_engine_start_at(&server, port, NULL);
    real_engine_await(&server);
}

static void rollout_fiber(void *arg)
{
    struct rollout *rollout = arg;
    struct conversation conversation;
    rollout->run = (struct agent_run){
        .task = rollout->task, .engine = engines_get(world.engines, server.url), .record = &rollout->record};
    int error = conversation_open(&conversation, &rollout->run, NULL, &rollout->fail);
    if (error == 0)
        error = conversation_sample(&conversation, &rollout->fail);
    if (error == 0 && rollout->one)
        swap(rollout);
    if (error == 0)
        error = conversation_tell(&conversation, slice_from_str("a brown house"), NULL, 0, 0, &rollout->fail);
    if (error == 0)
        error = conversation_sample(&conversation, &rollout->fail);
    rollout->code = error;
    conversation_close(&conversation);
}

static void rollout_run(struct rollout *rollout)
{
    rollout->task = parse_task("{\"task\": \"t\", \"prompt\": \"The quick table.\","
                               " \"sampling\": {\"seed\": 3, \"max_tokens\": 12}}");
    record_init(&rollout->record);
    world_run(&world, rollout_fiber, rollout, 0, 1);
}

static void rollout_finish(struct rollout *rollout)
{
    record_finish(&rollout->record);
    task_destroy(rollout->task);
    free(rollout->run.answer);
}

/* How many ids of the prompts differ, which are of one length. */
static size_t count_different(const struct rollout *a, const struct rollout *b)
{
    const struct record_trace *one = &a->record.traces[0], *other = &b->record.traces[0];
    size_t count = 0;
    assert_int_equal(one->turns[0].length, other->turns[0].length);
    for (size_t i = 0; i < one->turns[0].length; i++)
        count += one->token_ids[i] != other->token_ids[i];
    return count;
}

static void swap_between_turns(const char *one, const char *other, bool is_in_the_sample)
{
    AUTO_FREE char *original = open_server();
    struct rollout rollout = {.original = original, .one = one, .other = other}, next = {0};
    rollout_run(&rollout);
    if (rollout.code != -ESTALE || !strstr(rollout.fail.text, "serves another model than the rollout began with"))
        fail_msg("it went on: %d, %s", rollout.code, rollout.fail.text);
    assert_int_equal(rollout.record.trace_count, 1);
    assert_int_equal(rollout.record.traces[0].turn_count, 2); /* what the first one sampled, and no more */
    rollout_run(&next);
    if (next.code < 0)
        fail_msg("the next rollout: %s", next.fail.text);
    assert_int_equal(count_different(&rollout, &next), 1);
    assert_int_equal(strcmp(rollout.record.tokenizer_digest, next.record.tokenizer_digest) != 0, is_in_the_sample);
    rollout_finish(&rollout);
    rollout_finish(&next);
    close_server(original);
}

/* ---- tests ---------------------------------------------------------------------------------- */

static void a_rollout_does_not_go_on_with_another_vocabulary_and_the_next_carries_its_digest(void **state)
{
    (void)state;
    swap_between_turns("\u0120quick", "\u0120brown", true);
}

/* The digest of a trajectory cannot tell, so that nothing else may be recorded under it in one rollout. */
static void nor_with_one_that_differs_in_words_of_no_sample(void **state)
{
    (void)state;
    swap_between_turns("\u0120house", "\u0120table", false);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_rollout_does_not_go_on_with_another_vocabulary_and_the_next_carries_its_digest),
        TEST(nor_with_one_that_differs_in_words_of_no_sample),
    };
    return cmocka_run_group_tests_name("engine_identity_real", tests, NULL, NULL);
}
