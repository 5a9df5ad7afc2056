/* What a failed stage is blamed on: its image, the store, the node, or nothing in particular. */
#include "tests/workers/stages/kinds_world.h"

#include <signal.h>

static void expect_fault(const struct job *job, enum outcome outcome, enum fault fault, const char *words)
{
    expect(job, outcome, words);
    if (job->result.fault != fault)
        fail_msg("%s is blamed on \"%s\", not \"%s\"", job->result.detail, fault_wire(job->result.fault),
                 fault_wire(fault));
}

static void expect_stage(enum stage stage, const char *json, const struct layer *init, enum outcome outcome,
                         enum fault fault, const char *words)
{
    struct job job = run_stage(stage, json, init, NULL, NULL);
    expect_fault(&job, outcome, fault, words);
    assert_string_equal(job.result.layer.digest, "");
    end_job(&job);
}

#define WRITES "{\"task\":\"t\",\"prompt\":\"echo x > f\",\"files\":{\"a\":\"x\"}"
/* So much that its layer must go to the store. */
#define WRITES_MUCH "{\"task\":\"t\",\"prompt\":\"true\",\"setup\":[\"head -c 200000 /dev/urandom > f\"]}"

/* ---- the image ---------------------------------------------------------------------------- */

FIBER_TEST(an_image_that_is_not_there_is_the_tasks_and_the_images_fault)
{
    expect_stage(STAGE_INIT, "{\"task\":\"t\",\"prompt\":\"true\",\"image\":\"/does/not/exist\"}", NULL, OUTCOME_TASK,
                 FAULT_IMAGE, "/does/not/exist");
    expect_stage(STAGE_INIT, WRITES ",\"image\":\"/does/not/exist\"}", NULL, OUTCOME_TASK, FAULT_IMAGE,
                 "/does/not/exist");
    expect_stage(STAGE_RUN, WRITES ",\"image\":\"/etc/passwd\"}", NULL, OUTCOME_TASK, FAULT_IMAGE, "/etc/passwd");
}

FIBER_TEST(an_image_that_cannot_be_read_is_infra_and_the_images_fault)
{
    char image[160], json[512];
    snprintf(image, sizeof(image), "%s/image", directory);
    assert_int_equal(symlink("image", image), 0);
    snprintf(json, sizeof(json), "{\"task\":\"t\",\"prompt\":\"true\",\"image\":\"%s\"}", image);
    expect_stage(STAGE_INIT, json, NULL, OUTCOME_INFRA, FAULT_IMAGE, "Too many levels");
    expect_stage(STAGE_RUN, json, NULL, OUTCOME_INFRA, FAULT_IMAGE, "Too many levels");
}

/* The evaluator's may have been there before the agent came, so that is nobody's in particular. */
FIBER_TEST(an_image_without_bash_is_the_tasks_fault_in_set_up_and_in_evaluation)
{
    char image[160], json[512];
    make_dir(image, sizeof(image), "image");
    snprintf(json, sizeof(json),
             "{\"task\":\"t\",\"prompt\":\"true\",\"image\":\"%s\",\"setup\":[\"true\"],"
             "\"eval\":{\"kind\":\"command\",\"command\":\"true\"}}",
             image);
    expect_stage(STAGE_INIT, json, NULL, OUTCOME_TASK, FAULT_IMAGE, "cannot execute /bin/bash");
    expect_stage(STAGE_EVAL, json, NULL, OUTCOME_TASK, FAULT_NONE, "cannot execute /bin/bash");
    char bin[200];
    snprintf(bin, sizeof(bin), "%s/bin", image);
    assert_int_equal(mkdir(bin, 0755), 0);
    write_host_file(bin, "bash", "no program", 0644);
    expect_stage(STAGE_INIT, json, NULL, OUTCOME_TASK, FAULT_IMAGE, "Permission denied");
    assert_int_equal(chmod(strcat(bin, "/bash"), 0755), 0);
    expect_stage(STAGE_EVAL, json, NULL, OUTCOME_TASK, FAULT_NONE, "Exec format error");
}

/* ---- the store ---------------------------------------------------------------------------- */

