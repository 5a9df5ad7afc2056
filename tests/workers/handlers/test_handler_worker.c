/* A real sluice-worker with --handler: what its beat says of it, jobs of it, and the end of both. */
#include "tests/workers/service/worker_harness.h"

#include "common/base/cleanup.h"

static const char handler_text[] = "mine=" SCRIPTED_HANDLER;
static const char graded[] =
    "{\"task\":\"t\",\"prompt\":\"p\",\"agent\":{\"kind\":\"none\"},\"eval\":{\"kind\":\"grade\"}}";

static bool beat_offers(const char *offer)
{
    AUTO_FREE char *offers = strndup((const char *)heard.beat.offers.data, heard.beat.offers.len);
    return heard.beat.has_offers && offers && strstr(offers, offer);
}

static bool beat_tells(const char *words)
{
    AUTO_FREE char *error = strndup((const char *)heard.beat.node_error.data, heard.beat.node_error.len);
    return heard.beat.has_node_error && error && strstr(error, words);
}

static void an_eval_worker_offers_evaluators_and_does_their_jobs(void **state)
{
    (void)state;
    struct worker_process worker = worker_start("eval", "--handler", handler_text, "--handler-processes", "2");
    open_lane(1);
    hear_beat_until(beat_offers("evaluator:grade@2"));
    assert_false(beat_offers("tool:"));
    uint64_t token = say_start_as("eval:g/0", ++next_token, graded, NULL);
    const struct msg_job_result *result = hear_result("eval:g/0");
    assert_true(slice_is(result->outcome, "ok") && result->has_reward && result->reward == 0.5);
    assert_true(slice_is(result->detail, "half"));
    say_ack("eval:g/0", token);
    assert_int_equal(worker_stop(&worker), 0);
}

static void a_run_worker_offers_evaluators_too_beside_agents_and_tools(void **state)
{
    (void)state;
    struct worker_process worker = worker_start("run", "--handler", handler_text);
    open_lane(1);
    hear_beat_until(beat_offers("tool:look_up@0") && beat_offers("agent:asks_once@1.2"));
    assert_true(beat_offers("evaluator:grade@2")); /* for tasks that are evaluated in the agent's own sandbox */
    assert_int_equal(worker_stop(&worker), 0);
}

static void a_handler_that_dies_is_offered_no_more_and_the_beat_says_why(void **state)
{
    (void)state;
    struct worker_process worker = worker_start("eval", "--handler", "mine=exit 9");
    open_lane(1);
    hear_beat_until(beat_tells("the handler mine is not ready: it ended with exit status 9"));
    assert_false(heard.beat.has_offers);
    uint64_t token = say_start_as("eval:g/0", ++next_token, graded, NULL);
    const struct msg_job_result *result = hear_result("eval:g/0");
    assert_true(slice_is(result->outcome, "infra") && slice_is(result->fault, "handler"));
    say_ack("eval:g/0", token);
    assert_int_equal(worker_stop(&worker), 0);
}

/* Of the processes whose parent is that one, the first; 0: there is none. */
static pid_t child_of(pid_t parent)
{
    char path[64];
    int child = 0;
    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)parent, (int)parent);
    FILE *file = fopen(path, "r");
    while (file && fscanf(file, "%d", &child) == 1) {
        char name[32] = "", command[64];
        snprintf(command, sizeof(command), "/proc/%d/cmdline", child);
        FILE *line = fopen(command, "r");
        if (line && fgets(name, sizeof(name), line) && strcmp(name, "sluice-supervisor") == 0)
            parent = child;
        if (line)
            fclose(line);
        if (parent == child)
            break;
    }
    if (file)
        fclose(file);
    return parent == child ? child : 0;
}

static void a_worker_that_is_killed_leaves_no_handler_behind(void **state)
{
    (void)state;
    struct worker_process worker = worker_start("eval", "--handler", handler_text);
    open_lane(1);
    hear_beat_until(beat_offers("evaluator:grade@2"));
    const pid_t supervisor = child_of(worker.pid);
    assert_true(supervisor > 0);
    kill(worker.pid, SIGKILL);
    worker_reap(worker.pid);
    for (int64_t end = clock_ms() + BOUND_MS; kill(supervisor, 0) == 0;) {
        if (clock_ms() > end)
            fail_msg("the supervisor lives on");
        poll(NULL, 0, 10);
    }
}

static void a_handler_of_no_name_or_of_an_init_worker_is_a_wrong_command_line(void **state)
{
    (void)state;
    struct worker_process unnamed = worker_launch("eval", "--handler", "true", NULL);
    assert_int_equal(worker_wait(&unnamed), 2);
    struct worker_process init = worker_launch("init", "--handler", "mine=true", NULL);
    assert_int_equal(worker_wait(&init), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_eval_worker_offers_evaluators_and_does_their_jobs),
        TEST(a_run_worker_offers_evaluators_too_beside_agents_and_tools),
        TEST(a_handler_that_dies_is_offered_no_more_and_the_beat_says_why),
        TEST(a_worker_that_is_killed_leaves_no_handler_behind),
        TEST(a_handler_of_no_name_or_of_an_init_worker_is_a_wrong_command_line),
    };
    return cmocka_run_group_tests_name("handler worker", tests, NULL, NULL);
}
