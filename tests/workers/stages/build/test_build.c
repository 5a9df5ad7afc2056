/* Dockerfiles in the init stage: what they make, that it is made once, and what ends them. */
#include "tests/workers/stages/build/build_world.h"

#include "common/loop/loop_now.h"

/* ---- what it makes ---------------------------------------------------------------------------------- */

FIBER_TEST(run_copy_env_workdir_and_user_hold_for_set_up_agent_and_evaluator)
{
    host("mkdir -p src/deep && echo data > src/deep/f && echo one > one && chmod 0750 one");
    struct job eval = run_task(task_of(
        "FROM plain\nENV A=built B=$PATH\nRUN echo $A > /made && mkdir /app/x\nWORKDIR /app\nCOPY one .\nCOPY src "
        "src/\nRUN cat src/deep/f one > both\n",
        "pwd; id -u; echo $A $HOME; cat /made both; stat -c %a one; echo agent > own; cat set",
        "{\"setup\":[\"echo $PWD $A $(id -u) > set\"],\"eval\":{\"kind\":\"command\",\"command\":"
        "\"[[ $PWD = /app && $A = built && $(<own) = agent && -e /made && -d x ]]\"}}"));
    expect(&eval, OUTCOME_OK, "");
    assert_true(eval.result.verdict.has_reward && eval.result.verdict.reward == 1.0);
    assert_string_equal(agent_output, "/app\n0\nbuilt /root\nbuilt\ndata\none\n750\n/app built 0\n");
    end_job(&eval);
    expect_built("FROM plain\nRUN echo 'me:x:1001:1002::/home/me:/bin/sh' > /etc/passwd\nUSER me\nWORKDIR /home/me\n"
                 "RUN id -u > who\n",
                 "cat who; id -u; id -g; echo $HOME", "1001\n1001\n1002\n/home/me\n");
}

FIBER_TEST(copies_go_where_docker_puts_them)
{
    host(
        "mkdir -p d/sub e && echo a > d/a && echo b > d/sub/b && ln -s a d/link && echo x > x.txt && echo y > y.txt && "
        "ln -s x.txt named && echo s > 'with space' && chmod 0600 x.txt");
    expect_built(
        "FROM plain\n"
        "COPY d /new\n"             /* contents, into a new directory */
        "COPY x.txt /app\n"         /* one that is there already */
        "COPY x.txt /renamed\n"     /* a new name */
        "COPY x.txt y.txt /many/\n" /* several */
        "COPY *.txt /globbed/\n"    /* patterns */
        "COPY d/*b /deep/\n"        /* a directory by a pattern: its content */
        "COPY named /through\n"     /* a link named itself is followed */
        "COPY [\"with space\", \"/app/\"]\n"
        "COPY --chmod=0711 --chown=me x.txt /moded\n"
        "COPY x.txt /bin/tool\n" /* /bin is a link */
        "WORKDIR /w\nCOPY d/a ./\n",
        "cat /new/a /new/sub/b /new/link /app/x.txt; cat /renamed /many/y.txt /globbed/x.txt /deep/b /through; "
        "cat '/app/with space' /usr/bin/tool /w/a; readlink /new/link; stat -c %a /moded /renamed; "
        "[[ -L /bin && ! -L /through ]] && echo links",
        "a\nb\na\nx\nx\ny\nx\nb\nx\ns\nx\na\na\n711\n600\nlinks\n");
}

FIBER_TEST(what_a_dockerignore_names_is_not_copied)
{
    host("mkdir -p build keep/build && touch build/o keep/build/o a.log b.log && printf '*.log\\n!b.log\\n/build\\n' > "
         ".dockerignore");
    expect_built("FROM plain\nCOPY . /all/\n", "cd /all && find . -type f | sort",
                 "./.dockerignore\n./b.log\n./keep/build/o\n");
    expect_failed("FROM plain\nCOPY a.log /x\n", "{}",
                  "line 2: a.log is not there, in build.context without what its .dockerignore");
}

