/* What a tool holds of its sandbox - descriptors, sockets, terminals, files - is that sandbox's and
 * the worker's: neither another sandbox nor another user of the node reaches it. */
#include "tests/workers/tools/tool_world.h"
#include "workers/tools/toolbox.h"

#include <dirent.h>
#include <sys/socket.h>
#include <sys/un.h>

enum { STRANGER = 1003 };

static struct toolbox open_all(void)
{
    static const char *const names[] = {"bash", "edit", NULL};
    struct sandbox_plan plan = host_plan();
    return open_tools(&plan, names);
}

/* Both have run something of every kind: a shell, a terminal, an edit. */
static void use(struct toolbox *box, const char *secret)
{
    char command[256];
    snprintf(command, sizeof(command), "{'command': 'create', 'path': '/tmp/%s', 'file_text': '%s'}", secret, secret);
    expect_words(box, "edit", command, false, "created");
    snprintf(command, sizeof(command), "{'command': 'secret=%s; sleep 1000 & echo $secret', 'tty': true}", secret);
    expect_words(box, "bash", command, false, secret);
}

FIBER_TEST(another_sandbox_sees_neither_processes_nor_files_nor_terminals_nor_sockets)
{
    struct toolbox one = open_all(), other = open_all();
    use(&one, "first");
    use(&other, "second");
    expect_call(&other, "bash", "{'command': 'ls /tmp /run/sluice/out; echo $secret'}", false,
                "/run/sluice/out:\nbash1.2\n\n/tmp:\nsecond\nsecond\n");
    expect_call(&other, "bash",
                "{'command': 'grep -l first /proc/[0-9]*/environ /proc/[0-9]*/cmdline "
                "2>/dev/null; pgrep -c sleep'}",
                false, "1\n");
    /* the shell's own socket has no name and cannot be opened; commands do not inherit it */
    expect_call(&other, "bash", "{'command': 'cat /proc/net/unix | tail -n +2 | grep -c @; ls /proc/self/fd'}", false,
                "0\n0\n1\n2\n3\n");
    expect_call(&other, "bash",
                "{'command': 'n=0; for f in /proc/$$/fd/*; do if test -S $f; then n=1; "
                "(: <> $f) 2>/dev/null && echo opened; fi; done; echo $n; ls /dev/pts'}",
                false, "1\nptmx\n");
    close_tools(&other);
    close_tools(&one);
}

/* The descriptors of the worker that lead into the sandbox, from the outside. */
static size_t try_all(pid_t worker, size_t *seen)
{
    char path[64], link[4096];
    size_t opened = 0;
    snprintf(path, sizeof(path), "/proc/%d/fd", worker);
    DIR *dir = opendir(path);
    *seen = 0;
    for (int fd = 0; fd < 256; fd++) {
        snprintf(path, sizeof(path), "/proc/%d/fd/%d", worker, fd);
        *seen += readlink(path, link, sizeof(link)) > 0;
        int got = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        opened += got >= 0;
        if (got >= 0)
            close(got);
    }
    if (dir)
        closedir(dir);
    return opened + (dir != NULL);
}

/* Sockets with names, of the file system or abstract, that have to do with where our sandboxes are. */
static size_t named_sockets(void)
{
    size_t count = 0;
    char line[512];
    FILE *file = fopen("/proc/net/unix", "re");
    while (file && fgets(line, sizeof(line), file))
        count += strstr(line, directory) != NULL;
    if (file)
        fclose(file);
    return count;
}

FIBER_TEST(another_user_of_the_node_reaches_nothing_of_it)
{
    if (geteuid() != 0) {
        print_message("skipped: only root can become another user\n");
        return;
    }
    struct toolbox box = open_all();
    use(&box, "secret");
    assert_int_equal(named_sockets(), 0);
    pid_t worker = getpid();
    fflush(NULL);
    pid_t stranger = fork();
    if (stranger == 0) {
        size_t seen;
        if (setgroups(0, NULL) < 0 || setresgid(STRANGER, STRANGER, STRANGER) < 0 ||
            setresuid(STRANGER, STRANGER, STRANGER) < 0)
            _exit(100);
        size_t opened = try_all(worker, &seen);
        char inside[256];
        snprintf(inside, sizeof(inside), "%s/scratch/tmp/secret", directory);
        opened += access(inside, F_OK) == 0;
        _exit(opened + seen > 99 ? 99 : (int)(opened + seen));
    }
    int status = 0;
    waitpid(stranger, &status, 0);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    size_t seen;
    assert_true(try_all(worker, &seen) > 5 && seen > 5); /* it is the user that makes the difference */
    close_tools(&box);
}

FIBER_TEST(a_tools_descriptors_are_gone_with_it)
{
    size_t before, after;
    struct toolbox first = open_all();
    use(&first, "first");
    close_tools(&first);
    await_sleep(0);
    try_all(getpid(), &before);
    for (int i = 0; i < 3; i++) {
        struct toolbox box = open_all();
        use(&box, "again");
        close_tools(&box);
    }
    try_all(getpid(), &after);
    assert_int_equal(after, before);
}

static int group(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(another_sandbox_sees_neither_processes_nor_files_nor_terminals_nor_sockets),
        TEST(another_user_of_the_node_reaches_nothing_of_it),
        TEST(a_tools_descriptors_are_gone_with_it),
    };
    return cmocka_run_group_tests_name("tool_privacy", tests, NULL, NULL);
}

int main(void) { return run_as_everyone(group); }
