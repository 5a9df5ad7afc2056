/* A real Jupyter kernel over ZeroMQ on Unix sockets, driven from C. */
#include "tests/workers/sandbox/sandbox_fixture.h"

#include <sys/socket.h>
#include <zmq.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "workers/tools/ipython/jupyter.h"
#include "workers/tools/ipython/jupyter_wire.h"

enum { CELL_MS = 30000, OUTPUT_MAX = 65536, JUPYTER_MAX = 1 << 20 };

static struct jupyter *jupyter;

static struct ipython_result run_for(const char *code, int64_t timeout_ms)
{
    struct ipython_result result;
    struct fail fail = {0};
    if (jupyter_run(jupyter, code, timeout_ms, OUTPUT_MAX, &result, &fail) < 0)
        fail_msg("%s: %s", code, fail.text);
    return result;
}

static void says(const char *code, const char *words)
{
    struct ipython_result result = run_for(code, CELL_MS);
    if (!strstr(result.text, words))
        fail_msg("%s: %s", code, result.text);
    assert_null(strchr(result.text, '\033'));
    free(result.text);
}

static struct sandbox *open_kernel(void)
{
    struct sandbox *sandbox = open_host();
    struct fail fail = {0};
    if (jupyter_open(sandbox, "python3", &jupyter, &fail) < 0)
        fail_msg("jupyter_open: %s", fail.text);
    return sandbox;
}

FIBER_TEST(cells_run_in_a_jupyter_kernel_and_keep_its_variables)
{
    struct sandbox *sandbox = open_kernel();
    says("x = 20\nprint('first')", "first\n");
    says("2 * x + 2", "42\n");
    says("1 / 0", "ZeroDivisionError: division by zero");
    says("import sys; print('err', file=sys.stderr)", "err\n");
    struct ipython_result result = run_for(
        "from IPython.display import Image\nImage(data=b'\\x89PNG\\r\\n\\x1a\\n', format='png')", CELL_MS);
    assert_int_equal(result.images, 1);
    assert_int_equal(result.count, 5);
    assert_string_equal(result.text, "[image/png, 8 bytes: /workspace/.sluice/jupyter1-1.png]\n");
    free(result.text);
    says("from IPython.display import display\ndisplay({'text/html': 'x' * 9_000_000}, raw=True)",
         "[left out, as too large or broken: 1 of the kernel's messages]\n");
    says("display({'text/html': [[]] * 300_000}, raw=True)",
         "[left out, as too large or broken: 1 of the kernel's messages]\n");
    result = run_for("print('x' * 1_000_000)", CELL_MS);
    assert_int_equal(result.total, 1000001);
    assert_true(result.len < OUTPUT_MAX + 100);
    free(result.text);
    jupyter_close(&jupyter);
    sandbox_close(&sandbox);
}

FIBER_TEST(pictures_are_saved_as_files_that_the_text_names)
{
    struct sandbox *sandbox = open_kernel();
    says("from IPython.display import SVG, display\nimport os\n"
         "def show(data, text='x'): display({'image/png': data, 'text/plain': text}, raw=True)\n"
         "os.mkdir('.sluice'); os.symlink('/workspace/taken', '.sluice/jupyter1-1.svg'); print('ready')", "ready\n");
    says("SVG('<svg xmlns=\"http://www.w3.org/2000/svg\"/>')", "/workspace/.sluice/jupyter1-2.svg]");
    says("show('aGVs\\nbG8=\\n')", "x\n[image/png, 5 bytes: /workspace/.sluice/jupyter1-3.png]\n");
    says("show('no base64!')", "[image/png, 0 bytes: not saved: its bytes are no base64]");
    says("show('AAAA' * (5 << 20 >> 2))", "[image/png, 3932160 bytes: /workspace/.sluice/jupyter1-4.png]");
    says("show('AAAA' * (6 << 20 >> 2))", "[image/png, 4718592 bytes: not saved, more than 4 MiB]");
    says("it = os.stat('.sluice/jupyter1-3.png')\n"
         "print(open('.sluice/jupyter1-3.png').read(), 'svg' in open('.sluice/jupyter1-2.svg').read(),\n"
         "      oct(it.st_mode), it.st_uid, os.path.exists('taken'))", "hello True 0o100644 1000 False\n");
    says("os.chmod('.sluice', 0o500)\nshow('aGVsbG8=')", "[image/png, 5 bytes: not saved: Permission denied]");
    struct ipython_result result = run_for("os.chmod('.sluice', 0o700)\nfor i in range(64): show('AAAA')", CELL_MS);
    assert_int_equal(result.images, 64);
    assert_non_null(strstr(result.text, "[image/png, 3 bytes: not saved, this kernel has saved its 64 files or 16 MiB]"));
    free(result.text);
    says("print(len(os.listdir('.sluice')))", "65\n"); /* with the link */
    jupyter_close(&jupyter);
    sandbox_close(&sandbox);
}

