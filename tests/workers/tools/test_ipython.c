/* Cells: state kept, output in its true order, rich results, and that nothing a cell does lasts. */
#include "tests/workers/sandbox/sandbox_fixture.h"

#include <signal.h>
#include <time.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "workers/tools/ipython/ipython.h"

enum { CELL_MS = 20000, OUTPUT_MAX = 65536 };

static struct sandbox *sandbox;
static struct ipython *ipython;

static bool by_fork_server;

static struct sandbox *open_room(void)
{
    struct sandbox_plan plan = host_plan();
    plan.kernels = by_fork_server;
    return open_sandbox(&plan);
}

/* ---- a kernel and its cells ------------------------------------------------------------- */

static struct ipython *open_ipython(struct sandbox *in)
{
    struct ipython *made = NULL;
    struct fail fail = {0};
    if (ipython_open(in, &made, &fail) < 0)
        fail_msg("ipython_open: %s", fail.text);
    return made;
}

static struct ipython_result run_for(const char *code, int64_t timeout_ms)
{
    struct ipython_result result;
    struct fail fail = {0};
    if (ipython_run(ipython, code, timeout_ms, OUTPUT_MAX, &result, &fail) < 0)
        fail_msg("%s: %s", code, fail.text);
    return result;
}

static struct ipython_result run(const char *code) { return run_for(code, CELL_MS); }

static void says(const char *code, const char *expected)
{
    struct ipython_result result = run(code);
    if (strcmp(result.text, expected) != 0)
        fail_msg("%s: %s", code, result.text);
    free(result.text);
}

static void says_somewhere(const char *code, const char *words)
{
    struct ipython_result result = run(code);
    if (!strstr(result.text, words))
        fail_msg("%s: %s", code, result.text);
    free(result.text);
}

static void lives_on(void)
{
    struct ipython_result result = run("print('ok')");
    assert_false(result.failed || result.is_new);
    assert_string_equal(result.text, "ok\n");
    free(result.text);
}

/* A test in a sandbox with a kernel: CELL_TEST(name) { ... } */
#define CELL_TEST(name)                                                                                                \
    static void name##_cells(void);                                                                                    \
    FIBER_TEST(name)                                                                                                   \
    {                                                                                                                  \
        sandbox = open_room();                                                                                         \
        ipython = open_ipython(sandbox);                                                                               \
        name##_cells();                                                                                                \
        ipython_close(&ipython);                                                                                       \
        sandbox_close(&sandbox);                                                                                       \
    }                                                                                                                  \
    static void name##_cells(void)

/* ---- what a cell shows -------------------------------------------------------------------- */

CELL_TEST(variables_last_from_cell_to_cell)
{
    says("x = 20", "");
    says("def double(n): return 2 * n", "");
    says("double(x) + 2", "Out[3]: 42\n");
    says("_ + 1", "Out[4]: 43\n");
    says("import os; os.getcwd()", "Out[5]: '/workspace'\n");
    struct ipython_result result = run("x");
    assert_int_equal(result.count, 6);
    assert_false(result.failed);
    free(result.text);
}

CELL_TEST(what_is_written_comes_in_its_true_order)
{
    says("import os, sys, subprocess\n"
         "print('a', end='')\n"
         "os.system('echo b')\n"
         "sys.stderr.write('c\\n')\n"
         "os.write(1, b'd\\n')\n"
         "subprocess.run(['echo', 'e'])\n"
         "print('f')\n"
         "6",
         "ab\nc\nd\ne\nf\nOut[1]: 6\n");
    says("!echo g; echo h >&2", "g\nh\n");
    says("%%bash\necho i\ncd /tmp && pwd", "i\n/tmp\n");
}

CELL_TEST(await_works_at_the_top) { says("import asyncio\nawait asyncio.sleep(0.001, 5)", "Out[1]: 5\n"); }

CELL_TEST(a_traceback_has_the_cell_and_no_colours)
{
    struct ipython_result result = run("def f():\n    return 1 / 0\n\nf()");
    assert_true(result.failed);
    assert_null(strchr(result.text, '\033'));
    assert_non_null(strstr(result.text, "----> 2     return 1 / 0"));
    assert_non_null(strstr(result.text, "ZeroDivisionError: division by zero\n"));
    assert_null(strstr(result.text, "ipython_driver"));
    free(result.text);
    result = run("def g(:");
    assert_true(result.failed);
    assert_non_null(strstr(result.text, "SyntaxError"));
    free(result.text);
}