#define FILES_TASK(prompt, files)                                                                                      \
    "{\"task\":\"t\",\"prompt\":\"" prompt "\",\"build\":{\"dockerfile\":\"FROM plain\\nCOPY . /all/\\nRUN cat "       \
    "/proc/sys/kernel/random/uuid > /stamp\",\"files\":" files                                                         \
    "},\"eval\":{\"kind\":\"command\",\"command\":\"true\"}}"

static char *printed_with(const char *task)
{
    struct job eval = run_task(task);
    expect(&eval, OUTCOME_OK, "");
    end_job(&eval);
    return strdup(agent_output);
}

FIBER_TEST(a_context_may_come_in_the_task)
{
#define FILES(text)                                                                                                    \
    "[{\"path\":\"a/b\",\"text\":\"" text "\"},{\"path\":\"/c\",\"base64\":\"AP8=\",\"mode\":\"0750\"},"               \
    "{\"path\":\".dockerignore\",\"text\":\"no\"},{\"path\":\"no\",\"text\":\"\"}]"
    AUTO_FREE char *seen = printed_with(FILES_TASK("cd /all; cat a/b; stat -c '%a %s' c a/b; ls -A", FILES("b")));
    AUTO_FREE char *one = printed_with(FILES_TASK("cat /stamp", FILES("b")));
    AUTO_FREE char *two = printed_with(FILES_TASK("cat /stamp", FILES("b")));
    AUTO_FREE char *other = printed_with(FILES_TASK("cat /stamp", FILES("c")));
    assert_string_equal(seen, "b750 2\n644 1\n.dockerignore\na\nc\n");
    assert_string_equal(one, two);
    assert_string_not_equal(one, other);
    expect_init(FILES_TASK("true", "{\"a\":\"1\",\"a/b\":\"2\"}"), OUTCOME_TASK,
                "build.files: cannot write a/b: Not a directory");
    expect_init(
        "{\"task\":\"t\",\"prompt\":\"p\",\"build\":{\"dockerfile\":\"FROM plain\\nCOPY y /\",\"files\":{\"x\":\"\"}}}",
        OUTCOME_TASK, "line 2: y is not there, among build.files without what their .dockerignore names");
}

FIBER_TEST(heredocs_run_and_are_files)
{
    expect_built("FROM plain\nENV N=1\nRUN <<EOF\necho first > /a\necho $N >> /a\nEOF\n"
                 "RUN <<'X'\n#!/bin/bash\necho $0 > /b; [[ 1 = 1 ]] && echo bash >> /b\nX\n"
                 "RUN cat - > /c <<EOF\nfed\nEOF\nCOPY <<EOF /d\nn is $N\nEOF\n",
                 "cat /a; grep bash /b; cat /c /d; ls -a /tmp | wc -l", "first\n1\nbash\nfed\nn is 1\n2\n");
}

FIBER_TEST(stages_give_each_other_files_and_only_those_needed_are_made)
{
    expect_built(
        "FROM plain AS made\nRUN mkdir /out && echo made > /out/f && ln -s f /out/l\n"
        "FROM plain AS never\nRUN exit 1\n"
        "FROM made AS more\nENV M=1\nRUN echo more >> /out/f\n"
        "FROM plain\nCOPY --from=more /out /taken\nCOPY --from=0 /out/f /first\nCOPY --from=plain /usr/bin/cat "
        "/mycat\n",
        "cat /taken/f /first; readlink /taken/l; /mycat /first; echo \"${M:-none}\"; [[ -e /out ]] || echo gone",
        "made\nmore\nmade\nf\nmade\nnone\ngone\n");
    expect_built("FROM plain AS p\nFROM scratch\nCOPY --from=p / /\nRUN echo x > /x\n", "cat /x", "x\n");
}

FIBER_TEST(arguments_come_from_the_task)
{
    struct job eval = run_task(task_of(
        "ARG BASE=nothing\nFROM $BASE AS one\nARG V=1\nRUN echo $V > /v\nFROM one AS two\nRUN exit 1\n", "cat /v",
        "{\"build\":{\"args\":{\"BASE\":\"plain\",\"V\":\"2\"},\"target\":\"one\"},\"eval\":{\"kind\":\"command\","
        "\"command\":\"true\"}}"));
    expect(&eval, OUTCOME_OK, "");
    assert_string_equal(agent_output, "2\n");
    end_job(&eval);
}

