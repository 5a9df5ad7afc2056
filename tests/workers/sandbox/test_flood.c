/* Programs in a sandbox that write without end where a tool listens: the loop goes on, and so does the tool. */
#include "tests/workers/tools/shell_world.h"

#include "common/base/cleanup.h"
#include "workers/tools/ipython/ipython.h"

enum { CELL_MS = 30000, OUTPUT_MAX = 65536, GROWTH_MIB = 48 };

/* Somebody else's fiber, which must have its turns meanwhile; it looks at our memory. */
static struct {
    size_t turns, pages, pages_max;
    bool is_over;
} other;

static size_t count_pages(void)
{
    char text[128] = "";
    AUTO_CLOSE int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    size_t resident = 0;
    assert_true(read(fd, text, sizeof(text) - 1) > 0 && sscanf(text, "%*u %zu", &resident) == 1);
    return resident;
}

static void take_turns(void *arg)
{
    (void)arg;
    while (!other.is_over && await_sleep(1) == 0) {
        size_t pages = count_pages();
        other.pages_max = pages > other.pages_max ? pages : other.pages_max;
        other.turns++;
    }
}

/* In `body`'s place in a test: what floods, while another fiber takes turns. */
static void beside_another(void (*body)(void))
{
    other.turns = other.pages_max = 0;
    other.pages = count_pages();
    other.is_over = false;
    assert_non_null(fiber_start(loop, take_turns, NULL, NULL));
    body();
    other.is_over = true;
    assert_true(other.turns > 0);
    size_t grown_mib = (other.pages_max - other.pages) * (size_t)sysconf(_SC_PAGESIZE) >> 20;
    if (other.pages_max > other.pages && grown_mib > GROWTH_MIB)
        fail_msg("the worker grew by %zu MiB", grown_mib);
    await_sleep(2); /* its last turn */
}

/* ---- bash ---------------------------------------------------------------------------------- */

static struct shell *shell;

/* bash keeps the driver's closed descriptor under a number of its own. */
static const char find_channel[] = "for n in /proc/$$/fd/*; do n=${n##*/}; case $n in [012]) continue;; esac; "
                                   "case $(readlink /proc/$$/fd/$n) in socket:*) break;; esac; done; ";

static void flood_status(const char *how)
{
    char command[512];
    snprintf(command, sizeof(command), "%s%s", find_channel, how);
    struct sandbox_output output = run(shell, command, COMMAND_MS, OUTPUT_MAX);
    if (!strstr(output.text, "[the shell did not come back; a new one runs in /workspace]"))
        fail_msg("%s: %s", how, output.text);
    assert_false(output.timed_out);
    free(output.text);
    expect(shell, "echo again", 0, "again\n");
}

static void flood_with_nothing(void) { flood_status("exec cat /dev/zero >&$n"); }
static void flood_with_lines(void) { flood_status("while :; do printf 'other 0 /\\0' >&$n; done"); }
static void flood_without_an_end(void) { flood_status("yes >&$n"); }

FIBER_TEST(a_flood_of_status_lines_ends_the_shell_and_holds_nobody_else_up)
{
    void (*const floods[])(void) = {flood_with_nothing, flood_with_lines, flood_without_an_end};
    struct sandbox *sandbox = open_host();
    shell = open_shell(sandbox);
    for (size_t i = 0; i < sizeof(floods) / sizeof(*floods); i++)
        beside_another(floods[i]);
    shell_close(&shell);
    sandbox_close(&sandbox);
}

/* ---- ipython ------------------------------------------------------------------------------- */

static struct ipython *ipython;

static struct ipython_result run_cell(const char *code)
{
    struct ipython_result result;
    struct fail fail = {0};
    if (ipython_run(ipython, code, CELL_MS, OUTPUT_MAX, &result, &fail) < 0)
        fail_msg("%s: %s", code, fail.text);
    return result;
}

/* The driver's channel is a socket of the kernel, under whatever number. */
static void flood_channel(void)
{
    struct ipython_result result = run_cell("import os, stat, time\n"
                                            "for n in sorted(int(n) for n in os.listdir('/proc/self/fd')):\n"
                                            "    try:\n"
                                            "        if n >= 200 and stat.S_ISSOCK(os.fstat(n).st_mode): break\n"
                                            "    except OSError: pass\n"
                                            "else: raise SystemExit('no channel')\n"
                                            "os.set_blocking(n, True)\n"
                                            "while True: os.write(n, b'\\2\\0\\0\\0{}' * 9999)\n");
    if (!strstr(result.text, "[the kernel said what nobody understands and was killed; a new one runs"))
        fail_msg("%s", result.text);
    assert_true(result.is_new && !result.timed_out);
    free(result.text);
    result = run_cell("print('again')");
    assert_string_equal(result.text, "again\n");
    free(result.text);
}

