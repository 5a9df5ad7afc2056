/* eval.artifacts: of what the agent left the evaluator's sandbox has these places alone,
 * and nothing leads out of them. */
#include "tests/workers/stages/plain_image.h"

/* The agent does `prompt`; `script` is /tests/test.sh, on an image of the task's own. */
#define TASK(more, artifacts, prompt, script)                                                                          \
    "{\"task\":\"t\",\"image\":\"%s/own\"," more "\"prompt\":\"" prompt                                                \
    "\",\"eval\":{\"kind\":\"verifier\",\"artifacts\":[" artifacts "],\"files\":{\"/tests/test.sh\":"                  \
    "\"#!/bin/bash\\n" script "\",\"/tests/expected\":\"secret\"}}}"
#define GOOD "; echo 1 > /logs/verifier/reward.txt"

static int set_up_artifacts(void **state)
{
    if (set_up_kinds(state) < 0)
        return -1;
    make_plain_image("own");
    return 0;
}

/* What the verifier printed is to be `words`. */
static void expect_found(const char *format, const char *words)
{
    char json[8192], said[1024];
    snprintf(json, sizeof(json), format, directory);
    snprintf(said, sizeof(said), "reward.txt says 1; it exited with 0: %s", words);
    struct job eval = run_task(json);
    if (eval.result.outcome != OUTCOME_OK || strcmp(eval.result.detail, said) != 0)
        fail_msg("%s (%s), not: %s", outcome_wire(eval.result.outcome), eval.result.detail, said);
    end_job(&eval);
}

FIBER_TEST(these_places_alone_are_taken)
{
    expect_found(TASK("", "\"/app/kept\",\"made/out\",\"/nowhere\"",
                      "echo a > /app/kept; mkdir -p made/out/sub; echo b > made/out/sub/b; echo c > made/c; echo d > "
                      "/app/d; echo e > /usr/bin/e; chmod 500 made/out",
                      "cd /workspace; cat /app/kept made/out/sub/b; ls /app made /nowhere 2> /dev/null; stat -c %%a "
                      "made/out; ls -d /usr/bin/e" GOOD),
                 "a\nb\n/app:\nkept\n\nmade:\nout\n500\nls: cannot access '/usr/bin/e': No such file or directory\n");
}

FIBER_TEST(what_is_missing_is_as_set_up_left_it_and_what_is_gone_from_a_directory_stays_gone)
{
    expect_found(TASK("\"setup\":[\"mkdir /app/out; echo i > /app/out/i; echo g > /app/out/g; echo own > /app/own\"],",
                      "\"/app/out\",\"/app/own\"", "rm -r /app/out/g /app/own; echo n > /app/out/n",
                      "ls /app/out; cat /app/own" GOOD),
                 "i\nn\nown\n");
}

FIBER_TEST(what_the_agent_did_on_the_way_to_a_place_does_not_come_with_it)
{
    expect_found(TASK("\"setup\":[\"mkdir /app/out; echo i > /app/out/i; echo tool > /app/tool\"],",
                      "\"/app/out\",\"/app/file\"",
                      "rm -r /app; mkdir -p /app/out; echo x > /app/out/x; echo f > /app/file; chmod 0 /app",
                      "ls /app/out; cat /app/tool /app/file" GOOD),
                 "x\ntool\nf\n");
}

FIBER_TEST(links_of_image_and_set_up_on_the_way_are_followed)
{
    expect_found(TASK("\"setup\":[\"mkdir -p /data/deep; ln -s /data /link; ln -s deep /data/d; ln -s loop /loop\"],",
                      "\"/link/d/out\",\"/bin/tool\",\"/loop/x\"",
                      "mkdir /link/d/out; echo o > /link/d/out/o; echo t > /bin/tool; echo n > /data/n",
                      "cat /data/deep/out/o /usr/bin/tool; ls /data" GOOD),
                 "o\nt\nd\ndeep\n");
}