FIBER_TEST(add_unpacks_tars_and_copies_the_rest)
{
    host("mkdir t && echo in > t/in && tar -czf packed.tgz -C t . && tar -cf plain -C t . && echo text > text.tar");
    expect_built("FROM plain\nADD packed.tgz /x/\nADD plain /y\nADD text.tar /z/\nCOPY packed.tgz /c/\n",
                 "cat /x/in /y/in /z/text.tar; ls /c", "in\nin\ntext\npacked.tgz\n");
}

FIBER_TEST(uid_zero_changes_owners_and_adds_to_etc)
{
    expect_built(
        "FROM plain\nRUN chown 33:33 /root && mknod /dev/null0 c 1 3; touch /etc/x && chmod 4755 /etc/x && mkfifo /f\n",
        "id -u; stat -c %u /root /etc/x", "0\n0\n0\n");
}

/* ---- once ---------------------------------------------------------------------------------------------- */

#define STAMP "FROM plain\nENV E=1\nRUN cat /proc/sys/kernel/random/uuid > /stamp\n"

static char *stamp_of(const char *dockerfile)
{
    struct job eval = run_task(
        task_of(dockerfile, "cat /stamp", "{\"eval\":{\"kind\":\"command\",\"command\":\"true\"}}"));
    expect(&eval, OUTCOME_OK, "");
    assert_int_equal(strlen(agent_output), 37);
    end_job(&eval);
    return strdup(agent_output);
}

FIBER_TEST(two_tasks_that_begin_alike_share_what_they_begin_with)
{
    host("echo 1 > f");
    AUTO_FREE char *one = stamp_of(STAMP "COPY f /f\nRUN echo a > /a\n");
    AUTO_FREE char *two = stamp_of("# another\n" STAMP "COPY f /f\nRUN echo b > /a\n");
    AUTO_FREE char *other = stamp_of("FROM plain\nENV E=2\nRUN cat /proc/sys/kernel/random/uuid > /stamp\n");
    assert_string_equal(one, two);
    assert_string_not_equal(one, other);
}

FIBER_TEST(what_is_copied_counts_by_content_and_mode_not_by_time)
{
    static const char copied[] = "FROM plain\nCOPY f /f\nRUN cat /proc/sys/kernel/random/uuid > /stamp\n";
    host("echo 1 > f && chmod 0644 f");
    AUTO_FREE char *one = stamp_of(copied);
    host("rm f && echo 1 > f && chmod 0644 f && touch -d @5 f");
    AUTO_FREE char *same = stamp_of(copied);
    host("chmod 0755 f");
    AUTO_FREE char *mode = stamp_of(copied);
    host("echo 2 > f");
    AUTO_FREE char *content = stamp_of(copied);
    assert_string_equal(one, same);
    assert_string_not_equal(one, mode);
    assert_string_not_equal(mode, content);
}

FIBER_TEST(an_argument_is_not_a_variable)
{
    expect_built("FROM plain\nRUN [\"/bin/sh\", \"-c\", \"echo ${A:-none} > /f\", \"A=1\"]\n", "cat /f", "none\n");
    expect_built("FROM plain\nENV A=1\nRUN [\"/bin/sh\", \"-c\", \"echo ${A:-none} > /f\"]\n", "cat /f", "1\n");
}

FIBER_TEST(what_is_gone_is_made_again)
{
    char command[256];
    AUTO_FREE char *one = stamp_of(STAMP);
    snprintf(command, sizeof(command), "rm -rf %s/builds", store);
    assert_int_equal(system(command), 0);
    AUTO_FREE char *two = stamp_of(STAMP);
    assert_string_not_equal(one, two);
}

static char *side_stamps[4];
static size_t side_count;
static struct fiber *side_waits;

