/* Kernels of the fork server: as confined as any process of their sandbox, soon there, and true to its files. */
#include "tests/workers/sandbox/sandbox_fixture.h"

#include <signal.h>
#include <time.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "workers/tools/ipython/ipython.h"
#include "workers/tools/ipython/kernel.h"

enum { CELL_MS = 20000, OUTPUT_MAX = 65536 };

static struct sandbox *open_room(bool kernels)
{
    struct sandbox_plan plan = host_plan();
    plan.kernels = kernels;
    return open_sandbox(&plan);
}

static struct kernel *start(struct sandbox *sandbox)
{
    struct kernel *kernel = calloc(1, sizeof(*kernel));
    struct fail fail = {0};
    kernel_init(kernel, sandbox);
    if (kernel_start(kernel, &fail) < 0)
        fail_msg("kernel_start: %s", fail.text);
    return kernel;
}

static void stop(struct kernel **kernel)
{
    kernel_finish(*kernel);
    free(take_ptr(kernel));
}

/* What a cell writes. */
static char *run(struct kernel *kernel, const char *code)
{
    struct output output;
    struct fail fail = {0};
    json_t *reply, *cell = json_pack("{s:i, s:s}", "id", 1, "code", code);
    int status;
    size_t len;
    assert_true(driver_send(&kernel->driver, cell));
    json_decref(cell);
    int news = driver_await(&kernel->driver, clock_ms() + CELL_MS, &reply, &status, &fail);
    if (news != DRIVER_SAID)
        fail_msg("%s: %d", code, news);
    json_decref(reply);
    output_init(&output, OUTPUT_MAX);
    driver_collect(&kernel->driver, &output);
    return output_take(&output, &len);
}

static void says(struct kernel *kernel, const char *code, const char *expected)
{
    char *text = run(kernel, code);
    if (strcmp(text, expected) != 0)
        fail_msg("%s: %s", code, text);
    free(text);
}

/* ---- the same Python ------------------------------------------------------------------------ */

/* It asks __main__ for what a Python that is typed at has there. */
FIBER_TEST(processes_of_multiprocessing_start_however_they_are_started)
{
    for (int is_forked = 0; is_forked < 2; is_forked++) {
        struct sandbox *sandbox = open_room(is_forked);
        struct kernel *kernel = start(sandbox);
        assert_int_equal(kernel->is_forked, is_forked);
        says(kernel, "%reset -f", "");
        says(kernel,
             "import multiprocessing as m\n"
             "for way in ('fork', 'spawn', 'forkserver'):\n"
             "    with m.get_context(way).Pool(2) as pool: print(way, pool.map(abs, [-1, -2]))",
             "fork [1, 2]\nspawn [1, 2]\nforkserver [1, 2]\n");
        says(kernel, "print(__spec__, __package__, '__loader__' in globals(), '__doc__' in globals())",
             "None None True True\n");
        stop(&kernel);
        sandbox_close(&sandbox);
    }
}

/* ---- the same walls ------------------------------------------------------------------------- */

/* A picture of a process: what the kernel lets it do, where it is, what it holds. */
static const char portrait[] =
    "import os, resource, signal\n"
    "status = open('/proc/self/status').read().split('\\n')\n"
    "kinds = ('Uid', 'Gid', 'Groups', 'Cap', 'NoNewPrivs', 'Seccomp:', 'Cpus_allowed:', 'NSpid', "
    "'Sig', 'Shd', 'Umask')\n"
    "print([line for line in status if line.startswith(kinds) and not line.startswith('NSpid')])\n"
    "print([os.readlink('/proc/self/ns/' + n) for n in sorted(os.listdir('/proc/self/ns'))])\n"
    "print([resource.getrlimit(n) for n in range(16)])\n"
    "print(os.getcwd(), os.getppid(), os.getsid(0) == os.getpid(), sorted(os.environ.items()))\n"
    "print(open('/proc/self/oom_score_adj').read(), open('/proc/self/mountinfo').read())\n"
    "print(sorted(n for n in os.listdir('/proc/self/fd') if os.path.exists('/proc/self/fd/' + "
    "n)))\n"
    "print(os.stat('/').st_ino, os.stat('/').st_dev, os.readlink('/proc/self/root'))\n";

