/* Links, pipes, names and numbers that those inside put where the worker, a tool or a later stage looks. */
#include "tests/workers/tools/tool_world.h"

#include "common/base/clock.h"
#include "tests/workers/attacks/attack_world.h"
#include "workers/sandbox/requests.h"
#include "workers/tools/toolbox.h"

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))
#define WORDS_MAX 512

static struct toolbox open_edit_and_bash(const struct sandbox_plan *plan)
{
    static const char *const names[] = {"edit", "bash", NULL};
    return open_tools(plan, names);
}

/* ---- in place of the directories that every sandbox has ------------------------------------ */

struct trick {
    const char *name, *target; /* a symlink, in a layer or an image */
};

static const struct trick tricks[] = {
    {"workspace", "/proc/self/root"},
    {"workspace", "/run"},
    {"workspace", "/run/sluice/out"},
    {"workspace", "/etc"},
    {"workspace", "../../../../.."},
    {"workspace", "workspace"},
    {"workspace", "/dev/shm"},
    {"proc", "/dev"},
    {"proc", "/tmp"},
    {"proc", "/"},
    {"dev", "/proc"},
    {"dev", "/"},
    {"dev", "/run"},
    {"run", "/proc"},
    {"run", "/dev"},
    {"run", "/proc/self/root"},
    {"run", "/tmp"},
    {"run", "/"},
    {"tmp", "/proc/1/root"},
    {"tmp", "/run/sluice"},
    {"tmp", "/"},
};

/* Made as if by a stage before. */
static void make_layer(char *ret, size_t size, const struct trick *trick, size_t number)
{
    char name[32], path[600];
    snprintf(name, sizeof(name), "layer%zu", number);
    make_dir(ret, size, name);
    snprintf(path, sizeof(path), "%s/%s", ret, trick->name);
    assert_int_equal(symlink(trick->target, path), 0);
}

FIBER_TEST(links_in_place_of_directories_keep_no_container_shut_and_lead_nowhere_outside)
{
    write_host_file(directory, "secret", "of the worker", 0644);
    for (size_t i = 0; i < ROWS(tricks); i++) {
        char layer[256], command[WORDS_MAX];
        const char *layers[] = {layer};
        struct fail fail = {0};
        struct sandbox_plan plan = host_plan();
        struct sandbox *sandbox = NULL;
        plan.layers = layers;
        plan.layer_count = 1;
        make_layer(layer, sizeof(layer), &tricks[i], i);
        if (sandbox_open(spawner, &plan, &sandbox, &fail) < 0)
            fail_msg("%s -> %s: %d %s", tricks[i].name, tricks[i].target, fail.code, fail.text);
        snprintf(command, sizeof(command),
                 "test -r /proc/self/status && test -c /dev/null && test -d /run/sluice/out && ! "
                 "test -e %s && "
                 "! touch /run/sluice/x 2>/dev/null && id -u && grep -c CapEff:.0000000000000000 "
                 "/proc/self/status",
                 directory);
        char *text;
        if (run_text(sandbox, command, &text) != 0 || strcmp(text, "1000\n1\n") != 0)
            fail_msg("%s -> %s: %s", tricks[i].name, tricks[i].target, text);
        free(text);
        assert_int_equal(sandbox_kill_all(sandbox, 0, &fail), 0);
        sandbox_close(&sandbox);
    }
}

/* ---- in place of the working directory, by an agent while it runs ---------------------------- */