FIBER_TEST(a_layer_that_is_missing_or_damaged_is_the_stores_fault)
{
    struct layer layer = {.digest = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"};
    expect_stage(STAGE_RUN, WRITES "}", &layer, OUTCOME_INFRA, FAULT_STORE, "No such file");
    buffer_append_str(&layer.inlined, "not this");
    expect_stage(STAGE_RUN, WRITES "}", &layer, OUTCOME_INFRA, FAULT_STORE, "damaged");
    buffer_finish(&layer.inlined);
    strcpy(layer.digest, "sha256:short");
    expect_stage(STAGE_RUN, WRITES "}", &layer, OUTCOME_INFRA, FAULT_STORE, "not a digest");
}

FIBER_TEST(a_store_that_cannot_be_written_is_the_stores_fault)
{
    char gone[160];
    snprintf(gone, sizeof(gone), "%s/gone", directory);
    assert_int_equal(rename(store, gone), 0);
    expect_stage(STAGE_INIT, WRITES_MUCH, NULL, OUTCOME_INFRA, FAULT_STORE, store);
    assert_int_equal(rename(gone, store), 0);
}

/* ---- the node ----------------------------------------------------------------------------- */

FIBER_TEST(a_cache_that_cannot_be_written_is_the_nodes_fault)
{
    char gone[160];
    snprintf(gone, sizeof(gone), "%s/gone", directory);
    assert_int_equal(rename(cache, gone), 0);
    expect_stage(STAGE_EVAL,
                 "{\"task\":\"t\",\"prompt\":\"x\",\"eval\":{\"kind\":\"command\",\"command\":\"true\","
                 "\"files\":{\"/workspace/a\":\"x\"}}}",
                 NULL, OUTCOME_INFRA, FAULT_NODE, cache);
    assert_int_equal(rename(gone, cache), 0);
}

static void wait_for_the_spawners_end(void)
{
    struct sandbox_plan plan = host_plan();
    struct sandbox *sandbox = NULL;
    struct fail fail = {0};
    while (sandbox_open(spawner, &plan, &sandbox, &fail) == 0)
        sandbox_close(&sandbox);
}

/* The pid of the spawner is its own business: it is the only child of this process. */
static pid_t spawner_find(void)
{
    char path[64];
    int pid = 0;
    snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
    FILE *children = fopen(path, "r");
    if (!children || fscanf(children, "%d", &pid) != 1)
        skip(); /* a kernel without CONFIG_PROC_CHILDREN */
    fclose(children);
    return pid;
}

FIBER_TEST(a_spawner_that_died_is_the_nodes_fault)
{
    assert_int_equal(kill(spawner_find(), SIGKILL), 0);
    wait_for_the_spawners_end();
    expect_stage(STAGE_RUN, WRITES "}", NULL, OUTCOME_INFRA, FAULT_NODE, "");
}

/* ---- nothing in particular ---------------------------------------------------------------- */

FIBER_TEST(what_the_task_or_the_broker_got_wrong_is_blamed_on_nothing_else)
{
    expect_stage(STAGE_INIT, "{\"task\":\"t\",\"prompt\":\"true\",\"setup\":[\"false\"]}", NULL, OUTCOME_TASK,
                 FAULT_NONE, "exited with 1");
    expect_stage(STAGE_INIT, "{\"task\":\"t\",\"prompt\":\"true\",\"files\":{\"/usr/x\":\"\"}}", NULL, OUTCOME_TASK,
                 FAULT_NONE, "/usr/x");
    expect_stage(STAGE_RUN, "{\"task\":\"t\",\"prompt\":\"1+1?\",\"agent\":{\"kind\":\"chat\"}}", NULL, OUTCOME_INFRA,
                 FAULT_NONE, "names none");
    expect_stage(STAGE_EVAL,
                 "{\"task\":\"t\",\"prompt\":\"x\",\"eval\":{\"kind\":\"command\",\"command\":\"kill $$\"}}", NULL,
                 OUTCOME_TASK, FAULT_NONE, "broken");
}

static int group(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_kinds, tear_down_kinds)
    const struct CMUnitTest tests[] = {
        TEST(an_image_that_is_not_there_is_the_tasks_and_the_images_fault),
        TEST(an_image_that_cannot_be_read_is_infra_and_the_images_fault),
        TEST(an_image_without_bash_is_the_tasks_fault_in_set_up_and_in_evaluation),
        TEST(a_layer_that_is_missing_or_damaged_is_the_stores_fault),
        TEST(a_store_that_cannot_be_written_is_the_stores_fault),
        TEST(a_cache_that_cannot_be_written_is_the_nodes_fault),
        TEST(a_spawner_that_died_is_the_nodes_fault),
        TEST(what_the_task_or_the_broker_got_wrong_is_blamed_on_nothing_else),
    };
    int failed = cmocka_run_group_tests_name("faults", tests, NULL, NULL);
    free(agent_output);
    agent_output = NULL;
    return failed;
}

int main(void) { return run_as_everyone(group); }
