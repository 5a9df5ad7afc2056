/* eval.image and eval.build: an evaluator on an image of its own, which has of the agent's sandbox what
 * eval.artifacts names, whoever made it, and nothing else. */
#include "tests/workers/stages/build/build_world.h"

static int set_up_own(void **state)
{
    char path[256];
    if (set_up_build(state) < 0)
        return -1;
    make_plain_image("own");
    snprintf(path, sizeof(path), "%s/own/app", directory);
    write_host_file(path, "verifiers", "v\n", 0644);
    snprintf(path, sizeof(path), "%s/base/app", directory);
    write_host_file(path, "images", "b\n", 0644);
    write_host_file(path, "other", "o\n", 0644);
    return 0;
}

/* The agent does `prompt` on FROM plain, whose image is `base`; `more` is of eval, behind its kind. */
#define TASK(more, prompt, eval)                                                                                       \
    "{\"task\":\"t\",\"image\":\"%1$s/base\"," more "\"prompt\":\"" prompt "\",\"eval\":{\"kind\":\"verifier\"," eval  \
    "}}"
#define IMAGE(artifacts, script)                                                                                       \
    "\"image\":\"%1$s/own\",\"artifacts\":[" artifacts "],\"files\":{\"/tests/test.sh\":\"#!/bin/bash\\n" script       \
    "; echo 1 > /logs/verifier/reward.txt\\n\"}"

static void expect_found(const char *format, const char *words)
{
    char json[8192], said[1024];
    snprintf(json, sizeof(json), format, directory, contexts);
    snprintf(said, sizeof(said), "reward.txt says 1; it exited with 0%s%s", *words ? ": " : "", words);
    struct job eval = run_task(json);
    if (eval.result.outcome != OUTCOME_OK || strcmp(eval.result.detail, said) != 0)
        fail_msg("%s (%s), not: %s", outcome_wire(eval.result.outcome), eval.result.detail, said);
    end_job(&eval);
}

FIBER_TEST(what_image_set_up_and_agent_have_in_an_artifact_is_there_and_nothing_else)
{
    expect_found(
        TASK(
            "\"setup\":[\"echo i > /app/set; echo i > /app/gone; mkdir /data; echo d > /data/d\"],",
            "cd /app; echo a > mine; echo changed > other; rm gone; mkdir sub; echo s > sub/s; chmod 500 sub; echo e > "
            "/usr/bin/e; echo w > /workspace/w",
            IMAGE("\"/app\"",
                  "cd /app; cat images set mine other sub/s; ls; stat -c %%a sub; ls -d /data /usr/bin/e /workspace/w "
                  "2> /dev/null")),
        "b\ni\na\nchanged\ns\nimages\nmine\nother\nset\nsub\n500\n");
}

FIBER_TEST(what_nobody_wrote_to_is_the_images_and_what_is_gone_leaves_the_verifiers)
{
    expect_found(TASK("", "rm /app/images",
                      IMAGE("\"/app/other\",\"/app/images\",\"/nowhere/x\"", "cd /app; cat *; ls; ls /nowhere 2>&1")),
                 "o\nv\nother\nverifiers\nls: cannot access '/nowhere': No such file or directory\n");
    expect_found(TASK("\"agent\":{\"kind\":\"none\"},", "p", IMAGE("\"/app\"", "cat /app/*")), "b\no\n");
}

FIBER_TEST(no_artifacts_are_none) { expect_found(TASK("", "echo x > /app/x", IMAGE("", "ls /app")), "verifiers\n"); }

FIBER_TEST(environment_user_and_directory_are_those_of_its_image_where_eval_says_nothing)
{
    char path[256];
    write_host_file(directory, "own.config.json",
                    "{\"config\":{\"Env\":[\"A=own\",\"B=own\"],\"WorkingDir\":\"/home/me\",\"User\":\"1234\"}}", 0644);
    snprintf(path, sizeof(path), "%s/own/etc", directory);
    write_host_file(path, "passwd", "judge:x:77:78::/judge:/bin/sh\n", 0644);
#define SAYS "\"user\":\"root\",\"workdir\":\"/there\",\"env\":{\"A\":\"task\",\"C\":\"task\"},"
#define LOOK "cd -P .; pwd; id -u; echo $HOME $A $B ${C:-none}"
    expect_found(TASK(SAYS, "true", IMAGE("", LOOK)), "/home/me\n1234\n/workspace own own none\n");
    expect_found(
        TASK(SAYS, "true", "\"user\":\"judge\",\"workdir\":\"/work\",\"env\":{\"B\":\"eval\"}," IMAGE("", LOOK)),
        "/work\n77\n/judge own eval none\n");
}