static void side_init(void *arg)
{
    (void)arg;
    struct job job = run_stage(
        STAGE_INIT, task_of(STAMP "RUN sleep 0.3\n", "true", "{\"setup\":[\"cat /stamp; exit 7\"]}"), NULL, NULL, NULL);
    expect(&job, OUTCOME_TASK, "exited with 7: ");
    side_stamps[side_count++] = strdup(strstr(job.result.detail, "exited with 7: "));
    end_job(&job);
    fiber_wake(side_waits);
}

FIBER_TEST(four_at_once_wait_for_the_one_that_makes_it)
{
    side_count = 0;
    side_waits = fiber_current();
    for (int i = 0; i < 4; i++)
        assert_non_null(fiber_start(loop, side_init, NULL, NULL));
    while (side_count < 4)
        await_wake(-1);
    for (int i = 0; i < 4; i++) {
        assert_string_equal(side_stamps[0], side_stamps[i]);
        if (i > 0)
            free(side_stamps[i]);
    }
    free(side_stamps[0]);
}

/* ---- what ends it ------------------------------------------------------------------------------------------ */

FIBER_TEST(a_run_that_fails_ends_the_task_with_its_line_and_output)
{
    expect_failed("FROM plain\n\nRUN echo well\nRUN echo before && \\\n  echo why >&2 && exit 3\n", "{}",
                  "the Dockerfile, line 4: RUN exited with 3: before\nwhy");
    expect_failed("FROM plain\nRUN [\"/nothing/there\"]\n", "{}", "line 2: RUN exited with 127");
}

FIBER_TEST(of_a_run_that_says_much_the_end_is_told)
{
    expect_failed("FROM plain\nRUN for ((i = 0; i < 30000; i++)); do echo \"line $i of many\"; done; exit 3\n", "{}",
                  "line 29998 of many\nline 29999 of many");
}

FIBER_TEST(a_run_that_never_ends_is_ended)
{
    expect_failed("FROM plain\nRUN sleep 1000\n", "{\"build\":{\"timeout_s\":1}}", "line 2: RUN was stopped after");
}

FIBER_TEST(what_is_not_there_is_named_by_line)
{
    host("touch f");
    expect_failed("FROM plain\nCOPY f nothing /x/\n", "{}", "line 2: nothing is not there");
    expect_failed("FROM plain\nCOPY *.none /x/\n", "{}", "line 2: *.none is not there");
    expect_failed("FROM plain AS a\nFROM plain\nCOPY --from=a /nothing /x\n", "{}", "line 3: /nothing is not there");
    expect_failed("FROM ubuntu:24.04\nRUN true\n", "{}",
                  "line 1: no image is known as ubuntu:24.04: the worker's operator says which, with --image-name "
                  "ubuntu:24.04=PATH");
    expect_failed("FROM plain\nCOPY --from=busybox /x /x\n", "{}", "line 2: no image is known as busybox");
    expect_failed("FROM plain\nRUN true\n", "{\"build\":{\"network\":[\"pip\"]}}", "no network grant \"pip\"");
    expect_failed("FROM plain\nUSER nobody-here\nRUN true\n", "{}", "line 3: there is no user nobody-here");
    expect_failed("FROM plain\nRUN true\nADD http://x/y /z\n", "{}", "the Dockerfile: line 3: ADD of http://x/y");
    expect_failed("FROM plain\nRUN true\n", "{\"build\":{\"context\":\"/nowhere\"}}",
                  "build.context: the source /nowhere is not one");
    expect_failed("FROM plain\nCOPY f /usr/bin/cat/x\n", "{}", "line 2: cannot copy f: ");
}

static bool has_ended;
static int64_t longest_ms;

static void watch_the_loop(void *arg)
{
    (void)arg;
    for (int64_t before_ms = loop_now_ms(), now_ms; !has_ended; before_ms = now_ms) {
        await_sleep(1);
        now_ms = loop_now_ms();
        longest_ms = now_ms - before_ms > longest_ms ? now_ms - before_ms : longest_ms;
    }
    fiber_wake(side_waits);
}

