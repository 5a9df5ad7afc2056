/*
 * Who is blamed when something inside a sandbox fails: what the agent broke it is told in words and
 * goes on, what the task's image lacks is the task's, what the node lacks is infra.
 */
#include "tests/workers/agents/agent_world.h"

#include "workers/agents/kinds/agents.h"
#include "workers/jobs/blame.h"
#include "workers/sandbox/embedded/program.h"

/* ---- the table ----------------------------------------------------------------------------- */

static void expect_blame(enum blame_who who, int code, enum outcome outcome, enum fault fault)
{
    struct blame blame = blame_get(who, blame_what(code, NULL));
    if (blame.outcome != outcome || blame.fault != fault)
        fail_msg("%d by %d: %s, \"%s\"", code, who, outcome_wire(blame.outcome), fault_wire(blame.fault));
}

static void every_errno_has_one_meaning_and_the_rest_is_the_nodes(void **state)
{
    (void)state;
    bool has_meaning[BLAME_WHAT_COUNT] = {false};
    for (int error = 1; error < 200; error++)
        if (blame_what(-error, NULL) != BLAME_SYSTEM) {
            assert_false(has_meaning[blame_what(-error, NULL)]);
            has_meaning[blame_what(-error, NULL)] = true;
        }
    for (int who = 0; who < BLAME_WHO_COUNT; who++) {
        expect_blame((enum blame_who)who, -EIO, OUTCOME_INFRA, FAULT_NODE);
        expect_blame((enum blame_who)who, -ENOSPC, OUTCOME_INFRA, FAULT_NODE);
        expect_blame((enum blame_who)who, -ENOMEDIUM, OUTCOME_INFRA, FAULT_IMAGE);
        expect_blame((enum blame_who)who, -ECANCELED, OUTCOME_CANCELLED, FAULT_NONE);
        expect_blame((enum blame_who)who, -EINVAL, OUTCOME_TASK, FAULT_NONE);
    }
}

static void time_and_programs_are_blamed_by_whose_turn_it_was(void **state)
{
    (void)state;
    expect_blame(BLAME_NOBODY, -ETIMEDOUT, OUTCOME_INFRA, FAULT_NODE);
    expect_blame(BLAME_TASK, -ETIMEDOUT, OUTCOME_TASK, FAULT_NONE);
    expect_blame(BLAME_AGENT, -ETIMEDOUT, OUTCOME_AGENT, FAULT_NONE);
    expect_blame(BLAME_EVALUATOR, -ETIMEDOUT, OUTCOME_TASK, FAULT_NONE);
    expect_blame(BLAME_TASK, -ENOEXEC, OUTCOME_TASK, FAULT_IMAGE);
    expect_blame(BLAME_AGENT, -ENOEXEC, OUTCOME_TASK, FAULT_IMAGE);
    expect_blame(BLAME_EVALUATOR, -ENOEXEC, OUTCOME_TASK, FAULT_NONE);
    expect_blame(BLAME_TASK, -E2BIG, OUTCOME_TASK, FAULT_NONE);
    expect_blame(BLAME_AGENT, -E2BIG, OUTCOME_AGENT, FAULT_NONE);
}

static void errors_of_the_inside_are_not_taken_for_an_engines(void **state)
{
    (void)state;
    struct fail fail = {0};
    static const int kept[] = {0, -ECANCELED, -ETIMEDOUT, -ENOEXEC};
    for (size_t i = 0; i < sizeof(kept) / sizeof(*kept); i++)
        assert_int_equal(blame_inside(kept[i], &fail), kept[i]);
    fail_set(&fail, -E2BIG, "the sentence");
    assert_int_equal(blame_inside(-E2BIG, &fail), -EIO);
    assert_int_equal(fail.code, -EIO);
    assert_string_equal(fail.text, "the sentence");
    assert_int_equal(blame_inside(-EINVAL, &fail), -EIO);
}

/* ---- an image that is the agent's to break ------------------------------------------------- */

static char image[128];