FIBER_TEST(a_directory_of_its_own_goes_without_an_image_too)
{
    expect_found(
        TASK(
            "\"workdir\":\"/there\",", "echo a > a; echo b > b",
            "\"workdir\":\"/here\",\"artifacts\":[\"a\"],\"files\":{\"/tests/test.sh\":\"#!/bin/bash\\npwd; ls /there; "
            "echo 1 > /logs/verifier/reward.txt\\n\"}"),
        "/here\na\n");
}

FIBER_TEST(artifacts_lie_at_the_same_paths_by_the_links_of_each_image)
{
    expect_found(
        TASK("\"workdir\":\"/there\",\"setup\":[\"mkdir -p /data/out; ln -s /data /link; echo s > /data/out/s\"],",
             "echo a > /data/out/a; echo t > /bin/tool; mkdir /app/out; echo r > /app/out/r; echo w > w",
             IMAGE("\"/link/out\",\"/bin/tool\",\"/app/out\",\"/app\",\"w\"",
                   "cat /link/out/* /usr/bin/tool /app/out/r /there/w; ls -d /data 2> /dev/null; ls /app")),
        "a\ns\nt\nr\nw\nimages\nother\nout\n");
}

FIBER_TEST(what_is_excluded_and_what_leads_out_is_not_there)
{
    expect_found(
        TASK("\"setup\":[\"cd /app; ln -s /etc abs; ln -s ../etc up; ln -s images in; mkfifo pipe; mkdir d; touch "
             "d/x.o\"],",
             "cd /app; touch y.o y.c; ln -s /tests/test.sh t; mkfifo p; ln -s ../images d/in; ln -s ../../etc d/up",
             IMAGE("{\"path\":\"/app\",\"exclude\":[\"*.o\",\"other\"]}", "cd /app; find . | sort; cat d/in")),
        ".\n./d\n./d/in\n./images\n./in\n./y.c\nb\n");
}

FIBER_TEST(what_one_artifact_leaves_out_and_another_names_is_there_too)
{
    expect_found(
        TASK("\"setup\":[\"mkdir -p /app/out/kept/sub; touch /app/out/kept/set\"],",
             "cd /app; touch y out/b out/kept/c out/kept/sub/d; chmod 500 . out out/kept",
             IMAGE("\"/app/out/kept/sub\",\"/app/out/kept\",{\"path\":\"/app\",\"exclude\":[\"out\",\"other\"]}",
                   "cd /app; find . | sort; stat -c %%a . out/kept")),
        ".\n./images\n./out\n./out/kept\n./out/kept/c\n./out/kept/set\n./out/kept/sub\n./out/kept/sub/d\n./y\n"
        "500\n500\n");
}

/* Each is to leave the verifier with what its image has, or nothing. */
static const struct {
    const char *name, *prompt, *found;
} ways[] = {
    {"a link for a directory", "rm -r /app; ln -s /tests /app", "verifiers\n"},
    {"a link for one above", "mv /home /h; ln -s / /home; rm -r /app", "verifiers\n"},
    {"a FIFO for a directory", "rm -r /app; mkfifo /app", "verifiers\n"},
    {"nothing", "rm -r /app", "verifiers\n"},
    {"a file for a directory", "rm -r /app; echo file > /app", "/app\n"},
    {"an empty one", "rm -r /app; mkdir /app", ""},
    {"one without rights", "chmod 0 /app/images; chmod 0 /app", "images\nother\n"},
    {"whiteouts of the verifier's programs", "rm -r /usr/bin/cat /usr/bin/ls /app/*; rm -r /logs /tests", ""},
    {"names like whiteouts", "cd /app; rm *; touch .wh.verifiers .wh..wh..opq x", "x\n"},
    {"programs in the way", "cd /usr/bin; for p in ls cat bash; do rm $p; echo '#!/x' > $p; done; true",
     "images\nother\n"},
};

