/* Jupyter kernels and the driver beside them in the sandbox: a real one of Python, and some that misbehave. */
#include "tests/workers/tools/shell_world.h"

#include "common/loop/loop_now.h"
#include "workers/tools/ipython/ipython.h"

enum { CELL_MS = 30000, OUTPUT_MAX = 65536 };

static struct sandbox *sandbox;
static struct shell *shell; /* a command of the sandbox itself would end all others */
static struct ipython *kernel;

static struct ipython_result run_for(const char *code, int64_t timeout_ms)
{
    struct ipython_result result;
    struct fail fail = {0};
    if (ipython_run(kernel, code, timeout_ms, OUTPUT_MAX, &result, &fail) < 0)
        fail_msg("%s: %s", code, fail.text);
    return result;
}

static void says_within(const char *code, int64_t timeout_ms, const char *words)
{
    struct ipython_result result = run_for(code, timeout_ms);
    if (!strstr(result.text, words))
        fail_msg("%s: %s", code, result.text);
    assert_null(strchr(result.text, '\033'));
    free(result.text);
}

static void says(const char *code, const char *words) { says_within(code, CELL_MS, words); }

static void open_kernel(const char *spec)
{
    struct fail fail = {0};
    if (ipython_open_jupyter(sandbox, spec, &kernel, &fail) < 0)
        fail_msg("%s: %s", spec, fail.text);
}

static void open_with_shell(void)
{
    sandbox = open_host();
    shell = open_shell(sandbox);
}

static void close_all(void)
{
    ipython_close(&kernel);
    shell_close(&shell);
    sandbox_close(&sandbox);
}

static void is_refused(const char *spec, const char *words)
{
    struct fail fail = {0};
    assert_int_equal(ipython_open_jupyter(sandbox, spec, &kernel, &fail), -ENOEXEC);
    if (strcmp(fail.text, words) != 0 && !(words[0] == '*' && strstr(fail.text, words + 1)))
        fail_msg("%s: %s", spec, fail.text);
}

/* ---- a kernel that behaves ------------------------------------------------------------------ */

FIBER_TEST(cells_run_in_a_jupyter_kernel_and_keep_its_variables)
{
    open_with_shell();
    open_kernel("python3");
    says("x = 20\nprint('first')", "first\n");
    says("2 * x + 2", "42\n");
    says("1 / 0", "ZeroDivisionError: division by zero");
    says("import sys; print('err', file=sys.stderr)", "err\n");
    says("input()", "StdinNotImplementedError");
    struct ipython_result result = run_for("None", CELL_MS);
    assert_true(!result.failed && !result.is_new);
    assert_int_equal(result.count, 6);
    assert_string_equal(result.text, "");
    free(result.text);
    result = run_for("print('x' * 1_000_000)", CELL_MS);
    assert_int_equal(result.total, 1000001);
    assert_true(result.len < OUTPUT_MAX + 100);
    free(result.text);
    /* none is lost on the way, which a kernel may do with a thousand that it has not sent yet */
    result = run_for("import time\nfor i in range(2000):\n    display(i)\n    i % 400 or time.sleep(0.2)", CELL_MS);
    assert_int_equal(result.total, 10 + 2 * 90 + 3 * 900 + 4 * 1000 + 2000);
    free(result.text);
    close_all();
}

FIBER_TEST(pictures_are_saved_as_files_that_the_text_names)
{
    open_with_shell();
    open_kernel("python3");
    says("from IPython.display import SVG, display\nimport os\n"
         "def show(data, text='x'): display({'image/png': data, 'text/plain': text}, raw=True)",
         "");
    struct ipython_result result = run_for("SVG('<svg xmlns=\"http://www.w3.org/2000/svg\"/>')", CELL_MS);
    assert_int_equal(result.images, 1);
    assert_string_equal(result.text, "[image/svg+xml, 41 bytes: /workspace/.sluice/1.svg]\n");
    free(result.text);
    says("show('aGVs\\nbG8=\\n')", "x\n[image/png, 5 bytes: /workspace/.sluice/2.png]\n");
    says("show('AAA')", "[image/png: not saved: Incorrect padding]");
    says("show('AAAA' * (6 << 20 >> 2))", "[image/png, 4718592 bytes: not saved, more than 4 MiB]");
    says("display({'text/html': 'x' * 9_000_000}, raw=True)", "[text/html, 9000000 bytes: not saved, more than 4 MiB]");
    says("display({'text/plain': [1]}, raw=True)", "[left out, as broken: 1 of the kernel's messages]\n");
    says("print(open('.sluice/2.png').read(), os.stat('.sluice/2.png').st_uid)", "hello 1000\n");
    says("import shutil; shutil.rmtree('.sluice'); open('.sluice', 'w').close(); show('AAAA')",
         "[image/png: not saved: ");
    close_all();
}