/* bash and a few programs with their libraries; what is called python3 is none. */
static struct sandbox_plan own_image(void)
{
    char script[1024];
    make_dir(image, sizeof(image), "image");
    snprintf(script, sizeof(script),
             "set -e; cd %s; mkdir -p usr/bin; ln -s usr/bin bin; P=; for p in bash chmod cp rm "
             "true env; do P=\"$P /usr/bin/$p\"; done; "
             "cp -L $P usr/bin/; for f in $(ldd $P | grep -o '/[^ :]*\\.so[^ :]*' | sort -u); do "
             "cp -L --parents $f .; done; "
             "cp usr/bin/true usr/bin/python3",
             image);
    assert_int_equal(system(script), 0);
    struct sandbox_plan plan = host_plan();
    plan.image = image;
    return plan;
}

static struct record record;

/* The calls of a script in a sandbox of this plan. */
static struct agent_run replay(const struct sandbox_plan *plan, const char *script, enum outcome *ret)
{
    char text[4096];
    snprintf(text, sizeof(text),
             "{'task': 't', 'agent': {'kind': 'replay', 'tools': ['bash', "
             "'ipython', 'edit'], 'script': [%s]}}",
             script);
    for (char *at = text; *at; at++)
        if (*at == '\'')
            *at = '"';
    struct task *task = parse_task(text);
    struct agent_run run = {.task = task, .sandbox = open_sandbox(plan), .record = &record};
    record_init(&record);
    *ret = agent_find("replay")->run(&run);
    sandbox_close(&run.sandbox);
    task_destroy(task);
    run.task = NULL;
    return run;
}

static const char *told(size_t which)
{
    for (size_t i = 0; i < record.message_count; i++)
        if (strcmp(record.messages[i].role, "tool") == 0 && which-- == 0)
            return record.messages[i].content;
    return "(nothing)";
}

static void expect_told(size_t which, const char *words)
{
    if (!strstr(told(which), words))
        fail_msg("it was told: %s", told(which));
}

/* All calls are made, and the one at `at` is answered so. */
static void goes_on(const struct sandbox_plan *plan, const char *script, size_t at, const char *words)
{
    enum outcome outcome;
    struct agent_run run = replay(plan, script, &outcome);
    if (outcome != OUTCOME_OK)
        fail_msg("%s: %s", outcome_wire(outcome), run.detail);
    expect_told(at, words);
    record_finish(&record);
}

static void ends(const struct sandbox_plan *plan, const char *script, enum outcome outcome, enum fault fault,
                 const char *words)
{
    enum outcome ended;
    struct agent_run run = replay(plan, script, &ended);
    if (ended != outcome || run.fault != fault || !strstr(run.detail, words))
        fail_msg("%s, \"%s\": %s", outcome_wire(ended), fault_wire(run.fault), run.detail);
    record_finish(&record);
}

#define BASH(command) "{'tool': 'bash', 'arguments': {'command': '" command "'}}"
#define CELL(more) "{'tool': 'ipython', 'arguments': {'code': '6 * 7'" more "}}"
#define VIEW "{'tool': 'edit', 'arguments': {'command': 'view', 'path': '/'}}"

FIBER_TEST(an_agent_that_takes_the_rights_of_bash_is_told_and_goes_on)
{
    struct sandbox_plan plan = own_image();
    goes_on(&plan, BASH("chmod 0 /bin/bash; exit") "," BASH("echo hi") "," VIEW, 0,
            "no new one starts: cannot execute /bin/bash: Permission denied");
    goes_on(&plan, BASH("chmod 0 /bin/bash; exit") "," BASH("echo hi") "," VIEW, 1,
            "no shell can be started: cannot execute /bin/bash: Permission denied");
    goes_on(&plan, BASH("chmod 0 /bin/bash") ", {'tool': 'bash', 'arguments': {'restart': true}}," VIEW, 1,
            "no shell can be started");
}

FIBER_TEST(an_agent_that_puts_another_program_in_the_place_of_bash_is_told_and_goes_on)
{
    struct sandbox_plan plan = own_image();
    goes_on(&plan, BASH("rm /bin/bash; cp /bin/true /bin/bash; exit") "," BASH("echo hi") "," VIEW, 0,
            "no new one starts: /bin/bash does not do what a bash does");
    goes_on(&plan, BASH("rm /bin/bash; cp /bin/true /bin/bash; exit") "," BASH("echo hi") "," VIEW, 1,
            "no shell can be started: /bin/bash does not do what a bash does");
}