static void expect_same_lines(char *a, char *b)
{
    char *rest_a, *rest_b;
    char *line_a = strtok_r(a, "\n", &rest_a), *line_b = strtok_r(b, "\n", &rest_b);
    while (line_a && line_b) {
        if (strcmp(line_a, line_b) != 0)
            fail_msg("%.400s, not %.400s", line_a, line_b);
        line_a = strtok_r(NULL, "\n", &rest_a);
        line_b = strtok_r(NULL, "\n", &rest_b);
    }
    assert_true(!line_a && !line_b);
}

FIBER_TEST(a_forked_kernel_is_confined_as_any_process_of_the_sandbox)
{
    struct sandbox *sandbox = open_room(true);
    struct kernel *kernel = start(sandbox);
    assert_true(kernel->is_forked);
    char *forked = run(kernel, portrait);
    stop(&kernel);
    assert_null(strstr(forked, "Error"));
    assert_non_null(strstr(forked, "'CapEff:\\t0000000000000000', 'CapBnd:\\t0000000000000000'"));
    assert_non_null(strstr(forked, "'NoNewPrivs:\\t1', 'Seccomp:\\t2'"));
    assert_non_null(strstr(forked, "'Uid:\\t1000\\t1000\\t1000\\t1000'"));
    kernel = calloc(1, sizeof(*kernel));
    kernel_init(kernel, sandbox);
    struct fail fail = {0};
    assert_int_equal(kernel_start_here(kernel, &fail), 0);
    assert_false(kernel->is_forked);
    char *started = run(kernel, portrait);
    expect_same_lines(forked, started);
    free(forked);
    free(started);
    stop(&kernel);
    sandbox_close(&sandbox);
}

FIBER_TEST(a_forked_kernel_has_the_variables_of_the_sandboxs_grants)
{
    static const struct listener listeners[] = {{.name = "my-db"}, {.name = "web", .is_tcp = true, .port = 8080}};
    static const char variables[] = "import os\nprint(sorted(i for i in os.environ.items() if 'GRANT' in i[0]))\n";
    struct sandbox_plan plan = host_plan();
    plan.kernels = true;
    plan.listeners = listeners;
    plan.listener_count = 2;
    struct sandbox *sandbox = open_sandbox(&plan), *other = open_room(true);
    for (size_t i = 0; i < 2; i++)
        close(sandbox_take_listener(sandbox, i));
    struct kernel *kernel = start(sandbox);
    assert_true(kernel->is_forked);
    says(kernel, variables,
         "[('SLUICE_GRANT_MY_DB', '/run/sluice/grant/my-db'), "
         "('SLUICE_GRANT_WEB', '127.0.0.1:8080')]\n");
    says(kernel, "!echo $SLUICE_GRANT_WEB", "127.0.0.1:8080\n"); /* and so do its children */
    stop(&kernel);
    kernel = start(other); /* of the same server: nothing of the first stayed there */
    assert_true(kernel->is_forked);
    says(kernel, variables, "[]\n");
    stop(&kernel);
    sandbox_close(&sandbox);
    sandbox_close(&other);
}

