/*
 * Tools: what one call of bash, edit and ipython takes, through the contract that an agent uses
 * (workers/tools/tool.h), and until a fresh shell or kernel has answered, beside the floor of this
 * machine: a round trip over a socket pair, fork, exec and wait of /bin/true, a bare exec() in a Python
 * that has imported IPython, and a fork of that one. All in turn, a few samples of each at a time, so
 * that what else the machine does falls on all alike.
 *
 *   bench_tools CACHE [COUNT]     prints "VALUE WHAT" lines; 1000 samples of the quick ones if not given
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "workers/runtime/fiber.h"
#include "workers/sandbox/requests.h"
#include "workers/sandbox/spawner_start.h"
#include "workers/tools/tool.h"
#include "workers/tools/toolbox.h"

enum { TURNS = 10 };

static const struct sandbox_plan plan = {
    .image = "host", .memory_mib = 1024, .disk_mib = 64, .processes = 64, .kernels = true};
static const struct task_limits limits = {.command_s = 60, .output_bytes = 65536};
static struct spawner *spawner;
static struct loop *loop;
static struct toolbox box; /* of the calls; what is fresh has one of its own */
static pid_t echo_pid;
static int echo_socket;
static pid_t python_pid;
static int python_socket;

static _Noreturn void give_up(const char *what, const char *why)
{
    fprintf(stderr, "bench_tools: %s: %s\n", what, why);
    exit(1);
}

/* ---- rows ------------------------------------------------------------------------------- */

struct row {
    const char *what;
    size_t share; /* a sample for so many of COUNT */
    void (*sample)(struct row *row);
    const char *tool;
    const char *calls[2]; /* made in turn; one alone always */
    const char *answer;   /* is in what each says */
    json_t *arguments[2];
    size_t made, count, size; /* calls; samples */
    int64_t *samples_us;
    const char *skipped; /* NULL, or why */
};