FIBER_TEST(what_an_agent_removed_before_a_tools_first_call_is_its_own_doing)
{
    struct sandbox_plan plan = own_image();
    goes_on(&plan, BASH("rm /usr/bin/python3") "," CELL("") "," CELL("") "," BASH("echo hi"), 2,
            "ipython does not start: there is no python3 that can be executed");
    goes_on(&plan,
            "{'tool': 'edit', 'arguments': {'command': 'create', 'path': '/usr/bin/bash', "
            "'file_text': 'no'}}," BASH("echo hi") "," VIEW,
            1, "bash does not start");
}

FIBER_TEST(what_an_image_lacks_before_the_agent_acted_is_the_tasks)
{
    struct sandbox_plan plan = own_image();
    char bash[256];
    ends(&plan, CELL(""), OUTCOME_TASK, FAULT_IMAGE, "python3");
    snprintf(bash, sizeof(bash), "%s/usr/bin/bash", image);
    assert_int_equal(unlink(bash), 0);
    ends(&plan, BASH("echo hi"), OUTCOME_TASK, FAULT_IMAGE, "cannot execute /bin/bash: No such file");
}

FIBER_TEST(an_agent_that_fills_the_tools_directory_is_told_when_a_kernel_cannot_start)
{
    struct sandbox_plan plan = host_plan();
    goes_on(&plan,
            BASH("exec 9>&1; for i in {1..1100}; do : > /run/sluice/out/f$i; done 2>/dev/null; "
                 "echo full") "," CELL("") "," VIEW,
            1, "/run/sluice/out: No space left");
}

#define HOLD_TERMINALS                                                                                                 \
    "python3 - > held <<E &\\nimport os, time\\nheld = []\\ntry:\\n    while True: "                                   \
    "held.append(os.openpty())\\n"                                                                                     \
    "except OSError: print(len(held), flush=True)\\ntime.sleep(1000)\\nE\\n"                                           \
    "until test -s held; do sleep 0.01; done; x=kept"

FIBER_TEST(an_agent_that_holds_every_terminal_is_told_and_keeps_its_shell)
{
    struct sandbox_plan plan = host_plan();
    goes_on(&plan,
            BASH(HOLD_TERMINALS) ", {'tool': 'bash', 'arguments': {'command': 'tty', 'tty': "
                                 "true}}," BASH("echo $x"),
            1, "there is no terminal left");
    goes_on(&plan,
            BASH(HOLD_TERMINALS) ", {'tool': 'bash', 'arguments': {'command': 'tty', 'tty': "
                                 "true}}," BASH("echo $x"),
            2, "kept");
}

FIBER_TEST(an_agent_that_breaks_what_a_jupyter_kernel_needs_is_told)
{
    struct sandbox_plan plan = host_plan();
    goes_on(&plan, BASH("echo x > kept") "," CELL(", 'kernel': 'python3'"), 1, "42");
    goes_on(&plan,
            BASH("d=.local/share/jupyter/kernels/python3; mkdir -p $d; echo { > $d/kernel.json") "," CELL(
                ", 'kernel': 'python3'") "," VIEW,
            1, "No kernel starts: the Jupyter kernel python3 does not start");
}

/* ---- the agent with a shell ---------------------------------------------------------------- */

#define RULES(replies) "{'context': 32768, 'rules': [{'replies': [" replies "]}]}"
#define BLOCK(command) "'```bash\\n" command "\\n```'"

static void the_agent_with_a_shell_is_told_of_the_bash_it_broke(void **state)
{
    (void)state;
    struct world world;
    struct sandbox_plan plan = own_image();
    struct attempt attempt = {.json = "{'task': 't', 'prompt': 'x', 'agent': {'kind': 'bash'}}", .plan = &plan};
    world_open_on(&world, loop, RULES(BLOCK("chmod 0 /bin/bash; exit") "," BLOCK("echo hi") ", 'TASK_DONE'"), NULL);
    attempt_run(&world, &attempt);
    assert_ended(&attempt, OUTCOME_OK, "3 turns");
    bool is_told = false;
    for (size_t i = 0; i < attempt.record.message_count; i++)
        is_told |= strstr(attempt.record.messages[i].content,
                          "<returncode>127</returncode>\n<output>\nno shell can be started: cannot "
                          "execute /bin/bash: Permission denied\n</output>") != NULL;
    assert_true(is_told);
    attempt_finish(&attempt);
    world_close(&world);
}