FIBER_TEST(a_forked_kernel_can_do_no_more_than_the_sandbox)
{
    struct sandbox *sandbox = open_room(true);
    struct kernel *kernel = start(sandbox);
    assert_true(kernel->is_forked);
    says(kernel,
         "import ctypes, os, socket\n"
         "libc = ctypes.CDLL(None, use_errno=True)\n"
         "def tries(name, *args):\n"
         "    return getattr(libc, name)(*args), ctypes.get_errno()\n"
         "print(tries('unshare', 0x10000000), tries('setns', 0, 0), tries('mount', b'x', b'/mnt', "
         "b'tmpfs', 0, 0))\n"
         "print(tries('chroot', b'/'), tries('sched_setaffinity', 0, 8, b'\\1' * 8))\n"
         "for name in ('/proc/1/root', '/proc/1/environ', '/proc/1/cwd/'):\n"
         "    try: os.listdir(name) if name != '/proc/1/environ' else open(name).read()\n"
         "    except OSError as error: print(error.errno)\n"
         "print(sorted(int(n) for n in os.listdir('/proc') if n.isdigit()) == [1, os.getpid()])\n"
         "print(os.path.exists('/run/sluice/ipython_zygote.py'), "
         "os.listdir('/proc/sys/net/ipv4/conf'))",
         "(-1, 1) (-1, 1) (-1, 1)\n(-1, 1) (-1, 1)\n13\n13\n13\nTrue\nFalse ['all', 'default', "
         "'lo']\n");
    stop(&kernel);
    sandbox_close(&sandbox);
}

static void is_killed_for(const char *code, const char *limit)
{
    struct sandbox_plan plan = host_plan();
    struct fail fail = {0};
    int status;
    plan.kernels = true;
    plan.memory_mib = 200;
    plan.processes = 20;
    struct sandbox *sandbox = open_sandbox(&plan);
    struct kernel *kernel = start(sandbox);
    json_t *reply, *cell = json_pack("{s:i, s:s}", "id", 1, "code", code);
    assert_true(kernel->is_forked);
    assert_true(driver_send(&kernel->driver, cell));
    json_decref(cell);
    int news = driver_await(&kernel->driver, clock_ms() + CELL_MS, &reply, &status, &fail);
    if (limit) {
        assert_true(news < 0);
        assert_string_equal(sandbox_breach(sandbox), limit);
    } else {
        assert_int_equal(news, DRIVER_SAID);
        json_decref(reply);
        says(kernel, "1", "11 19\nOut[2]: 1\n");
    }
    stop(&kernel);
    sandbox_close(&sandbox);
}

FIBER_TEST(a_forked_kernel_counts_in_the_limits_of_its_sandbox)
{
    static const char forks[] =
        "import os, time\npids = []\n"
        "try:\n    while True:\n        pid = os.fork()\n        if pid == 0: time.sleep(1000)\n"
        "        pids.append(pid)\n"
        "except OSError as error: print(error.errno, len(pids))\n"
        "for pid in pids:\n    os.kill(pid, 9)\n    os.waitpid(pid, 0)\n";
    is_killed_for("x = b'x' * (400 << 20)\nwhile True: pass", "memory");
    is_killed_for(forks, geteuid() == 0 ? "processes" : NULL); /* root is above RLIMIT_NPROC */
}

FIBER_TEST(the_end_of_a_forked_kernel_is_told)
{
    struct sandbox *sandbox = open_room(true);
    struct kernel *kernel = start(sandbox);
    struct fail fail = {0};
    int status = 0;
    json_t *reply, *cell = json_pack("{s:i, s:s}", "id", 1, "code", "import os; os._exit(7)");
    assert_true(kernel->is_forked);
    assert_true(driver_send(&kernel->driver, cell));
    json_decref(cell);
    assert_int_equal(driver_await(&kernel->driver, clock_ms() + CELL_MS, &reply, &status, &fail), DRIVER_ENDED);
    assert_int_equal(status, 7);
    stop(&kernel);
    sandbox_close(&sandbox);
}

/* ---- the files of the sandbox ------------------------------------------------------------------ */

FIBER_TEST(what_is_installed_into_the_sandbox_is_seen)
{
    struct sandbox *sandbox = open_room(true);
    expect_status(sandbox, "d=$(python3 -m site --user-site); mkdir -p $d; echo 'x = 5' > $d/newly.py", 0);
    struct kernel *kernel = start(sandbox);
    assert_true(kernel->is_forked);
    says(kernel, "import newly; newly.x", "Out[1]: 5\n");
    stop(&kernel);
    sandbox_close(&sandbox);
}