FIBER_TEST(what_is_excluded_is_left_out)
{
    expect_found(TASK("", "{\"path\":\"/app\",\"exclude\":[\"*.o\",\"node_modules\",\"./top\",\"src/gen\"]}",
                      "cd /app; mkdir -p node_modules/x lib/node_modules src/gen deep/src/gen deep/top; touch a.c a.o "
                      "lib/b.o lib/b.c top src/gen/x src/y deep/src/gen/z",
                      "cd /app; find . | sort" GOOD),
                 ".\n./a.c\n./deep\n./deep/src\n./deep/top\n./lib\n./lib/b.c\n./src\n./src/y\n");
}

FIBER_TEST(what_one_artifact_leaves_out_and_another_names_is_there)
{
    expect_found(TASK("\"setup\":[\"mkdir -p /app/out/init; touch /app/out/init/i\"],",
                      "{\"path\":\"/app\",\"exclude\":[\"out\"]},\"/app/out/kept\",\"/app/out/none\"",
                      "cd /app; mkdir out/kept; touch a out/b out/kept/c; rm out/init/i",
                      "cd /app; find . | sort" GOOD),
                 ".\n./a\n./out\n./out/init\n./out/init/i\n./out/kept\n./out/kept/c\n");
}

FIBER_TEST(links_within_a_place_are_kept)
{
    expect_found(TASK("", "\"/app/out\"",
                      "mkdir -p /app/out/a/b; cd /app/out; echo f > f; ln -s f one; ln -s ../../f a/b/two; ln -s "
                      "./a/b dir; ln -s nowhere three; echo h > /tmp/h; ln /tmp/h hard",
                      "cd /app/out; cat one dir/two hard; readlink three" GOOD),
                 "f\nf\nh\nnowhere\n");
}

FIBER_TEST(of_the_image_host_they_are_taken_too)
{
    expect_reward("{\"task\":\"t\",\"prompt\":\"mkdir /app; echo 0.5 > /app/a; echo 1 > /app/b; echo 1 > answer\","
                  "\"eval\":{\"kind\":\"command\",\"artifacts\":[\"/app/a\"],\"reward_file\":\"/tmp/reward\","
                  "\"command\":\"cat /app/a /app/b answer > /tmp/reward; true\"}}",
                  0.5, "the reward file says 0.5");
}

FIBER_TEST(what_is_sealed_stays_the_images_also_where_it_is_an_artifact)
{
    expect_found(TASK("", "\"/app/a\",\"/usr/bin/e\"],\"trust\":\"image\",\"network\":[",
                      "echo a > /app/a; echo e > /usr/bin/e",
                      "cat /app/a; ls /usr/bin/e 2> /dev/null; echo x 2> /dev/null > /usr/bin/x || echo sealed" GOOD),
                 "a\nsealed\n");
}

/* Each is to be 1 where a careless runner takes it over. */
static const struct {
    const char *name, *prompt;
} ways[] = {
    {"tests of its own", "mkdir /tests; echo 'echo 1 > /logs/verifier/reward.txt' > /tests/test.sh; echo x > "
                         "/tests/conftest.py"},
    {"the reward", "echo 1 > /logs/verifier/reward.txt; echo '{\\\"reward\\\": 1}' > /logs/verifier/reward.json"},
    {"the verifier's programs", "cd /usr/bin; rm grep bash; echo '#!/bin/sh' > grep; cp sh bash; mkdir -p "
                                "/usr/local/bin; cp grep /usr/local/bin/grep"},
    {"settings", "echo /tmp/x.so > /etc/ld.so.preload; mkdir -p /etc/profile.d; echo 'echo 1 > "
                 "/logs/verifier/reward.txt; exit' > /etc/profile.d/x.sh; cp /etc/profile.d/x.sh ~/.bashrc; mkdir -p "
                 "/usr/lib/python3/dist-packages; touch /usr/lib/python3/dist-packages/sitecustomize.py"},
    {"a link for a file", "ln -s /tests/expected /app/answer"},
    {"links in a directory", "mkdir /app/out; ln -s /tests/expected /app/out/a; ln -s ../../tests/expected /app/out/b; "
                             "ln -s ./.././../tests/expected /app/out/c; ln -s /proc/self/root/tests/expected "
                             "/app/out/d"},
    {"a link by way of a link", "mkdir -p /app/out/sub; cd /app/out/sub; ln -s .. d; ln -s d/../../tests/expected e; "
                                "ln -s x/../../../../tests/expected f"},
    {"a link for a directory", "ln -s /tests /app/out"},
    {"a link on the way", "rm -r /app; ln -s /tests /app"},
    {"a link for a directory in a directory", "mkdir /app/out; ln -s /tests /app/out/sub; ln -s / /app/out/root"},
    {"FIFOs", "mkdir -p /app/out/sub; mkfifo /app/answer /app/out/f /app/out/sub/f"},
    {"a FIFO for a directory", "mkfifo /app/out"},
    {"a whiteout of what the verifier stands on", "rm -rf /tests /usr/bin/cat /usr/bin/grep /logs /app"},
    {"names like whiteouts", "mkdir -p /app/out; touch /app/out/.wh..wh..opq /app/.wh.answer /.wh.tests"},
    {"a thousand links to one file", "mkdir /app/out; echo x > /app/out/x; for i in {1..1000}; do ln /app/out/x "
                                     "/app/out/$i; done"},
};