static void the_agent_with_a_shell_in_an_image_without_bash_ends_as_the_tasks(void **state)
{
    (void)state;
    struct world world;
    struct sandbox_plan plan = host_plan();
    make_dir(image, sizeof(image), "image");
    plan.image = image;
    struct attempt attempt = {.json = "{'task': 't', 'prompt': 'x', 'agent': {'kind': 'bash'}}", .plan = &plan};
    world_open_on(&world, loop, RULES(BLOCK("echo hi")), NULL);
    attempt_run(&world, &attempt);
    assert_ended(&attempt, OUTCOME_TASK, "cannot execute /bin/bash: No such file");
    assert_int_equal(attempt.run.fault, FAULT_IMAGE);
    attempt_finish(&attempt);
    world_close(&world);
}

/* ---- a disk of ours ------------------------------------------------------------------------ */

PROGRAM_BYTES(spawner_program, OWN_SPAWNER) /* spawners/blame.c */

enum { OPENS_MAX = 10 };

/* The first process of a sandbox may have been made before: with the mounts of then. */
static void expect_open(const char *type, int error, int expected)
{
    struct sandbox_plan plan = host_plan();
    struct fail fail = {0};
    plan.image = image;
    char broken[64], path[128];
    snprintf(broken, sizeof(broken), "%s %d", type, error);
    write_host_file(directory, "broken", broken, 0644);
    int code = expected + 1;
    for (int i = 0; i < OPENS_MAX && code != expected; i++) {
        struct sandbox *sandbox = NULL;
        code = sandbox_open(spawner, &plan, &sandbox, &fail);
        sandbox_close(&sandbox);
    }
    snprintf(path, sizeof(path), "%s/broken", directory);
    unlink(path);
    if (code != expected)
        fail_msg("%s: %s: %d: %s", type, strerror(error), code, fail.text);
}

FIBER_TEST(a_disk_of_ours_that_fails_is_not_blamed_on_the_image)
{
    make_dir(image, sizeof(image), "image");
    static const int ours[] = {EIO, EROFS, EDQUOT, ESTALE, ENOSPC, ENOMEM, EPERM};
    for (size_t i = 0; i < sizeof(ours) / sizeof(*ours); i++)
        expect_open("overlay", ours[i], -ours[i]);
    static const int its[] = {ELOOP, ENOTDIR, EACCES, EOVERFLOW, EINVAL};
    for (size_t i = 0; i < sizeof(its) / sizeof(*its); i++)
        expect_open("overlay", its[i], -ENOMEDIUM);
    expect_open("proc", EPERM, -EPERM);
    expect_open("proc", EACCES, -EACCES);
    expect_open("proc", EINVAL, -EIO);
    expect_open("none", 0, 0);
}

static int group(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_errno_has_one_meaning_and_the_rest_is_the_nodes),
        cmocka_unit_test(time_and_programs_are_blamed_by_whose_turn_it_was),
        cmocka_unit_test(errors_of_the_inside_are_not_taken_for_an_engines),
        TEST(an_agent_that_takes_the_rights_of_bash_is_told_and_goes_on),
        TEST(an_agent_that_puts_another_program_in_the_place_of_bash_is_told_and_goes_on),
        TEST(what_an_agent_removed_before_a_tools_first_call_is_its_own_doing),
        TEST(what_an_image_lacks_before_the_agent_acted_is_the_tasks),
        TEST(an_agent_that_fills_the_tools_directory_is_told_when_a_kernel_cannot_start),
        TEST(an_agent_that_holds_every_terminal_is_told_and_keeps_its_shell),
        TEST(an_agent_that_breaks_what_a_jupyter_kernel_needs_is_told),
        TEST(the_agent_with_a_shell_is_told_of_the_bash_it_broke),
        TEST(the_agent_with_a_shell_in_an_image_without_bash_ends_as_the_tasks),
        TEST(a_disk_of_ours_that_fails_is_not_blamed_on_the_image),
    };
    return cmocka_run_group_tests_name("blame", tests, NULL, NULL);
}

int main(void) { return run_as_everyone(group); }