FIBER_TEST(a_sandbox_whose_python_starts_differently_starts_its_own)
{
    struct sandbox *sandbox = open_room(true);
    expect_status(sandbox,
                  "d=$(python3 -m site --user-site); mkdir -p $d; "
                  "echo 'import builtins; builtins.started = 5' > $d/own.pth",
                  0);
    struct kernel *kernel = start(sandbox);
    assert_false(kernel->is_forked);
    says(kernel, "started", "Out[1]: 5\n");
    stop(&kernel);
    sandbox_close(&sandbox);
}

/* Puts a package into the user's own directory, which comes before the image's packages. */
static struct kernel *start_with(struct sandbox *sandbox, const char *package)
{
    char command[256];
    snprintf(command, sizeof(command),
             "d=$(python3 -m site --user-site)/%s; mkdir -p $d; echo 'mine = 5' > $d/__init__.py", package);
    expect_status(sandbox, command, 0);
    return start(sandbox);
}

FIBER_TEST(a_package_that_comes_before_the_images_own_is_obeyed)
{
    struct sandbox *sandbox = open_room(true);
    struct kernel *kernel = start_with(sandbox, "decorator");
    assert_false(kernel->is_forked); /* the server has imported the image's */
    says(kernel, "import decorator; decorator.mine", "Out[1]: 5\n");
    stop(&kernel);
    sandbox_close(&sandbox);
}

FIBER_TEST(a_package_that_no_python_would_find_is_no_reason_to_start_anew)
{
    struct sandbox *sandbox = open_room(true);
    struct kernel *kernel = start_with(sandbox, "json");
    assert_true(kernel->is_forked);
    says(kernel, "import json; hasattr(json, 'mine')", "Out[1]: False\n");
    stop(&kernel);
    sandbox_close(&sandbox);
}

FIBER_TEST(a_layer_as_such_is_no_reason_to_start_anew)
{
    char layer[256], path[600];
    struct sandbox_plan plan = host_plan();
    const char *layers[] = {layer};
    make_dir(layer, sizeof(layer), "layer");
    snprintf(path, sizeof(path), "%s/workspace", layer);
    assert_int_equal(mkdir(path, 0755), 0);
    plan.layers = layers;
    plan.layer_count = 1;
    plan.kernels = true;
    struct sandbox *sandbox = open_sandbox(&plan);
    struct kernel *kernel = start(sandbox);
    assert_true(kernel->is_forked);
    stop(&kernel);
    sandbox_close(&sandbox);
}

FIBER_TEST(kernels_do_not_share_what_is_random)
{
    struct sandbox *sandbox = open_room(true);
    struct kernel *a = start(sandbox), *b = start(sandbox);
    char *first = run(a, "import random; print(random.random())");
    char *second = run(b, "import random; print(random.random())");
    assert_string_not_equal(first, second);
    free(first);
    free(second);
    stop(&a);
    stop(&b);
    sandbox_close(&sandbox);
}

/* ---- the fork server --------------------------------------------------------------------------- */

FIBER_TEST(the_fork_server_serves_many_sandboxes_of_an_image)
{
    struct sandbox *sandboxes[8];
    struct kernel *kernels[8];
    for (int i = 0; i < 8; i++) {
        sandboxes[i] = open_room(true);
        kernels[i] = start(sandboxes[i]);
        assert_true(kernels[i]->is_forked);
    }
    for (int i = 0; i < 8; i++)
        says(kernels[i], "import os; len([n for n in os.listdir('/proc') if n.isdigit()])", "Out[1]: 2\n");
    for (int i = 0; i < 8; i++) {
        stop(&kernels[i]);
        sandbox_close(&sandboxes[i]);
    }
}

FIBER_TEST(a_sandbox_that_was_not_made_for_kernels_starts_its_own)
{
    struct sandbox *sandbox = open_room(false);
    struct kernel *kernel = start(sandbox);
    assert_false(kernel->is_forked);
    says(kernel, "1 + 1", "Out[1]: 2\n");
    stop(&kernel);
    sandbox_close(&sandbox);
}