FIBER_TEST(nothing_that_the_agent_did_on_the_way_comes_with_it)
{
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        char json[4096], said[256];
        snprintf(json, sizeof(json),
                 TASK("\"user\":\"root\",", "%2$s", IMAGE("\"/app\"", "chmod 700 /app 2> /dev/null; ls /app")),
                 directory, ways[i].prompt);
        snprintf(said, sizeof(said), "it exited with 0%s%s", ways[i].found[0] ? ": " : "", ways[i].found);
        struct job eval = run_task(json);
        if (eval.result.outcome != OUTCOME_OK || !strstr(eval.result.detail, said))
            fail_msg("%s: %s, not %s", ways[i].name, eval.result.detail, said);
        end_job(&eval);
    }
}

FIBER_TEST(the_systems_directories_stay_the_images_where_that_is_trusted)
{
    expect_found(TASK("", "echo e > /usr/bin/e; echo a > /app/a",
                      "\"trust\":\"image\"," IMAGE("\"/app/a\",\"/usr/bin/e\",\"/bin/e\"",
                                                   "cat /app/a; ls /usr/bin/e 2> /dev/null; echo x 2> /dev/null > "
                                                   "/usr/bin/x || echo sealed")),
                 "a\nsealed\n");
}

FIBER_TEST(the_hosts_root_may_be_either_of_the_two)
{
    expect_reward("{\"task\":\"t\",\"prompt\":\"mkdir /app; echo 0.5 > /app/a; echo 1 > /app/b\",\"eval\":{\"kind\":"
                  "\"command\",\"image\":\"host\",\"artifacts\":[\"/app/a\",\"/var/lib\",\"/usr/bin/"
                  "env\"],\"reward_file\":\"/tmp/r\","
                  "\"command\":\"cat /app/a /app/b > /tmp/r; ! ls /var/lib | grep -q .\"}}",
                  0.5, "the reward file says 0.5");
}

/* Whatever eval.trust says: it is no directory of the system's. */
FIBER_TEST(cheating_by_a_home_that_is_an_artifact_counts_unless_python_is_isolated)
{
#define HOMES(python)                                                                                                  \
    "{\"task\":\"t\",\"prompt\":\"d=$(python3 -m site --user-site); mkdir -p $d; echo 'import os; "                    \
    "open(\\\"/tmp/r\\\", \\\"w\\\").write(\\\"1\\\"); os._exit(0)' > "                                                \
    "$d/usercustomize.py\",\"eval\":{\"kind\":\"command\","                                                            \
    "\"image\":\"host\",\"trust\":\"image\",\"artifacts\":[\"/workspace\"],\"reward_file\":\"/tmp/"                    \
    "r\",\"command\":\"" python " -c 'open(\\\"/tmp/r\\\", \\\"w\\\").write(\\\"0.5\\\")'\"}}"
    expect_reward(HOMES("python3"), 1.0, "the reward file says 1");
    expect_reward(HOMES("python3 -I"), 0.5, "the reward file says 0.5");
}

/* ---- made of a Dockerfile ----------------------------------------------------------------------------- */

#define BUILD(dockerfile, artifacts)                                                                                   \
    "\"artifacts\":[" artifacts "],\"build\":{\"dockerfile\":\"" dockerfile "\",\"context\":\"%2$s\"}"

FIBER_TEST(a_dockerfile_of_its_own_brings_the_tests)
{
    host("mkdir t && printf '#!/bin/bash\\npwd; id -u; echo $V; cat /app/*; echo 1 > /logs/verifier/reward.txt\\n' > "
         "t/test.sh");
    expect_found(
        TASK("\"user\":\"1000\",", "echo a > /app/a",
             BUILD("FROM plain\\nENV V=built\\nRUN mkdir /deep && echo x > /app/x\\nWORKDIR /deep\\nCOPY t /tests\\n",
                   "\"/app\"")),
        "/deep\n0\nbuilt\na\nb\no\n");
}