FIBER_TEST(a_working_directory_that_leads_elsewhere_leads_to_what_the_agent_has_anyway)
{
    static const struct {
        const char *target, *path;
        int code; /* of opening it for the worker; 1: -EINVAL or -EACCES, which with who runs it */
    } rows[] = {
        {"/proc/self/root", "etc/passwd", -ELOOP},
        {"/proc/1/root", "etc/passwd", -ELOOP},
        {"/proc/self/fd", "3", -ELOOP},
        {"/proc/1/fd", "3", -ELOOP},
        {"/proc/1", "mem", 1},
        {"/dev", "null", -EINVAL},
        {"/run/sluice", "none", -ENOENT},
        {"nowhere", "f", -ENOENT},
        {"/workspace", "f", -ELOOP},
    };
    struct sandbox_plan plan = host_plan();
    struct toolbox box = open_edit_and_bash(&plan);
    for (size_t i = 0; i < ROWS(rows); i++) {
        char command[WORDS_MAX];
        struct fail fail = {0};
        snprintf(command, sizeof(command), "cd / && rm -rf /workspace && ln -s %s /workspace", rows[i].target);
        expect_status(box.sandbox, command, 0);
        int fd = sandbox_open_file(box.sandbox, rows[i].path, O_RDONLY | SANDBOX_AS_USER, 0, &fail);
        if (rows[i].code == 1 ? fd != -EINVAL && fd != -EACCES : fd != rows[i].code)
            fail_msg("%s/%s: %d, not %d: %s", rows[i].target, rows[i].path, fd, rows[i].code, fail.text);
    }
    expect_status(box.sandbox, "cd / && rm /workspace && ln -s /run/sluice /workspace", 0);
    expect_words(&box, "edit", "{'command': 'create', 'path': 'x', 'file_text': 'x'}", true, "Read-only file system");
    expect_status(box.sandbox, "cd / && rm /workspace && ln -s /usr/bin /workspace", 0);
    expect_words(&box, "edit", "{'command': 'create', 'path': 'x', 'file_text': 'x'}", true, "Read-only file system");
    expect_words(&box, "bash", "{'command': 'echo fine'}", false, "fine");
    expect_works(box.sandbox);
    close_tools(&box);
}

/* ---- while the worker looks ------------------------------------------------------------------ */

enum { LOOKS = 400, LOOK_MS = 20000 };

/* A name that is by turns a directory, a link out and a pipe: whatever is met, it is met inside. */
FIBER_TEST(a_link_swapped_in_between_leads_no_one_outside)
{
    char command[2 * WORDS_MAX];
    struct sandbox_plan plan = host_plan();
    struct toolbox box = open_edit_and_bash(&plan);
    struct fail fail = {0};
    pid_t pid;
    size_t looks = 0, met = 0, made = 0, refused = 0;
    write_host_file(directory, "secret", "of the worker", 0666);
    snprintf(command, sizeof(command),
             "import os\n"
             "os.makedirs('real', exist_ok=True)\n"
             "open('real/secret', 'w').write('of the agent')\n"
             "os.mkfifo('pipe')\n"
             "def put(make):\n"
             "    make('next')\n"
             "    os.rename('next', 'swap')\n"
             "while True:\n"
             "    put(lambda name: os.symlink('real', name))\n"
             "    put(lambda name: os.symlink('../../../../../../../..%s', name))\n"
             "    put(lambda name: os.symlink('/proc/self/root%s', name))\n"
             "    put(lambda name: os.link('pipe', name))\n",
             directory, directory);
    const char *argv[] = {"/usr/bin/python3", "-c", command, NULL};
    assert_int_equal(sandbox_start(box.sandbox, &(struct sandbox_exec){.argv = argv}, &pid, &fail), 0);
    for (int64_t until_ms = clock_ms() + LOOK_MS; looks < LOOKS || !met || !made || !refused; looks++) {
        char text[32] = "";
        int fd = sandbox_open_file(box.sandbox, "swap/secret", O_RDONLY | SANDBOX_AS_USER, 0, &fail);
        if (fd >= 0) {
            assert_true(read(fd, text, sizeof(text) - 1) >= 0);
            assert_string_equal(text, "of the agent");
            close(fd);
            met++;
        } else {
            assert_true(fd == -ENOENT || fd == -ELOOP || fd == -ENOTDIR);
            refused += met > 0; /* and not because it was not there yet */
        }
        assert_true(clock_ms() < until_ms);
        if (!met)
            continue;
        fd = sandbox_open_file(box.sandbox, "swap/made/by/worker", O_WRONLY | O_CREAT, 0600, &fail);
        if (fd >= 0)
            close(fd);
        made += fd >= 0;
    }
    expect_words(&box, "edit", "{'command': 'view', 'path': '/workspace'}", false, "/workspace/real/secret");
    snprintf(command, sizeof(command), "test \"$(cat %s/secret)\" = 'of the worker' && ! test -e %s/made", directory,
             directory);
    assert_int_equal(system(command), 0);
    expect_works(box.sandbox);
    close_tools(&box);
}