static pid_t find_fork_server(void)
{
    pid_t zygote = find_child(find_child(getpid(), "sluice-spawner"), "sluice-zygote");
    return find_child(zygote, "python3");
}

FIBER_TEST(without_its_fork_server_a_sandbox_starts_its_own)
{
    struct sandbox *sandbox = open_room(true);
    struct kernel *kernel = start(sandbox);
    assert_true(kernel->is_forked);
    stop(&kernel);
    assert_int_equal(kill(find_fork_server(), SIGKILL), 0);
    for (int i = 0; i < 2; i++) {
        kernel = start(sandbox);
        assert_false(kernel->is_forked);
        says(kernel, "1 + 1", "Out[1]: 2\n");
        stop(&kernel);
    }
    sandbox_close(&sandbox);
}

/* Nor can all that run in a kernel's sandbox end it: the next kernel is forked by the same one. */
FIBER_TEST(the_fork_server_is_out_of_reach_of_the_kernels_it_forks)
{
    char code[1024];
    struct sandbox *sandbox = open_room(true), *other = open_room(true);
    struct kernel *kernel = start(sandbox);
    const pid_t server = find_fork_server(),
                zygote = find_child(find_child(getpid(), "sluice-spawner"), "sluice-zygote");
    assert_true(kernel->is_forked);
    snprintf(code, sizeof(code),
             "import ctypes, errno, os\n"
             "libc = ctypes.CDLL(None, use_errno=True)\n"
             "def name(number): return errno.errorcode.get(number)\n"
             "for pid in (%d, %d):\n"
             "    for attempt in (lambda: os.kill(pid, 9), lambda: os.pidfd_open(pid), lambda: "
             "os.listdir('/proc/%%d' %% pid)):\n"
             "        try: print('done', attempt())\n"
             "        except OSError as error: print(name(error.errno), end=' ')\n"
             "    print(libc.ptrace(0x4206, pid, 0, 0), name(ctypes.get_errno()))\n"
             "try: os.kill(-1, 9)\n"
             "except ProcessLookupError: print('nobody', os.getppid())",
             server, zygote);
    says(kernel, code, "ESRCH ESRCH ENOENT -1 ESRCH\nESRCH ESRCH ENOENT -1 ESRCH\nnobody 1\n");
    struct kernel *next = start(other);
    assert_true(next->is_forked);
    assert_int_equal(find_fork_server(), server);
    stop(&kernel);
    stop(&next);
    sandbox_close(&sandbox);
    sandbox_close(&other);
}

static int group(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(processes_of_multiprocessing_start_however_they_are_started),
        TEST(a_forked_kernel_is_confined_as_any_process_of_the_sandbox),
        TEST(a_forked_kernel_has_the_variables_of_the_sandboxs_grants),
        TEST(a_forked_kernel_can_do_no_more_than_the_sandbox),
        TEST(a_forked_kernel_counts_in_the_limits_of_its_sandbox),
        TEST(the_end_of_a_forked_kernel_is_told),
        TEST(what_is_installed_into_the_sandbox_is_seen),
        TEST(a_sandbox_whose_python_starts_differently_starts_its_own),
        TEST(a_package_that_comes_before_the_images_own_is_obeyed),
        TEST(a_package_that_no_python_would_find_is_no_reason_to_start_anew),
        TEST(a_layer_as_such_is_no_reason_to_start_anew),
        TEST(kernels_do_not_share_what_is_random),
        TEST(the_fork_server_serves_many_sandboxes_of_an_image),
        TEST(a_sandbox_that_was_not_made_for_kernels_starts_its_own),
        TEST(the_fork_server_is_out_of_reach_of_the_kernels_it_forks),
        TEST(without_its_fork_server_a_sandbox_starts_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    if (system("/usr/bin/python3 -c 'import IPython' 2>/dev/null") != 0) {
        puts("skipped: /usr/bin/python3 has no IPython (package python3-ipython)");
        return 77;
    }
    return run_as_everyone(group);
}