CELL_TEST(pictures_are_saved_counted_and_named)
{
    struct ipython_result result = run("from IPython.display import Image, HTML, display\n"
                                       "data = b'\\x89PNG\\r\\n\\x1a\\n' + bytes(100)\n"
                                       "display(Image(data=data, format='png'))\n"
                                       "print('between')\n"
                                       "Image(data=data, format='png')");
    assert_string_equal(result.text, "[image/png, 108 bytes: /workspace/.sluice/1.png]\nbetween\n"
                                     "Out[1]: [image/png, 108 bytes: /workspace/.sluice/2.png]\n");
    assert_int_equal(result.images, 2);
    free(result.text);
    says("len(open('/workspace/.sluice/2.png', 'rb').read())", "Out[2]: 108\n");
    says("HTML('<b>bold</b>')", "Out[3]: [text/html, 11 bytes: /workspace/.sluice/3.html]\n");
    says("class Table:\n"
         "    def __repr__(self): return 'a table'\n"
         "    def _repr_html_(self): return '<table>'\n"
         "Table()",
         "Out[4]: a table\n");
}

CELL_TEST(a_form_that_a_cell_gives_to_a_plain_type_is_shown)
{
    says("forms = get_ipython().display_formatter.formatters\n7", "Out[1]: 7\n");
    says("forms['image/svg+xml'].for_type(int, lambda number: '<svg/>')\n7",
         "Out[2]: \n7\n[image/svg+xml, 6 bytes: /workspace/.sluice/1.svg]\n");
    says("'seven'", "Out[3]: 'seven'\n");
    says("own = get_ipython().display_formatter.ipython_display_formatter\n"
         "own.for_type(str, lambda text: print('shown by itself:', text))\n'eight'",
         "Out[4]: shown by itself: eight\n");
}

CELL_TEST(pictures_are_bounded_in_number_and_size)
{
    says_somewhere("from IPython.display import Image, display\n"
                   "for i in range(65): display(Image(data=bytes(10), format='png'))",
                   "64.png]\n[image/png, 10 bytes: not saved, this kernel has saved its 64 files");
    says("len(os.listdir('/workspace/.sluice')) if not (os := __import__('os')) else "
         "len(os.listdir('/workspace/.sluice'))",
         "Out[2]: 64\n");
    struct fail fail = {0};
    assert_int_equal(ipython_restart(ipython, &fail), 0);
    says("from IPython.display import Image\nImage(data=bytes(5 << 20), format='png')",
         "Out[1]: [image/png, 5242880 bytes: not saved, more than 4 MiB]\n");
    says("Image(data=bytes(10), format='png')", "Out[2]: [image/png, 10 bytes: /workspace/.sluice/65.png]\n");
}

CELL_TEST(much_output_keeps_its_head_and_its_tail)
{
    struct ipython_result result = run("print('begin' + 'x' * 10_000_000 + 'end')");
    assert_int_equal(result.total, 10000009);
    assert_true(result.len < OUTPUT_MAX + 100);
    assert_memory_equal(result.text, "begin", 5);
    assert_non_null(strstr(result.text, "bytes left out]"));
    assert_string_equal(result.text + result.len - 4, "end\n");
    free(result.text);
    for (int i = 0; i < 20; i++) { /* more in all than the tmpfs holds: it is given back */
        result = run("print('x' * 10_000_000)");
        assert_int_equal(result.total, 10000001);
        free(result.text);
    }
    lives_on();
}

CELL_TEST(an_output_that_nothing_can_hold_is_an_error_of_the_cell)
{
    struct ipython_result result = run("print('x' * 100_000_000)\nprint('y' * 10)");
    assert_non_null(result.text);
    free(result.text);
    lives_on();
}

CELL_TEST(bytes_that_are_no_text_are_told_apart)
{
    says("import os\nos.write(1, b'a\\0\\xff\\n');", "a??\n");
    says("print('\\x1b]52;c;eA==\\x07\\x9b\\u202e')",
         "\033]52;c;eA==\007\302\233\342\200\256\n"); /* no terminal is there */
}