FIBER_TEST(a_cell_past_its_time_is_interrupted_and_one_that_dies_is_told)
{
    struct sandbox *sandbox = open_kernel();
    says("x = 1", "");
    struct ipython_result result = run_for("import time; time.sleep(1000)", 300);
    assert_true(result.timed_out && !result.is_new);
    assert_non_null(strstr(result.text, "[interrupted; variables are kept]"));
    free(result.text);
    says("x", "1\n");
    result = run_for("import os; os._exit(1)", CELL_MS);
    assert_true(result.failed && result.is_new);
    assert_non_null(strstr(result.text, "[the kernel ended; all variables are gone]"));
    free(result.text);
    jupyter_close(&jupyter);
    sandbox_close(&sandbox);
}

FIBER_TEST(a_kernel_that_is_not_there_is_refused)
{
    static const struct {
        const char *spec, *words;
    } cases[] = {
        {"ir", "there is no Jupyter kernel \"ir\" in the image"},
        {"../../etc", "there is no Jupyter kernel \"../../etc\" in the image"},
        {"broken", "there is no Jupyter kernel \"broken\" in the image"},
        {"deep", "there is no Jupyter kernel \"deep\" in the image"},
        {"odd", "the kernelspec odd is not understood"},
        {"false", "the Jupyter kernel false does not start"},
    };
    struct sandbox *sandbox = open_host();
    expect_status(sandbox, "cd /workspace; d=.local/share/jupyter/kernels; mkdir -p $d/broken $d/deep $d/odd $d/false;"
                           "printf '{\"argv\": [\"true\"], \"a\": %s%s}' $(printf '[%.0s' $(seq 1000)) $(printf ']%.0s' $(seq 1000)) >$d/deep/kernel.json;"
                           "echo '{' >$d/broken/kernel.json; echo '{\"argv\": [1]}' >$d/odd/kernel.json;"
                           "echo '{\"argv\": [\"false\"]}' >$d/false/kernel.json", 0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct fail fail = {0};
        assert_int_equal(jupyter_open(sandbox, cases[i].spec, &jupyter, &fail), -EINVAL);
        assert_string_equal(fail.text, cases[i].words);
    }
    sandbox_close(&sandbox);
}

/* A name among the outputs that leads out of the sandbox is not followed. */
FIBER_TEST(a_link_in_the_place_of_a_socket_is_not_followed)
{
    struct sandbox *sandbox = open_host();
    struct fail fail = {0};
    char link[1024];
    snprintf(link, sizeof(link),
             "d=.local/share/jupyter/kernels/liar; mkdir -p $d; cat >$d/kernel.json <<'.'\n"
             "{\"argv\": [\"sh\", \"-c\", \"for n in 1 2 4; do ln -s %s/s /run/sluice/out/jupyter1-$n; done; exec sleep 1000\"]}\n"
             ".\n", directory);
    expect_status(sandbox, link, 0);
    void *context = zmq_ctx_new(), *trap = zmq_socket(context, ZMQ_ROUTER);
    snprintf(link, sizeof(link), "ipc://%s/s", directory);
    assert_int_equal(zmq_bind(trap, link), 0);
    fiber_push_deadline(clock_ms() + 1000);
    assert_int_equal(jupyter_open(sandbox, "liar", &jupyter, &fail), -ETIMEDOUT);
    fiber_pop_deadline();
    char byte;
    assert_int_equal(zmq_recv(trap, &byte, 1, ZMQ_DONTWAIT), -1);
    zmq_close(trap);
    zmq_ctx_term(context);
    sandbox_close(&sandbox);
}

/* ---- the wire ------------------------------------------------------------------------------- */

static struct jupyter_link ours, theirs;

static void open_links(void)
{
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    jupyter_link_init(&ours, JUPYTER_MAX);
    jupyter_link_init(&theirs, JUPYTER_MAX);
    ours.fd = ends[0];
    theirs.fd = ends[1];
}

static void close_links(void)
{
    jupyter_link_finish(&ours);
    jupyter_link_finish(&theirs);
}

static void send_frames(const char *const *frames)
{
    struct slice slices[10];
    size_t count = 0;
    for (; frames[count]; count++)
        slices[count] = slice_from_str(frames[count]);
    assert_true(jupyter_link_send(&theirs, slices, count));
}

static int hear(struct jupyter_message *ret)
{
    size_t budget = 1 << 20;
    return jupyter_receive(&ours, "key", &budget, ret);
}

/* Objects in objects, to this depth. */
static json_t *make_deep(size_t depth)
{
    json_t *deep = json_object();
    while (depth-- > 1)
        deep = json_pack("{s:o}", "a", deep);
    return deep;
}