FIBER_TEST(links_in_circles_are_refused_and_the_loop_goes_on_meanwhile)
{
    const int64_t began_ms = loop_now_ms();
    has_ended = false;
    longest_ms = 0;
    side_waits = fiber_current();
    assert_non_null(fiber_start(loop, watch_the_loop, NULL, NULL));
    expect_failed("FROM plain AS s\nRUN mkdir /d && cd /d && for ((i = 0; i < 100; i++)); do ln -s . l$i; done\n"
                  "FROM plain\nCOPY --from=s /d/*/*/*/*/*/zz* /x/\n",
                  "{}", "line 4: /d/*/*/*/*/*/zz*: more than 1000000 names to look at");
    const int64_t took_ms = loop_now_ms() - began_ms;
    has_ended = true;
    await_wake(-1);
    if (longest_ms > took_ms / 3)
        fail_msg("the loop stood for %d of %d ms", (int)longest_ms, (int)took_ms);
}

FIBER_TEST(instructions_that_change_nothing_or_the_same_again_are_layers_as_any)
{
    expect_built("FROM plain\nRUN true\n", "true", "");
    expect_built("FROM plain\nRUN true\nRUN echo x > /x\nRUN : again\n", "cat /x", "x\n");
#define SAME "RUN rm -f /x && echo 1 > /x && touch -d @0 /x /\n"
    expect_built("FROM plain\n" SAME "RUN echo 2 > /x && echo y > /y\n" SAME "RUN rm /y\n",
                 "cat /x; ls /y 2> /dev/null", "1\n");
}

FIBER_TEST(a_disk_that_is_full_is_the_tasks_fault)
{
    expect_failed("FROM plain\nRUN head -c 9000000 /dev/zero > /big\n", "{\"limits\":{\"disk_mib\":4}}",
                  "line 2: RUN exited with 1");
}

FIBER_TEST(the_tasks_image_stands_in_for_from)
{
    char rest[256];
    snprintf(rest, sizeof(rest), "{\"image\":\"%s/base\",\"eval\":{\"kind\":\"command\",\"command\":\"true\"}}",
             directory);
    struct job eval = run_task(task_of("FROM nobody/knows:1\nRUN echo x > /x\n", "cat /x", rest));
    expect(&eval, OUTCOME_OK, "");
    assert_string_equal(agent_output, "x\n");
    end_job(&eval);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_build, tear_down_build)

static int group(void)
{
    const struct CMUnitTest tests[] = {
        TEST(run_copy_env_workdir_and_user_hold_for_set_up_agent_and_evaluator),
        TEST(copies_go_where_docker_puts_them),
        TEST(what_a_dockerignore_names_is_not_copied),
        TEST(a_context_may_come_in_the_task),
        TEST(heredocs_run_and_are_files),
        TEST(stages_give_each_other_files_and_only_those_needed_are_made),
        TEST(arguments_come_from_the_task),
        TEST(add_unpacks_tars_and_copies_the_rest),
        TEST(uid_zero_changes_owners_and_adds_to_etc),
        TEST(two_tasks_that_begin_alike_share_what_they_begin_with),
        TEST(what_is_copied_counts_by_content_and_mode_not_by_time),
        TEST(an_argument_is_not_a_variable),
        TEST(what_is_gone_is_made_again),
        TEST(four_at_once_wait_for_the_one_that_makes_it),
        TEST(a_run_that_fails_ends_the_task_with_its_line_and_output),
        TEST(of_a_run_that_says_much_the_end_is_told),
        TEST(a_run_that_never_ends_is_ended),
        TEST(what_is_not_there_is_named_by_line),
        TEST(links_in_circles_are_refused_and_the_loop_goes_on_meanwhile),
        TEST(instructions_that_change_nothing_or_the_same_again_are_layers_as_any),
        TEST(a_disk_that_is_full_is_the_tasks_fault),
        TEST(the_tasks_image_stands_in_for_from),
    };
    return cmocka_run_group_tests_name("builds", tests, NULL, NULL);
}

int main(void) { return run_as_everyone(group); }