/* ---- traps -------------------------------------------------------------------------------- */

CELL_TEST(input_fails_at_once)
{
    says_somewhere("input('name? ')", "EOFError: input() has nobody to ask");
    says_somewhere("import sys; sys.stdin.read() == ''", "True");
    lives_on();
}

CELL_TEST(exit_is_caught)
{
    says_somewhere("exit()", "the kernel stays");
    says_somewhere("quit", "the kernel stays");
    says_somewhere("import sys; sys.exit(3)", "SystemExit: 3");
    lives_on();
}

CELL_TEST(what_a_cell_breaks_is_whole_for_the_next)
{
    static const char *const cells[] = {
        "import sys; sys.stdout.close(); sys.stderr.close()",
        "import os; os.close(0); os.close(1); os.close(2)",
        "import os; os.dup2(os.open('/dev/null', os.O_WRONLY), 1);",
        "import sys; sys.stdout = sys.stderr = None",
        "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); "
        "signal.signal(signal.SIGTERM, print);",
        "import signal; signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65));",
        "import os; os.closerange(3, 200)",
        "import os; os.ftruncate(1, 0)",
        "import builtins, json, struct; json.dumps = json.loads = None; builtins.print2 = print",
        "import atexit; atexit.register(print, 'never');",
        "import sys; sys.path.clear(); sys.modules.pop('__main__')",
        "raise BaseException('x')",
        "class A(BaseException):\n    def __str__(self): raise A\nraise A",
        "class B:\n    def __repr__(self): raise ValueError\nB()",
        "def f(): return f()\nf()",
        "x = []; x.append(x); x",
        "import os; os.chdir('/'); os.environ.clear()",
        "import gc, sys; sys.setrecursionlimit(50)",
    };
    for (size_t i = 0; i < sizeof(cells) / sizeof(*cells); i++) {
        struct ipython_result result = run(cells[i]);
        if (result.is_new)
            fail_msg("%s: %s", cells[i], result.text);
        free(result.text);
        lives_on();
    }
}

CELL_TEST(a_huge_repr_is_cut)
{
    struct ipython_result result = run("'x' * 30_000_000");
    assert_true(result.total < 2 << 20);
    assert_non_null(strstr(result.text, "left out]"));
    free(result.text);
    lives_on();
}

CELL_TEST(a_repr_that_loops_is_interrupted)
{
    struct ipython_result result = run_for("class L:\n    def __repr__(self):\n        while True: pass\nL()", 200);
    assert_true(result.timed_out);
    assert_false(result.is_new);
    free(result.text);
    lives_on();
}

CELL_TEST(a_thread_that_prints_later_is_shown_with_a_later_cell)
{
    says("import threading\n"
         "go, done = threading.Event(), threading.Event()\n"
         "def late():\n    go.wait(); print('late'); done.set()\n"
         "threading.Thread(target=late).start()",
         "");
    says("go.set(); done.wait()", "late\nOut[2]: True\n");
}

CELL_TEST(a_forked_child_has_no_channel_and_ends_with_its_cell)
{
    says("import os\npid = os.fork()\nif pid == 0:\n    print('child')\nelse:\n    os.waitpid(pid, "
         "0)\n",
         "child\n");
    says("import os\nif os.fork() == 0: pass\nelse: os.wait()", "");
    lives_on();
}

CELL_TEST(a_cell_cannot_break_the_channel_by_accident)
{
    says("import socket, os\n"
         "names = {n: os.readlink('/proc/self/fd/' + n) for n in os.listdir('/proc/self/fd') "
         "if os.path.islink('/proc/self/fd/' + n)}\n"
         "[n for n in names if int(n) < 200 and 'socket' in names[n]]",
         "Out[1]: []\n");
    says("!ls /proc/self/fd | wc -l", "4\n"); /* 0, 1, 2 and what ls lists */
}

/* ---- timeouts and deaths ------------------------------------------------------------------ */