static void add_sample(struct row *row, int64_t began_us)
{
    int64_t took_us = clock_us() - began_us;
    if (row->count == row->size) {
        row->size = row->size ? row->size * 2 : 1024;
        row->samples_us = realloc(row->samples_us, row->size * sizeof(*row->samples_us));
        if (!row->samples_us)
            give_up(row->what, "out of memory");
    }
    row->samples_us[row->count++] = took_us;
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void print_row(struct row *row)
{
    if (row->skipped)
        fprintf(stderr, "bench_tools: skipped: %s: %s\n", row->what, row->skipped);
    if (row->skipped || row->count == 0)
        return;
    qsort(row->samples_us, row->count, sizeof(*row->samples_us), compare);
    printf("%.3f %s, p50 ms\n", (double)row->samples_us[row->count / 2] / 1000, row->what);
    printf("%.3f %s, p99 ms\n", (double)row->samples_us[row->count * 99 / 100] / 1000, row->what);
}

/* ---- the floor -------------------------------------------------------------------------- */

static void start_echo(void)
{
    char byte;
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        give_up("socketpair", strerror(errno));
    echo_socket = ends[0];
    echo_pid = fork();
    if (echo_pid == 0) {
        close(ends[0]);
        while (read(ends[1], &byte, 1) == 1 && write(ends[1], &byte, 1) == 1)
            ;
        _exit(0);
    }
    close(ends[1]);
}

static void stop_echo(void)
{
    close(echo_socket);
    waitpid(echo_pid, NULL, 0);
}

static void sample_round_trip(struct row *row)
{
    char byte = 'x';
    int64_t began_us = clock_us();
    if (write(echo_socket, &byte, 1) != 1 || read(echo_socket, &byte, 1) != 1)
        give_up(row->what, strerror(errno));
    add_sample(row, began_us);
}

static void sample_process(struct row *row)
{
    int status;
    int64_t began_us = clock_us();
    pid_t pid = fork();
    if (pid == 0) {
        execl("/bin/true", "true", NULL);
        _exit(127);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
        give_up(row->what, "/bin/true");
    add_sample(row, began_us);
}

/* What a cell and a fresh kernel cannot do without; "fork": a child answers. */
static const char python_program[] = "import os, socket\n"
                                     "try:\n"
                                     "    import IPython\n"
                                     "except ImportError:\n"
                                     "    pass\n"
                                     "channel = socket.socket(fileno=3)\n"
                                     "while True:\n"
                                     "    code = channel.recv(4096).decode()\n"
                                     "    if not code:\n"
                                     "        break\n"
                                     "    if code != 'fork':\n"
                                     "        exec(compile(code, 'cell', 'exec'), {})\n"
                                     "        channel.send(b'.')\n"
                                     "    elif os.fork() == 0:\n"
                                     "        channel.send(b'.')\n"
                                     "        os._exit(0)\n"
                                     "    else:\n"
                                     "        os.wait()\n";

static void start_python(void)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        give_up("socketpair", strerror(errno));
    python_socket = ends[0];
    python_pid = fork();
    if (python_pid == 0) {
        dup2(ends[1], 3);
        execlp("python3", "python3", "-c", python_program, NULL);
        _exit(127);
    }
    close(ends[1]);
}

static void stop_python(void)
{
    close(python_socket);
    waitpid(python_pid, NULL, 0);
}

static void sample_python(struct row *row)
{
    char byte;
    const char *code = row->calls[0];
    int64_t began_us = clock_us();
    if (send(python_socket, code, strlen(code), MSG_NOSIGNAL) < 0 || read(python_socket, &byte, 1) != 1)
        row->skipped = "there is no python3";
    else
        add_sample(row, began_us);
}

/* ---- calls ------------------------------------------------------------------------------ */

/* False when the tool cannot be had here; a call that goes wrong is the bench's end. */
static bool call(struct row *row, struct toolbox *tools, size_t which)
{
    static char why[sizeof(((struct fail *)0)->text)];
    struct tool_result result;
    struct fail fail = {0};
    int code = toolbox_call(tools, row->tool, row->arguments[which], &result, &fail);
    if (code == -EINVAL) {
        snprintf(why, sizeof(why), "%s", fail.text);
        row->skipped = why;
        return false;
    }
    if (code < 0)
        give_up(row->what, fail.text);
    if (result.is_error || !strstr(result.text, row->answer))
        give_up(row->what, result.text);
    tool_result_finish(&result);
    return true;
}

static void sample_call(struct row *row)
{
    size_t which = row->arguments[1] ? row->made++ % 2 : 0;
    int64_t began_us = clock_us();
    if (call(row, &box, which))
        add_sample(row, began_us);
}

static struct sandbox *open_sandbox(void)
{
    struct sandbox *sandbox = NULL;
    struct fail fail = {0};
    if (sandbox_open(spawner, &plan, &sandbox, &fail) < 0)
        give_up("sandbox", fail.text);
    return sandbox;
}

/* From the first call of a tool in a sandbox that is ready to its answer. */
static void sample_fresh(struct row *row)
{
    struct toolbox fresh = {.sandbox = open_sandbox(), .limits = &limits};
    if (toolbox_add(&fresh, row->tool, NULL) < 0)
        give_up(row->tool, "cannot be offered");
    int64_t began_us = clock_us();
    if (call(row, &fresh, 0))
        add_sample(row, began_us);
    toolbox_close(&fresh);
    sandbox_close(&fresh.sandbox);
    await_sleep(5); /* the last one's end is not the next one's beginning */
}

#define BASH(text) "{\"command\": \"" text "\"}"
#define EDIT(command, more) "{\"command\": \"" command "\", \"path\": \"bench.txt\"" more "}"
#define REPLACE(from, to) EDIT("str_replace", ", \"old_str\": \"" from "\", \"new_str\": \"" to "\"")
#define CELL(text) "{\"code\": \"" text "\"}"

static struct row rows[] = {
    {"floor: a byte there and back over a socket pair", 1, sample_round_trip},
    {"floor: fork, exec and end of /bin/true", 5, sample_process},
    {"floor: a bare exec() of 1+1 in a Python of its own", 1, sample_python, .calls = {"1+1"}},
    {"floor: a fork of a Python with IPython imported", 20, sample_python, .calls = {"fork"}},
    {"Sluice bash: echo hi", 1, sample_call, "bash", {BASH("echo hi")}, "hi\n"},
    {"Sluice bash: /bin/echo hi, a process", 5, sample_call, "bash", {BASH("/bin/echo hi")}, "hi\n"},
    {"Sluice bash: a fresh shell and its first echo hi", 20, sample_fresh, "bash", {BASH("echo hi")}, "hi\n"},
    {"Sluice edit: view a file of 200 lines", 1, sample_call, "edit", {EDIT("view", "")}, "line 199 here"},
    {"Sluice edit: str_replace in it",
     1,
     sample_call,
     "edit",
     {REPLACE("line 100 here", "line 100 there"), REPLACE("line 100 there", "line 100 here")},
     "line 100 "},
    {"Sluice ipython: 1+1", 1, sample_call, "ipython", {CELL("1+1")}, "2"},
    {"Sluice ipython: print('hi')", 1, sample_call, "ipython", {CELL("print('hi')")}, "hi"},
    {"Sluice ipython: a fresh kernel and its first 1+1", 50, sample_fresh, "ipython", {CELL("1+1")}, "2"},
};
enum { ROWS = sizeof(rows) / sizeof(*rows) };

/* ---- all of it -------------------------------------------------------------------------- */

static size_t count = 1000;

static void write_file(void)
{
    char text[200 * 16], *at = text;
    struct fail fail = {0};
    for (int i = 1; i <= 200; i++)
        at += sprintf(at, "line %d here\n", i);
    if (sandbox_write_file(box.sandbox, "bench.txt", text, (size_t)(at - text), 0644, &fail) < 0)
        give_up("bench.txt", fail.text);
}

static void open_box(void)
{
    static const char *const names[] = {"bash", "edit", "ipython"};
    box = (struct toolbox){.sandbox = open_sandbox(), .limits = &limits};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (toolbox_add(&box, names[i], NULL) < 0)
            give_up(names[i], "cannot be offered");
    write_file();
    for (size_t i = 0; i < ROWS; i++) { /* what is opened by a first call is open */
        if (rows[i].sample == sample_call || rows[i].sample == sample_python)
            rows[i].sample(&rows[i]);
        rows[i].count = 0;
    }
}

/* One at least. */
static void sample_some(struct row *row, size_t number)
{
    for (size_t i = 0; !row->skipped && (i == 0 || i < number); i++)
        row->sample(row);
}

static void sample_all(void *arg)
{
    (void)arg;
    open_box();
    for (size_t turn = 0; turn < TURNS; turn++)
        for (size_t i = 0; i < ROWS; i++)
            sample_some(&rows[i], count / rows[i].share / TURNS);
    toolbox_close(&box);
    sandbox_close(&box.sandbox);
}

static void sampled(void *arg)
{
    (void)arg;
    loop_stop(loop);
}

static void read_calls(struct row *row)
{
    for (size_t i = 0; row->tool && i < 2 && row->calls[i]; i++)
        if (!(row->arguments[i] = json_loads(row->calls[i], 0, NULL)))
            give_up(row->what, "no JSON");
}

static void start(const char *cache)
{
    char scratch[512];
    struct fail fail = {0};
    snprintf(scratch, sizeof(scratch), "%s/.mount", cache);
    if (mkdir(scratch, 0755) < 0 && errno != EEXIST)
        give_up(scratch, strerror(errno));
    start_echo();
    start_python();
    spawner = spawner_start(scratch, &fail);
    loop = loop_create();
    if (!spawner || !loop || !spawner_attach(spawner, loop))
        give_up("spawner", fail.text);
}

int main(int argc, char **argv)
{
    if (argc < 2)
        give_up("usage", "bench_tools CACHE [COUNT]");
    count = argc > 2 ? strtoul(argv[2], NULL, 10) : count;
    start(argv[1]);
    for (size_t i = 0; i < ROWS; i++)
        read_calls(&rows[i]);
    if (!fiber_start(loop, sample_all, sampled, NULL))
        give_up("fiber", "out of memory");
    loop_run(loop);
    spawner_stop(&spawner);
    loop_destroy(&loop);
    stop_echo();
    stop_python();
    for (size_t i = 0; i < ROWS; i++)
        print_row(&rows[i]);
    for (size_t i = 0; i < ROWS; i++) {
        free(rows[i].samples_us);
        json_decref(rows[i].arguments[0]);
        json_decref(rows[i].arguments[1]);
    }
    return 0;
}