/* ---- names and numbers ------------------------------------------------------------------------- */

FIBER_TEST(a_directory_of_100000_names_is_listed_in_part_and_in_time)
{
    struct sandbox_plan plan = host_plan();
    plan.inodes = 100100;
    struct toolbox box = open_edit_and_bash(&plan);
    give_attack(box.sandbox);
    char *text, error[32];
    long count;
    run_text(box.sandbox, "mkdir many; cd many; /tmp/attack files many", &text);
    assert_int_equal(sscanf(text, "many %ld %31s", &count, error), 2);
    assert_in_range(count, 100000, 100200);
    free(text);
    struct tool_result result = call(&box, "edit", "{'command': 'view', 'path': 'many'}");
    assert_false(result.is_error);
    assert_true(result.len < limits.output_bytes + 100);
    assert_non_null(strstr(result.text, "[there is more, which is not shown]\n"));
    tool_result_finish(&result);
    expect_words(&box, "bash", "{'command': 'ls many | wc -l'}", false, "100");
    expect_status(box.sandbox, "rm -r many", 0);
    expect_works(box.sandbox);
    close_tools(&box);
}

/* One line an entry, whatever its name is. */
FIBER_TEST(a_name_makes_no_second_line_and_steers_nothing)
{
    struct sandbox_plan plan = host_plan();
    struct toolbox box = open_edit_and_bash(&plan);
    expect_status(box.sandbox, "mkdir d; cd d; touch $'a\\nforged' $'b\\e[2J' $'c\\x9b' $'e\\u202e'; mkdir $'f\\n'", 0);
    expect_call(&box, "edit", "{'command': 'view', 'path': 'd'}", false,
                "/workspace/d/a?forged\n/workspace/d/b?[2J\n/workspace/d/c?\n/workspace/d/e?\n/"
                "workspace/d/f?/\n");
    close_tools(&box);
}

/* ---- output -------------------------------------------------------------------------------------- */

/* A tool's output is data: a model is told what there was, and no terminal is there to be steered. */
FIBER_TEST(output_that_would_steer_a_terminal_is_told_as_it_was)
{
    static const char printed[] = "a\\\\033[2J\\\\033]0;t\\\\007\\\\033]52;c;eA=="
                                  "\\\\007\\\\302\\\\233b\\\\342\\\\200\\\\256c",
                      told[] = "a\033[2J\033]0;t\007\033]52;c;eA==\007\302\233b\342\200\256c";
    struct sandbox_plan plan = host_plan();
    struct toolbox box = open_edit_and_bash(&plan);
    for (int tty = 0; tty < 2; tty++) {
        char command[WORDS_MAX];
        snprintf(command, sizeof(command), "{'command': 'printf \\\"%s\\\"'%s}", printed, tty ? ", 'tty': true" : "");
        expect_call(&box, "bash", command, false, told);
    }
    expect_call(&box, "bash", "{'command': 'echo fine', 'tty': true}", false,
                "fine\n"); /* no setting of the terminal stayed */
    close_tools(&box);
}

static int group(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(links_in_place_of_directories_keep_no_container_shut_and_lead_nowhere_outside),
        TEST(a_working_directory_that_leads_elsewhere_leads_to_what_the_agent_has_anyway),
        TEST(a_link_swapped_in_between_leads_no_one_outside),
        TEST(a_directory_of_100000_names_is_listed_in_part_and_in_time),
        TEST(output_that_would_steer_a_terminal_is_told_as_it_was),
        TEST(a_name_makes_no_second_line_and_steers_nothing),
    };
    return cmocka_run_group_tests_name("attacks with files", tests, NULL, NULL);
}

int main(void) { return run_as_everyone(group); }