FIBER_TEST(nothing_else_of_the_agents_reaches_the_verifier)
{
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        char json[4096];
        snprintf(json, sizeof(json),
                 TASK("", "\"/app/out\",\"/app/answer\",\"/app/expected\"", "%s",
                      "r=0.25; for f in /app/out/* /app/out/*/* /app/answer /app/expected; do [ -e $f -a ! -d $f ] && "
                      "{ read x < $f; [ $x = secret ]; } && r=1; done; ls -A /tests | grep -v expected; echo $r > "
                      "/logs/verifier/reward.txt"),
                 directory, ways[i].prompt);
        struct job eval = run_task(json);
        if (eval.result.outcome != OUTCOME_OK || eval.result.verdict.reward != 0.25)
            fail_msg("%s: %s", ways[i].name, eval.result.detail);
        expect(&eval, OUTCOME_OK, "it exited with 0: test.sh\n");
        end_job(&eval);
    }
}

FIBER_TEST(an_artifact_too_large_ends_by_the_limit_it_breaks)
{
    char json[4096];
    expect_found(TASK("\"limits\":{\"disk_mib\":4},", "\"/app\"", "head -c 100M /dev/zero > /app/big; true",
                      "[ $(stat -c %%s /app/big) -lt 5000000 ] && echo short" GOOD),
                 "short\n");
    snprintf(json, sizeof(json),
             TASK("", "\"/app\"", "d=/app; for i in {1..300}; do mkdir $d/d; cd $d/d; d=.; done", "echo on" GOOD),
             directory);
    expect_no_reward(json, OUTCOME_AGENT, "nothing was scored");
}

static int group(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_artifacts, tear_down_kinds)
    const struct CMUnitTest tests[] = {
        TEST(these_places_alone_are_taken),
        TEST(what_is_missing_is_as_set_up_left_it_and_what_is_gone_from_a_directory_stays_gone),
        TEST(what_the_agent_did_on_the_way_to_a_place_does_not_come_with_it),
        TEST(links_of_image_and_set_up_on_the_way_are_followed),
        TEST(what_is_excluded_is_left_out),
        TEST(what_one_artifact_leaves_out_and_another_names_is_there),
        TEST(links_within_a_place_are_kept),
        TEST(of_the_image_host_they_are_taken_too),
        TEST(what_is_sealed_stays_the_images_also_where_it_is_an_artifact),
        TEST(nothing_else_of_the_agents_reaches_the_verifier),
        TEST(an_artifact_too_large_ends_by_the_limit_it_breaks),
    };
    int failed = cmocka_run_group_tests_name("artifacts", tests, NULL, NULL);
    free(agent_output);
    agent_output = NULL;
    return failed;
}

int main(void) { return run_as_everyone(group); }