FIBER_TEST(a_cell_past_its_time_is_interrupted)
{
    open_with_shell();
    open_kernel("python3");
    says("x = 1", "");
    struct ipython_result result = run_for("import time; time.sleep(1000)", 300);
    assert_true(result.timed_out && result.failed && !result.is_new);
    assert_non_null(strstr(result.text, "[interrupted after 0.3 seconds; variables are kept]"));
    free(result.text);
    says("x", "1\n");
    close_all();
}

/* ---- kernels that do not -------------------------------------------------------------------- */

FIBER_TEST(a_kernel_or_driver_that_dies_or_hangs_is_replaced)
{
    open_with_shell();
    open_kernel("python3");
    struct ipython_result result = run_for("import os; os._exit(3)", CELL_MS);
    assert_true(result.failed && result.is_new);
    assert_string_equal(result.text, "[the kernel ended with status 3; a new one runs, and all variables are gone]\n");
    free(result.text);
    says("import os; os.kill(os.getpid(), 9)", "[the kernel ended with status 137; a new one runs");
    says("import os; os.kill(os.getppid(), 9)", "[the kernel was killed by signal 9; a new one runs");
    says_within("import os; os.kill(os.getppid(), 19)", 300,
                "[the kernel did not stop when interrupted and was killed; a new one runs");
    says_within("import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass", 300,
                "[the kernel did not stop when interrupted and was killed; a new one runs");
    says("6 * 7", "42\n");
    says("import os; open('pid', 'w').write(str(os.getpid()))", "");
    expect(shell, "kill -9 $(cat pid)", 0, "");
    says("1", "[the kernel ended with status 137; a new one runs");
    says("6 * 7", "42\n");
    close_all();
}

/* Nothing of it is left; what it writes ends with the last of its processes. */
FIBER_TEST(a_kernel_that_is_closed_ends_with_its_driver)
{
    open_with_shell();
    open_kernel("python3");
    expect(shell, "mkfifo alive", 0, "");
    says("import os; held = os.open('alive', os.O_RDWR)", "");
    ipython_close(&kernel);
    expect(shell, "exec 3<>alive; echo x >&3; exec 4<alive; exec 3>&-; cat <&4; exec 4<&-", 0, "x\n");
    close_all();
}

#define SPEC(name, json)                                                                                               \
    "d=.local/share/jupyter/kernels/" name "; mkdir -p $d; cat >$d/kernel.json <<'.'\n" json "\n."                     \
    "\n"

FIBER_TEST(a_kernel_that_cannot_be_had_is_refused_by_name)
{
    static const struct {
        const char *spec, *words;
    } cases[] = {
        {"ir", "there is no Jupyter kernel \"ir\" in the image"},
        {"../../etc", "there is no Jupyter kernel \"../../etc\" in the image"},
        {"broken", "*the Jupyter kernel broken does not start: "},
        {"odd", "*the Jupyter kernel odd does not start: "},
        {"absent", "*the Jupyter kernel absent does not start: FileNotFoundError"},
        {"false", "the Jupyter kernel false does not start: it ended with 1"},
    };
    open_with_shell();
    expect(shell,
           SPEC("broken", "{") SPEC("odd", "{\"argv\": [1]}") SPEC("absent", "{\"argv\": [\"/nothing\"]}")
               SPEC("false", "{\"argv\": [\"false\"], \"display_name\": \"\", \"language\": \"\"}"),
           0, "");
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        is_refused(cases[i].spec, cases[i].words);
    close_all();
}

FIBER_TEST(a_kernel_that_never_answers_is_given_up_with_all_that_it_started)
{
    struct fail fail = {0};
    open_with_shell();
    expect(shell,
           SPEC("mute", "{\"argv\": [\"sh\", \"-c\", \"exec sleep 1000 3<>alive\"], "
                        "\"display_name\": \"\", \"language\": \"\"}") "mkfifo alive",
           0, "");
    fiber_push_deadline(loop_now_ms() + 1000);
    assert_int_equal(ipython_open_jupyter(sandbox, "mute", &kernel, &fail), -ETIMEDOUT);
    fiber_pop_deadline();
    expect(shell, "exec 3<>alive; echo x >&3; exec 4<alive; exec 3>&-; cat <&4; exec 4<&-", 0, "x\n");
    close_all();
}

/* In the agent's own packages, before those of the image. */
static void put_module(const char *name, const char *body)
{
    char command[1024];
    snprintf(command, sizeof(command),
             "d=$(python3 -m site --user-site); mkdir -p $d; cat >$d/%s.py <<'.'\n"
             "import os, struct, sys\n%s\n.\n",
             name, body);
    expect(shell, command, 0, "");
}