static size_t count_layers(void)
{
    char command[256], text[32] = "";
    snprintf(command, sizeof(command), "find %s/builds -name '*.tar.lz4' | wc -l", store);
    FILE *pipe = popen(command, "r");
    assert_true(pipe && fgets(text, sizeof(text), pipe));
    pclose(pipe);
    return strtoul(text, NULL, 10);
}

FIBER_TEST(it_is_made_once_and_shared_with_the_builds_of_tasks)
{
    host("printf '#!/bin/bash\\ncat /made; echo 1 > /logs/verifier/reward.txt\\n' > test.sh");
    expect_built("FROM plain\nRUN echo m > /made\n", "cat /made", "m\n");
    assert_int_equal(count_layers(), 1);
    for (size_t i = 0; i < 2; i++) {
        expect_found(TASK("", "true", BUILD("FROM plain\\nRUN echo m > /made\\nCOPY test.sh /tests/\\n", "")), "m\n");
        assert_int_equal(count_layers(), 2);
    }
}

FIBER_TEST(one_that_fails_is_the_tasks_fault_and_gives_no_reward)
{
    char json[4096];
    snprintf(json, sizeof(json), TASK("", "true", BUILD("FROM plain\\nRUN echo why; exit 3\\n", "")), directory,
             contexts);
    expect_no_reward(json, OUTCOME_TASK, "eval.build: the Dockerfile, line 2: RUN exited with 3: why");
    snprintf(json, sizeof(json), TASK("", "true", BUILD("FROM nobody/knows\\n", "")), directory, contexts);
    expect_no_reward(json, OUTCOME_TASK, "nobody/knows");
}

FIBER_TEST(an_image_that_is_not_there_is_told)
{
    char json[4096];
    snprintf(json, sizeof(json), TASK("", "true", "\"image\":\"%1$s/none\",\"artifacts\":[]"), directory);
    expect_no_reward(json, OUTCOME_TASK, "the evaluator's image: ");
}

FIBER_TEST(the_time_of_its_build_is_not_that_of_the_evaluator)
{
    host("printf '#!/bin/bash\\nsleep 1; echo 1 > /logs/verifier/reward.txt\\n' > slow.sh");
    expect_found(TASK("\"limits\":{\"eval_s\":3},", "true",
                      BUILD("FROM plain\\nRUN sleep 4\\nCOPY slow.sh /tests/test.sh\\n", "")),
                 "");
}

static int group(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_own, tear_down_build)
    const struct CMUnitTest tests[] = {
        TEST(what_image_set_up_and_agent_have_in_an_artifact_is_there_and_nothing_else),
        TEST(what_nobody_wrote_to_is_the_images_and_what_is_gone_leaves_the_verifiers),
        TEST(no_artifacts_are_none),
        TEST(environment_user_and_directory_are_those_of_its_image_where_eval_says_nothing),
        TEST(a_directory_of_its_own_goes_without_an_image_too),
        TEST(artifacts_lie_at_the_same_paths_by_the_links_of_each_image),
        TEST(what_is_excluded_and_what_leads_out_is_not_there),
        TEST(what_one_artifact_leaves_out_and_another_names_is_there_too),
        TEST(nothing_that_the_agent_did_on_the_way_comes_with_it),
        TEST(the_systems_directories_stay_the_images_where_that_is_trusted),
        TEST(the_hosts_root_may_be_either_of_the_two),
        TEST(cheating_by_a_home_that_is_an_artifact_counts_unless_python_is_isolated),
        TEST(a_dockerfile_of_its_own_brings_the_tests),
        TEST(it_is_made_once_and_shared_with_the_builds_of_tasks),
        TEST(one_that_fails_is_the_tasks_fault_and_gives_no_reward),
        TEST(an_image_that_is_not_there_is_told),
        TEST(the_time_of_its_build_is_not_that_of_the_evaluator),
    };
    int failed = cmocka_run_group_tests_name("an evaluator's own image", tests, NULL, NULL);
    free(agent_output);
    agent_output = NULL;
    return failed;
}

int main(void) { return run_as_everyone(group); }
