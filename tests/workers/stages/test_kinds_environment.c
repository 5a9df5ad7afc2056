/* Stages in the environment that the image and the task ask for. */
#include "tests/workers/stages/plain_image.h"

#define COMMAND(command) "\"eval\":{\"kind\":\"command\",\"command\":\"" command "\"}}"

static void say_config(const char *text)
{
    write_host_file(directory, "image.config.json", text, 0644);
    char path[256];
    snprintf(path, sizeof(path), "%s/image/etc", directory);
    write_host_file(path, "passwd", "root:x:0:0::/root:/bin/sh\nme:x:1001:1002::/home/me:/bin/sh\n", 0644);
}

/* A task on the image; `rest` follows its prompt. */
static void expect_on_image(const char *prompt, const char *rest, const char *printed)
{
    char json[2048];
    snprintf(json, sizeof(json), "{\"task\":\"t\",\"image\":\"%s/image\",\"prompt\":\"%s\"%s", directory, prompt, rest);
    struct job eval = run_task(json);
    expect(&eval, OUTCOME_OK, "");
    if (!eval.result.verdict.has_reward || eval.result.verdict.reward != 1.0)
        fail_msg("%s", eval.result.detail);
    assert_string_equal(agent_output, printed);
    end_job(&eval);
}

FIBER_TEST(what_an_image_says_holds_for_set_up_agent_and_evaluator)
{
    make_plain_image("image");
    say_config(
        "{\"config\":{\"Env\":[\"A=image\",\"PATH=/special:/bin\"],\"WorkingDir\":\"/app/deep\",\"User\":\"me\"}}");
    expect_on_image("pwd; echo $A $HOME $PATH; id -u; id -g; cat made; echo agent > own",
                    ",\"setup\":[\"echo $PWD $A $(id -u) > made\"]," COMMAND(
                        "[[ $PWD = /app/deep && $A = image && $(id -u) = 1001 && $(<own) = agent ]]"),
                    "/app/deep\nimage /home/me /special:/bin\n1001\n1002\n/app/deep image 1001\n");
}

FIBER_TEST(a_task_overrides_what_the_image_says)
{
    make_plain_image("image");
    say_config("{\"config\":{\"Env\":[\"A=image\",\"B=image\"],\"WorkingDir\":\"/app\",\"User\":\"me\"}}");
    expect_on_image(
        "pwd; echo $A $B $HOME; id -u",
        ",\"workdir\":\"/root/w\",\"user\":\"root\",\"env\":{\"A\":\"task\"},\"eval\":{\"kind\":\"command\","
        "\"user\":\"1234\",\"env\":{\"B\":\"eval\"},\"command\":\"[[ $(id -u) = 1234 && $A$B = taskeval ]]\"}}",
        "/root/w\ntask image /root\n0\n");
}

FIBER_TEST(relative_files_are_of_the_working_directory)
{
    make_plain_image("image");
    say_config("{\"config\":{\"WorkingDir\":\"/app\"}}");
    expect_on_image(
        "cat /app/given",
        ",\"files\":{\"given\":\"here\"},\"eval\":{\"kind\":\"command\",\"files\":{\"check\":\"[[ $PWD = /app ]]\"},"
        "\"command\":\". ./check && cat /app/check /app/given\"}}",
        "here");
}

FIBER_TEST(uid_zero_installs_anywhere_and_its_layer_carries_it)
{
    make_plain_image("image");
    say_config("{\"config\":{\"User\":\"0:0\"}}");
    expect_on_image(
        "echo x > /usr/bin/agent; rm /usr/bin/wc; chown 55:55 /root/given; stat -c %u /root/given",
        ",\"setup\":[\"mkdir -p /tests /logs/verifier; touch /root/given /etc/given; chown 33 /etc/given\"]," COMMAND(
            "[[ -e /root/given && -e /etc/given && -d /tests && -d /logs/verifier && -e /usr/bin/agent &&"
            " ! -e /usr/bin/wc && $(id -u) = 0 ]]"),
        "0\n");
}

static void expect_init_on_image(const char *rest, const char *words)
{
    char json[1024];
    snprintf(json, sizeof(json), "{\"task\":\"t\",\"image\":\"%s/image\",\"prompt\":\"true\",\"setup\":[\"true\"],%s",
             directory, rest);
    expect_init(json, OUTCOME_TASK, words);
}

FIBER_TEST(what_cannot_be_had_ends_the_task_with_the_reason)
{
    make_plain_image("image");
    say_config("{\"config\":{\"User\":\"nobody-here\"}}");
    expect_init_on_image("\"user\":\"who\"}", "there is no user who in the image's /etc/passwd");
    expect_init_on_image("\"user\":\"me:who\"}", "there is no group who in the image's /etc/group");
    expect_init_on_image("\"samples\":1}", "there is no user nobody-here");
    expect_init_on_image("\"user\":\"me\",\"limits\":{\"gpus\":1}}", "limits.gpus is 1");
    expect_init_on_image("\"user\":\"me\",\"init\":{\"network\":[\"pip\"]}}", "no network grant \"pip\"");
    say_config("{\"config\":");
}

FIBER_TEST(a_damaged_config_beside_is_the_tasks_fault)
{
    make_plain_image("image");
    say_config("{\"config\":");
    expect_init_on_image("\"samples\":1}", "image.config.json");
}

FIBER_TEST(set_up_has_its_own_network_where_the_task_says_so)
{
    struct job job = make_job("{\"task\":\"t\",\"prompt\":\"p\",\"network\":[\"a\"],\"init\":{\"network\":[]}}");
    assert_non_null(job.task->init_grants);
    assert_int_equal(job.task->init_grant_count, 0);
    assert_int_equal(job.task->grant_count, 1);
    end_job(&job);
    expect_init("{\"task\":\"t\",\"prompt\":\"p\",\"network\":[\"a\"],\"setup\":[\"true\"]}", OUTCOME_TASK,
                "no network grant \"a\"");
    struct job with_none = run_stage(STAGE_INIT,
                                     "{\"task\":\"t\",\"prompt\":\"p\",\"network\":[\"a\"],"
                                     "\"init\":{\"network\":[]},\"setup\":[\"true\"]}",
                                     NULL, NULL, NULL);
    expect(&with_none, OUTCOME_OK, "");
    end_job(&with_none);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_kinds, tear_down_kinds)

static int group(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_an_image_says_holds_for_set_up_agent_and_evaluator),
        TEST(a_task_overrides_what_the_image_says),
        TEST(relative_files_are_of_the_working_directory),
        TEST(uid_zero_installs_anywhere_and_its_layer_carries_it),
        TEST(what_cannot_be_had_ends_the_task_with_the_reason),
        TEST(a_damaged_config_beside_is_the_tasks_fault),
        TEST(set_up_has_its_own_network_where_the_task_says_so),
    };
    return cmocka_run_group_tests_name("environment of stages", tests, NULL, NULL);
}

int main(void) { return run_as_everyone(group); }
