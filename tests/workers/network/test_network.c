/* What a sandbox reaches: nothing, or what it was granted and nothing beside it. */
#include "tests/workers/stages/kinds_world.h"

#include <dirent.h>

#include "tests/workers/runtime/echo_server.h"

static struct grants grants;
static struct echo_server tcp, local;

static void grant(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void grant(const char *format, ...)
{
    char text[256];
    struct fail fail = {0};
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (grants_add(&grants, text, &fail) < 0)
        fail_msg("%s", fail.text);
}

static int set_up_network(void **state)
{
    char path[128];
    if (set_up_kinds(state) < 0)
        return -1;
    grants.count = 0;
    context.grants = &grants;
    snprintf(path, sizeof(path), "%s/service.sock", directory);
    echo_start(&tcp, NULL);
    echo_start(&local, path);
    grant("web=tcp:127.0.0.1:%u", tcp.port);
    grant("by-name=tcp:localhost:%u", tcp.port);
    grant("db=unix:%s", path);
    grant("dead=tcp:127.0.0.1:1");
    return 0;
}

static int tear_down_network(void **state)
{
    echo_stop(&tcp);
    echo_stop(&local);
    return tear_down_kinds(state);
}

static size_t count_descriptors(void)
{
    size_t count = 0;
    DIR *dir = opendir("/proc/self/fd");
    while (readdir(dir))
        count++;
    closedir(dir);
    return count;
}

/* What was relayed has ended, out here too. */
static void await_descriptors(size_t before)
{
    while (count_descriptors() > before)
        assert_int_equal(await_sleep(2), 0);
}

/* A test of NAME after which no relay is left: NETWORK_TEST(name) { ... } */
#define NETWORK_TEST(name)                                                                                             \
    static void name##_inner(void);                                                                                    \
    FIBER_TEST(name)                                                                                                   \
    {                                                                                                                  \
        size_t before = count_descriptors();                                                                           \
        name##_inner();                                                                                                \
        echo_await_idle(&tcp);                                                                                         \
        echo_await_idle(&local);                                                                                       \
        await_descriptors(before);                                                                                     \
    }                                                                                                                  \
    static void name##_inner(void)

/* Python that talks: says `sent`, ends its half, prints what comes until the end. */
#define ASK                                                                                                            \
    "import errno, socket, os, sys\\n"                                                                                 \
    "def ask(address, data):\\n"                                                                                       \
    "  s = socket.socket(socket.AF_UNIX if address[0] == '/' else socket.AF_INET)\\n"                                  \
    "  s.settimeout(10)\\n"                                                                                            \
    "  s.connect(address if address[0] == '/' else (address.split(':')[0], "                                           \
    "int(address.split(':')[1])))\\n"                                                                                  \
    "  s.sendall(data); s.shutdown(socket.SHUT_WR)\\n"                                                                 \
    "  got = b''\\n"                                                                                                   \
    "  while True:\\n"                                                                                                 \
    "    more = s.recv(65536)\\n"                                                                                      \
    "    if not more: return got\\n"                                                                                   \
    "    got += more\\n"

/* Runs an agent under these grants; what it printed. */
static void expect_agent(const char *network, const char *python, const char *expected)
{
    AUTO_BUFFER json = {0};
    buffer_printf(&json, "{\"task\":\"t\",\"network\":[%s],\"prompt\":\"python3 - <<'EOF' 2>&1\\n%s\\nEOF\\n\"}",
                  network, python);
    buffer_append(&json, "", 1);
    struct job run = run_stage(STAGE_RUN, (const char *)json.data, NULL, NULL, NULL);
    expect(&run, OUTCOME_OK, "ended by itself");
    assert_string_equal(agent_output, expected);
    end_job(&run);
}

NETWORK_TEST(a_task_without_a_grant_reaches_nothing)
{
    AUTO_BUFFER python = {0};
    buffer_printf(&python,
                  ASK "for family, address in [(socket.AF_INET, ('127.0.0.1', %u)), "
                      "(socket.AF_INET, ('10.0.0.1', 80)), (socket.AF_UNIX, '%s/service.sock')]:\\n"
                      "  try: socket.socket(family).connect(address); print('reached')\\n"
                      "  except OSError as e: print(e.errno)\\n"
                      "print([n for n in os.environ if 'GRANT' in n], os.path.exists('/run/sluice/grant'))",
                  tcp.port, directory);
    buffer_append(&python, "", 1);
    expect_agent("", (const char *)python.data, "111\n101\n2\n[] False\n"); /* refused, unreachable, none */
    assert_int_equal(tcp.total + local.total, 0);
}

NETWORK_TEST(a_granted_endpoint_is_reached_at_its_own_port_and_no_other_is)
{
    AUTO_BUFFER python = {0};
    buffer_printf(&python,
                  ASK "a = os.environ['SLUICE_GRANT_WEB']\\nprint(a == '127.0.0.1:%u', ask(a, b'hello'))\\n"
                      "try: ask('127.0.0.1:1', b'')\\nexcept OSError as e: print(e.errno)\\n"
                      "try: ask('10.0.0.1:80', b'')\\nexcept OSError as e: print(e.errno)\\n"
                      "print(os.path.exists('/run/sluice/grant'))",
                  tcp.port);
    buffer_append(&python, "", 1);
    expect_agent("\"web\"", (const char *)python.data, "True b'hello'\n111\n101\nFalse\n");
    assert_int_equal(tcp.total, 1);
}

NETWORK_TEST(a_granted_socket_is_reached_and_nothing_beside_it)
{
    expect_agent("\"db\"",
                 ASK "a = os.environ['SLUICE_GRANT_DB']\\nprint(a, ask(a, b'hello'))\\n"
                     "print(os.listdir('/run/sluice/grant'))\\n"
                     "for change in (os.unlink, lambda a: os.rename(a, a + '2'), lambda a: os.chmod(a, 0)):\\n"
                     "  try: change(a)\\n  except OSError as e: print(e.errno)",
                 "/run/sluice/grant/db b'hello'\n['db']\n30\n30\n30\n");
    echo_await_idle(&local);
    assert_int_equal(local.total, 1);
}

NETWORK_TEST(grants_to_one_port_and_to_a_name_are_told_apart)
{
    expect_agent("\"web\",\"by-name\",\"db\"",
                 ASK "w, n = os.environ['SLUICE_GRANT_WEB'], os.environ['SLUICE_GRANT_BY_NAME']\\n"
                     "print(w != n, ask(w, b'1'), ask(n, b'2'), ask(os.environ['SLUICE_GRANT_DB'], b'3'))",
                 "True b'1' b'2' b'3'\n");
    assert_int_equal(tcp.total, 2);
    assert_int_equal(local.total, 1);
}

NETWORK_TEST(many_megabytes_come_back_as_they_were_sent)
{
    expect_agent("\"web\",\"db\"",
                 ASK "data = os.urandom(9_000_001)\\n"
                     "for n in ('WEB', 'DB'): print(ask(os.environ['SLUICE_GRANT_' + n], data) == data)",
                 "True\nTrue\n");
}

NETWORK_TEST(connections_are_bounded_and_the_rest_waits_its_turn)
{
    expect_agent("\"web\"",
                 ASK "import time\\n"
                     "h, p = os.environ['SLUICE_GRANT_WEB'].split(':')\\n"
                     "held = [socket.create_connection((h, int(p)), 10) for i in range(150)]\\n"
                     "for i, s in enumerate(held): s.sendall(b'%03d' % i)\\n"
                     "count = 0\\n"
                     "for i, s in enumerate(held):\\n"
                     "  s.shutdown(socket.SHUT_WR); count += s.recv(9) == b'%03d' % i; s.close()\\n"
                     "print(count)",
                 "150\n");
    echo_await_idle(&tcp);
    assert_int_equal(tcp.total, 150);
    assert_true(tcp.most >= 32 && tcp.most <= 64);
}

NETWORK_TEST(an_endpoint_that_is_not_there_resets_and_the_agent_goes_on)
{
    expect_agent("\"dead\",\"web\"",
                 ASK "for i in range(3):\\n"
                     "  try: print(ask(os.environ['SLUICE_GRANT_DEAD'], b'x'))\\n"
                     /* ENOTCONN: the reset came before the shutdown */
                     "  except OSError as e: print(e.errno in (errno.ECONNRESET, errno.EPIPE, "
                     "errno.ENOTCONN))\\n"
                     "print(ask(os.environ['SLUICE_GRANT_WEB'], b'on'))",
                 "True\nTrue\nTrue\nb'on'\n");
}

NETWORK_TEST(connections_end_with_the_sandbox_and_no_descriptor_stays)
{
    const char *json = "{\"task\":\"t\",\"network\":[\"web\",\"db\",\"by-name\"],\"prompt\":\"python3 -c "
                       "'import socket, os\\nh, p = os.environ[\\\"SLUICE_GRANT_WEB\\\"].split(\\\":\\\")\\n"
                       "held = [socket.create_connection((h, int(p))) for i in range(100)]\\n"
                       "print(len(held), flush=True)\\nos.kill(os.getpid(), 9)'\"}";
    size_t before = count_descriptors();
    struct job run = run_stage(STAGE_RUN, json, NULL, NULL, NULL);
    expect(&run, OUTCOME_OK, "");
    assert_non_null(strstr(agent_output, "100\n"));
    end_job(&run);
    echo_await_idle(&tcp);
    await_descriptors(before);
}

static void never_ends(void *arg)
{
    struct job *job = arg;
    *job = run_stage(STAGE_RUN,
                     "{\"task\":\"t\",\"network\":[\"web\"],\"prompt\":\"exec "
                     "3<>/dev/tcp/${SLUICE_GRANT_WEB/:/\\\\/}; sleep 1000\"}",
                     NULL, NULL, NULL);
}

NETWORK_TEST(a_cancelled_job_lets_go_of_its_connections)
{
    struct job job = {0};
    struct fiber *fiber = fiber_start(loop, never_ends, NULL, &job);
    while (atomic_load(&tcp.open) == 0)
        assert_int_equal(await_sleep(2), 0);
    fiber_cancel(fiber);
    echo_await_idle(&tcp);
    while (!job.task)
        assert_int_equal(await_sleep(2), 0);
    expect(&job, OUTCOME_CANCELLED, "cancelled");
    end_job(&job);
}

NETWORK_TEST(an_unknown_grant_is_the_tasks_fault_and_names_those_there_are)
{
    struct job run = run_stage(STAGE_RUN, "{\"task\":\"t\",\"prompt\":\"p\",\"network\":[\"pip\"]}", NULL, NULL, NULL);
    expect(&run, OUTCOME_TASK, "there is no network grant \"pip\"; this worker has: web, by-name, db, dead");
    end_job(&run);
    context.grants = NULL;
    expect_init("{\"task\":\"t\",\"prompt\":\"p\",\"setup\":[\"true\"],\"network\":[\"web\"]}", OUTCOME_TASK,
                "there is no network grant \"web\"; this worker has: none");
}

/* It ends when the server has seen it: a connection that nobody has accepted yet ends with its sandbox. */
#define TRY(name)                                                                                                      \
    "python3 -c 'import os, socket\\nh, p = os.environ[\\\"SLUICE_GRANT_" name "\\\"].split(\\\":\\\")\\n"             \
    "s = socket.create_connection((h, int(p)))\\ns.shutdown(1)\\ns.recv(1)'"

NETWORK_TEST(set_up_has_the_agents_grants_and_the_evaluator_only_its_own)
{
    expect_reward("{\"task\":\"t\",\"network\":[\"web\"],\"setup\":[\"" TRY(
                      "WEB") "\"],\"agent\":{\"kind\":\"none\"},"
                             "\"eval\":{\"kind\":\"command\",\"command\":\"test -z "
                             "\\\"$SLUICE_GRANT_WEB\\\"\"}}",
                  1.0, "exited with 0");
    expect_reward("{\"task\":\"t\",\"agent\":{\"kind\":\"none\"},"
                  "\"eval\":{\"kind\":\"command\",\"network\":[\"web\"],\"command\":\"" TRY("WEB") "\"}}",
                  1.0, "exited with 0");
    echo_await_idle(&tcp);
    assert_int_equal(tcp.total, 2);
}

static int group(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_network, tear_down_network)
    const struct CMUnitTest tests[] = {
        TEST(a_task_without_a_grant_reaches_nothing),
        TEST(a_granted_endpoint_is_reached_at_its_own_port_and_no_other_is),
        TEST(a_granted_socket_is_reached_and_nothing_beside_it),
        TEST(grants_to_one_port_and_to_a_name_are_told_apart),
        TEST(many_megabytes_come_back_as_they_were_sent),
        TEST(connections_are_bounded_and_the_rest_waits_its_turn),
        TEST(an_endpoint_that_is_not_there_resets_and_the_agent_goes_on),
        TEST(connections_end_with_the_sandbox_and_no_descriptor_stays),
        TEST(a_cancelled_job_lets_go_of_its_connections),
        TEST(an_unknown_grant_is_the_tasks_fault_and_names_those_there_are),
        TEST(set_up_has_the_agents_grants_and_the_evaluator_only_its_own),
    };
    int failed = cmocka_run_group_tests_name("network", tests, NULL, NULL);
    free(agent_output);
    agent_output = NULL;
    return failed;
}

int main(void) { return run_as_everyone(group); }