CELL_TEST(a_cell_past_its_time_is_interrupted_and_keeps_its_variables)
{
    static const char *const cells[] = {
        "x += 1\nwhile True: pass",
        "x += 1\nimport time; time.sleep(1000)",
        "x += 1\nimport subprocess; subprocess.run(['sleep', '1000'])",
        "x += 1\nimport os; os.system('sleep 1000; sleep 1000')",
        "x += 1\nimport asyncio; await asyncio.sleep(1000)",
    };
    says("x = 0", "");
    for (size_t i = 0; i < sizeof(cells) / sizeof(*cells); i++) {
        struct ipython_result result = run_for(cells[i], 200);
        if (!result.timed_out || result.is_new ||
            !strstr(result.text, "[interrupted after 0.2 seconds; variables are kept]"))
            fail_msg("%s: %s", cells[i], result.text);
        assert_true(result.seconds < 2);
        free(result.text);
    }
    says("print(x, await asyncio.sleep(0.001, 'again'))", "5 again\n");
    expect_text(sandbox, "grep -ls sleep /proc/[0-9]*/comm", "");
}

CELL_TEST(a_cell_that_ignores_the_interrupt_is_killed_with_its_children)
{
    static const char *const cells[] = {
        "sum(range(10**12))",
        "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass",
        "def stay():\n    while True: pass\nwhile True:\n    try: stay()\n    except "
        "BaseException: pass",
    };
    says("import subprocess; child = subprocess.Popen(['sleep', '1000'], start_new_session=True)", "");
    for (size_t i = 0; i < sizeof(cells) / sizeof(*cells); i++) {
        struct ipython_result result = run_for(cells[i], 200);
        if (!result.timed_out || !result.is_new ||
            !strstr(result.text, "did not stop when interrupted and was killed; a new one runs, "
                                 "and all variables are gone]"))
            fail_msg("%s: %s", cells[i], result.text);
        free(result.text);
        lives_on();
    }
    expect_text(sandbox, "grep -ls sleep /proc/[0-9]*/comm", "");
}