static void send_content(const char *key, json_t *content)
{
    char id[JUPYTER_KEY_SIZE];
    assert_true(jupyter_send(&theirs, key, "session", "execute_request", content, id));
    json_decref(content);
}

FIBER_TEST(only_what_is_signed_whole_shallow_and_an_object_is_heard)
{
    const char *const bad[][10] = {
        {"", NULL},
        {"<IDS|MSG>", NULL},
        {"<IDS|MSG>", "0000000000000000000000000000000000000000000000000000000000000000", "{}", "{}", "{}", "{}", NULL},
        {"<IDS|MSG>", "", "{}", "{}", "{}", "{}", NULL},
    };
    struct jupyter_message message;
    char id[JUPYTER_KEY_SIZE];
    open_links();
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        send_frames(bad[i]);
    assert_int_equal(hear(&message), 0);
    send_content("other", json_pack("{s:s}", "code", "1"));
    send_content("key", json_array());
    send_content("key", make_deep(100));
    assert_int_equal(hear(&message), 0);
    json_t *content = make_deep(10);
    assert_true(jupyter_send(&theirs, "key", "session", "execute_request", content, id));
    assert_int_equal(hear(&message), 1);
    assert_string_equal(jupyter_type(&message), "execute_request");
    assert_string_equal(json_string_value(json_object_get(message.header, "msg_id")), id);
    assert_true(json_equal(message.content, content));
    assert_false(jupyter_answers(&message, id));
    jupyter_message_finish(&message);
    json_decref(content);
    close_links();
    assert_int_equal(hear(&message), -EPIPE);
}

static void write_bytes(const void *data, size_t len)
{
    assert_int_equal(send(theirs.fd, data, len, 0), len);
}

/* In frames of 1 KiB; more is to come after each but the last. */
static void send_long(size_t frames, size_t *budget)
{
    uint8_t frame[9 + 1024] = {3, [7] = 4};
    for (size_t i = 0; i < frames; i++) {
        frame[0] = i + 1 < frames ? 3 : 2;
        write_bytes(frame, sizeof(frame));
        *budget = sizeof(frame);
        if (i + 1 < frames)
            assert_int_equal(jupyter_link_receive(&ours, budget), 0);
        assert_true(ours.bytes.capacity <= 4 * JUPYTER_MAX);
    }
}

FIBER_TEST(messages_come_in_any_pieces_and_one_too_long_is_passed_over_and_counted)
{
    static const char pieces[] = "\4\3abc" /* a command: no message */
                                 "\1\2ab" "\3\0\0\0\0\0\0\0\3cde" "\0\0";
    size_t budget = 0;
    open_links();
    for (size_t i = 0; i + 1 < sizeof(pieces); i++) {
        write_bytes(pieces + i, 1);
        budget = 1;
        assert_int_equal(jupyter_link_receive(&ours, &budget), i + 2 == sizeof(pieces));
    }
    assert_true(slice_is(jupyter_link_frame(&ours, 0), "ab"));
    assert_true(slice_is(jupyter_link_frame(&ours, 1), "cde"));
    assert_int_equal(jupyter_link_frame(&ours, 2).len, 0);
    assert_int_equal(ours.frame_count, 3);
    send_long(JUPYTER_FRAMES_MAX, &budget);
    assert_int_equal(jupyter_link_receive(&ours, &budget), 1);
    send_long(JUPYTER_FRAMES_MAX + 1, &budget);
    assert_int_equal(jupyter_link_receive(&ours, &budget), 0);
    assert_int_equal(ours.passed_over, 1);
    write_bytes("\0\1a\0\1b", 6);
    budget = 3;
    assert_int_equal(jupyter_link_receive(&ours, &budget), 1);
    assert_int_equal(jupyter_link_receive(&ours, &budget), 0); /* not in this turn */
    budget = 3;
    assert_int_equal(jupyter_link_receive(&ours, &budget), 1);
    assert_true(slice_is(jupyter_link_frame(&ours, 0), "b"));
    const uint8_t endless[9] = {2, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    write_bytes(endless, sizeof(endless));
    budget = sizeof(endless);
    assert_int_equal(jupyter_link_receive(&ours, &budget), 0);
    assert_true(ours.is_too_long);
    close_links();
}

static int group(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(only_what_is_signed_whole_shallow_and_an_object_is_heard),
        TEST(messages_come_in_any_pieces_and_one_too_long_is_passed_over_and_counted),
        TEST(cells_run_in_a_jupyter_kernel_and_keep_its_variables),
        TEST(pictures_are_saved_as_files_that_the_text_names),
        TEST(a_cell_past_its_time_is_interrupted_and_one_that_dies_is_told),
        TEST(a_kernel_that_is_not_there_is_refused),
        TEST(a_link_in_the_place_of_a_socket_is_not_followed),
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