FIBER_TEST(a_driver_that_the_agent_has_made_its_own_is_refused)
{
    open_with_shell();
    put_module("usercustomize", "sys.modules['zmq'] = None");
    is_refused("python3", "*no Python of the image has pyzmq, which Jupyter kernels need here; tried: /");
    expect(shell, "rm $(python3 -m site --user-site)/*.py", 0, "");
    put_module("zmq", "while True: os.write(200, b'\\xff' * 65536)");
    is_refused("python3", "the Jupyter kernel python3 does not become ready");
    put_module("zmq", "d = b'[' * 60000; os.write(200, struct.pack('<I', len(d)) + d); os.read(200, 9)");
    is_refused("python3", "the Jupyter kernel python3 does not become ready");
    put_module("zmq", "os.write(200, b'\\2\\0\\0\\0{}'); os.write(1, b'\\0\\xff' * 99999); "
                      "os.read(200, 9); os.write(200, b'\\2\\0\\0\\0{}' * 9999)");
    open_kernel("python3");
    struct ipython_result result = run_for("1", CELL_MS);
    assert_true(result.failed && result.is_new);
    assert_non_null(strstr(result.text, "[the kernel said what nobody understands and was killed; a new one runs"));
    free(result.text);
    close_all();
}

/* A kernel of another language that is interrupted by a message: a signal would have ended it. */
static const char polite[] =
    "cat >polite.py <<'.'\n"
    "import signal, threading\n"
    "from ipykernel.kernelapp import IPKernelApp\n"
    "from ipykernel.kernelbase import Kernel\n"
    "told = threading.Event()\n"
    "class Polite(Kernel):\n"
    "    implementation = language = 'polite'; banner = ''; implementation_version = '1'\n"
    "    language_info = {'name': 'polite', 'mimetype': 'text/plain', 'file_extension': '.p'}\n"
    "    def pre_handler_hook(self): pass\n"
    "    post_handler_hook = pre_handler_hook\n"
    "    def do_execute(self, code, silent, store_history=True, user_expressions=None, "
    "allow_stdin=False, **more):\n"
    "        def say(text): self.send_response(self.iopub_socket, 'stream', {'name': 'stdout', "
    "'text': text})\n"
    "        say('\\x1b[31mhears \\x1b[0m' + code + '\\n')\n"
    "        if code == 'wait':\n"
    "            told.wait()\n"
    "            say(signal.getsignal(signal.SIGINT).name + '\\n')\n"
    "        return {'status': 'ok', 'execution_count': self.execution_count, 'payload': [], "
    "'user_expressions': {}}\n"
    "    async def interrupt_request(self, stream, ident, parent):\n"
    "        told.set()\n"
    "class App(IPKernelApp):\n"
    "    def init_signal(self): pass\n"
    "App.launch_instance(kernel_class=Polite)\n"
    ".\n" SPEC("polite", "{\"argv\": [\"python3\", \"/workspace/polite.py\", \"-f\", \"{connection_file}\"], "
                         "\"display_name\": \"\","
                         "\"language\": \"polite\", \"interrupt_mode\": \"message\", \"env\": {\"X\": \"y\"}}");

FIBER_TEST(a_kernel_of_another_language_is_interrupted_as_its_spec_says)
{
    open_with_shell();
    expect(shell, polite, 0, "");
    open_kernel("polite");
    says("bonjour", "hears bonjour\n");
    struct ipython_result result = run_for("wait", 300);
    assert_true(result.timed_out && !result.is_new);
    assert_string_equal(result.text, "hears wait\nSIG_IGN\n[interrupted after 0.3 seconds; variables are kept]\n");
    free(result.text);
    says("encore", "hears encore\n");
    close_all();
}

static int group(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(cells_run_in_a_jupyter_kernel_and_keep_its_variables),
        TEST(pictures_are_saved_as_files_that_the_text_names),
        TEST(a_cell_past_its_time_is_interrupted),
        TEST(a_kernel_or_driver_that_dies_or_hangs_is_replaced),
        TEST(a_kernel_that_is_closed_ends_with_its_driver),
        TEST(a_kernel_that_cannot_be_had_is_refused_by_name),
        TEST(a_kernel_that_never_answers_is_given_up_with_all_that_it_started),
        TEST(a_driver_that_the_agent_has_made_its_own_is_refused),
        TEST(a_kernel_of_another_language_is_interrupted_as_its_spec_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    if (system("/usr/bin/python3 -c 'import ipykernel' 2>/dev/null") != 0) {
        puts("skipped: /usr/bin/python3 has no ipykernel (package python3-ipykernel)");
        return 77;
    }
    return run_as_everyone(group);
}