CELL_TEST(a_kernel_that_dies_is_replaced_and_the_text_says_so)
{
    static const struct {
        const char *cell, *words;
    } cases[] = {
        {"import os; print('last words'); os._exit(3)", "last words\n[the kernel ended with status 3; a new one runs"},
        {"import os; os.kill(os.getpid(), 9)", "[the kernel was killed by signal 9; a new one runs"},
        {"import ctypes; ctypes.string_at(0)", "[the kernel was killed by signal 11; a new one runs"},
        {"import os; os.closerange(3, 4096)", "[the kernel ended with status"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        says("x = 1", "");
        struct ipython_result result = run(cases[i].cell);
        if (!result.failed || !result.is_new || !strstr(result.text, cases[i].words))
            fail_msg("%s: %s", cases[i].cell, result.text);
        free(result.text);
        says_somewhere("x", "NameError");
        assert_int_equal(ipython_restart(ipython, &(struct fail){0}), 0);
    }
}

CELL_TEST(a_kernel_killed_between_cells_is_replaced_before_the_next)
{
    says("x = 1", "");
    expect_status(sandbox, "true", 0); /* which kills all other processes at its end */
    struct ipython_result result = run("print('x' in globals())");
    assert_string_equal(result.text, "[the kernel had ended; a new one runs, and all variables are gone]\nFalse\n");
    assert_true(result.is_new);
    free(result.text);
}

CELL_TEST(what_a_hostile_cell_says_on_the_channel_harms_nobody_else)
{
    static const char *const cells[] = {
        "import os; os.write(220, b'\\xff\\xff\\xff\\xff')\nwhile True: pass",
        "import os; os.write(220, b'\\x05\\x00\\x00\\x00hello')\nwhile True: pass",
        ("import os\nframe = b'{\"id\": 99999, \"status\": \"ok\", \"count\": 1, \"images\": 0}'\n"
         "while True: os.write(220, len(frame).to_bytes(4, 'little') + frame)"),
    };
    for (size_t i = 0; i < sizeof(cells) / sizeof(*cells); i++) {
        struct ipython_result result = run(cells[i]);
        if (!strstr(result.text, "[the kernel said what nobody understands and was killed; a new one"))
            fail_msg("%s: %s", cells[i], result.text);
        free(result.text);
        lives_on();
    }
}

FIBER_TEST(a_restart_gives_a_kernel_without_variables)
{
    struct fail fail = {0};
    sandbox = open_room();
    ipython = open_ipython(sandbox);
    says("x = 1", "");
    assert_int_equal(ipython_restart(ipython, &fail), 0);
    says_somewhere("x", "NameError");
    says("1", "Out[2]: 1\n");
    ipython_close(&ipython);
    sandbox_close(&sandbox);
}

FIBER_TEST(two_sandboxes_have_two_kernels)
{
    struct sandbox *other_sandbox = open_room();
    sandbox = open_room();
    struct ipython *other = open_ipython(other_sandbox);
    ipython = open_ipython(sandbox);
    says("x = 1; open('/workspace/here', 'w').close()", "");
    struct ipython *first = ipython;
    ipython = other;
    says("'x' in globals() or __import__('os').path.exists('/workspace/here')", "Out[1]: False\n");
    ipython_close(&first);
    ipython_close(&other);
    sandbox_close(&sandbox);
    sandbox_close(&other_sandbox);
}

/* ---- images without it ---------------------------------------------------------------------- */

FIBER_TEST(an_image_without_python_is_refused)
{
    char image[256], bin[300];
    struct fail fail = {0};
    make_dir(image, sizeof(image), "image");
    snprintf(bin, sizeof(bin), "%s/bin", image);
    assert_int_equal(mkdir(bin, 0755), 0);
    struct sandbox_plan plan = host_plan();
    plan.image = image;
    sandbox = open_sandbox(&plan);
    assert_int_equal(ipython_open(sandbox, &ipython, &fail), -ENOEXEC);
    assert_string_equal(fail.text, "there is no python3 that can be executed");
    write_host_file(bin, "python3", "not a program", 0755);
    sandbox_close(&sandbox);
    sandbox = open_sandbox(&plan);
    assert_int_equal(ipython_open(sandbox, &ipython, &fail), -ENOEXEC);
    sandbox_close(&sandbox);
}

static int group(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(variables_last_from_cell_to_cell),
        TEST(what_is_written_comes_in_its_true_order),
        TEST(await_works_at_the_top),
        TEST(a_traceback_has_the_cell_and_no_colours),
        TEST(pictures_are_saved_counted_and_named),
        TEST(pictures_are_bounded_in_number_and_size),
        TEST(a_form_that_a_cell_gives_to_a_plain_type_is_shown),
        TEST(much_output_keeps_its_head_and_its_tail),
        TEST(an_output_that_nothing_can_hold_is_an_error_of_the_cell),
        TEST(bytes_that_are_no_text_are_told_apart),
        TEST(input_fails_at_once),
        TEST(exit_is_caught),
        TEST(what_a_cell_breaks_is_whole_for_the_next),
        TEST(a_huge_repr_is_cut),
        TEST(a_repr_that_loops_is_interrupted),
        TEST(a_thread_that_prints_later_is_shown_with_a_later_cell),
        TEST(a_forked_child_has_no_channel_and_ends_with_its_cell),
        TEST(a_cell_cannot_break_the_channel_by_accident),
        TEST(a_cell_past_its_time_is_interrupted_and_keeps_its_variables),
        TEST(a_cell_that_ignores_the_interrupt_is_killed_with_its_children),
        TEST(a_kernel_that_dies_is_replaced_and_the_text_says_so),
        TEST(a_kernel_killed_between_cells_is_replaced_before_the_next),
        TEST(what_a_hostile_cell_says_on_the_channel_harms_nobody_else),
        TEST(a_restart_gives_a_kernel_without_variables),
        TEST(two_sandboxes_have_two_kernels),
        TEST(an_image_without_python_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Started in the sandbox first, forked the second time: as an ordinary user, where root runs this. */
static int next_group(void)
{
    static bool is_second;
    by_fork_server = is_second;
    is_second = true;
    return group();
}

int main(void)
{
    if (system("/usr/bin/python3 -c 'import IPython' 2>/dev/null") != 0) {
        puts("skipped: /usr/bin/python3 has no IPython (package python3-ipython)");
        return 77;
    }
    int failed = run_as_everyone(next_group);
    return geteuid() == 0 ? failed : failed | next_group();
}