FIBER_TEST(a_flood_of_answers_ends_the_kernel_and_holds_nobody_else_up)
{
    struct sandbox *sandbox = open_host();
    struct fail fail = {0};
    if (ipython_open(sandbox, &ipython, &fail) < 0)
        fail_msg("ipython_open: %s", fail.text);
    beside_another(flood_channel);
    ipython_close(&ipython);
    sandbox_close(&sandbox);
}

/* ---- Jupyter ------------------------------------------------------------------------------- */

/* Speaks ZMTP as a Jupyter kernel's sockets do, then floods one with 56 MiB, or 20,000 messages, and ends. */
static const char peer[] =
    "cat >/workspace/peer.py <<'.'\n"
    "import json, socket, sys\n"
    "told = json.load(open(sys.argv[1]))\n"
    "flood = {'endless': b'\\1\\0' + b'\\3\\0\\0\\0\\0\\0\\1\\0\\0' + bytes(65536),\n"
    "         'short': b'\\0\\0' * 4000, 'long': b'\\2\\0\\0\\0\\0\\0\\xff\\xff\\xf0' + "
    "bytes(0xfffff0)}[sys.argv[2]]\n"
    "made = {}\n"
    "names = 'shell', 'iopub', 'control'\n"
    "for n in names:\n"
    "    made[n] = socket.socket(socket.AF_UNIX)\n"
    "    made[n].bind('%s-%d' % (told['ip'], told[n + '_port']))\n"
    "    made[n].listen()\n"
    "for n in names:\n"
    "    s, _ = made[n].accept()\n"
    "    s.sendall(b'\\xff' + bytes(8) + b'\\x7f\\3\\0NULL' + bytes(48))\n"
    "    s.recv(64, socket.MSG_WAITALL)\n"
    "    ready = b'\\5READY\\x0bSocket-Type\\0\\0\\0' + (b'\\3PUB' if n == 'iopub' else "
    "b'\\6ROUTER')\n"
    "    s.sendall(bytes([4, len(ready)]) + ready)\n"
    "    s.recv(s.recv(2, socket.MSG_WAITALL)[1], socket.MSG_WAITALL)\n"
    "    made[n] = s\n"
    "for _ in range((56 << 20) // len(flood) if len(flood) > 9999 else 5):\n"
    "    made['iopub'].sendall(flood)\n"
    ".\n"
    "for how in endless short long; do\n"
    "    mkdir -p .local/share/jupyter/kernels/$how\n"
    "    printf '{\"argv\": [\"python3\", \"/workspace/peer.py\", \"{connection_file}\", \"%s\"], "
    "\"display_name\": \"\", \"language\": \"\"}' $how \\\n"
    "        >.local/share/jupyter/kernels/$how/kernel.json\n"
    "done\n";

static struct sandbox *container;

static void open_peer(const char *how)
{
    struct fail fail = {0};
    char words[64];
    snprintf(words, sizeof(words), "the Jupyter kernel %s does not start: it ended with 0", how);
    assert_int_equal(ipython_open_jupyter(container, how, &ipython, &fail), -ENOEXEC);
    assert_string_equal(fail.text, words);
}

static void flood_without_the_last_frame(void) { open_peer("endless"); }
static void flood_with_short_messages(void) { open_peer("short"); }
static void flood_with_long_messages(void) { open_peer("long"); }

FIBER_TEST(a_flood_by_a_jupyter_kernel_takes_neither_memory_nor_anybodys_turn)
{
    void (*const floods[])(void) = {flood_without_the_last_frame, flood_with_short_messages, flood_with_long_messages};
    container = open_host();
    expect_status(container, peer, 0);
    for (size_t i = 0; i < sizeof(floods) / sizeof(*floods); i++)
        beside_another(floods[i]);
    sandbox_close(&container);
}

static int group(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_flood_of_status_lines_ends_the_shell_and_holds_nobody_else_up),
        TEST(a_flood_of_answers_ends_the_kernel_and_holds_nobody_else_up),
        TEST(a_flood_by_a_jupyter_kernel_takes_neither_memory_nor_anybodys_turn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    if (system("/usr/bin/python3 -c '' 2>/dev/null") != 0) {
        puts("skipped: there is no /usr/bin/python3");
        return 77;
    }
    return run_as_everyone(group);
}
