/*
 * A network that swallows every packet, both ways, and tells nobody: a worker in a network
 * namespace of its own, behind a pair of interfaces whose queues are made black holes.
 */
#include "tests/workers/service/worker_harness.h"

static pid_t other_side; /* holds the worker's namespace */

/* ---- the network -------------------------------------------------------------------------- */

static bool write_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool good = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    if (fd >= 0)
        close(fd);
    return good;
}

/* A network namespace of our own; whoever is not root needs a user namespace around it. */
static bool leave_network(void)
{
    char map[32];
    snprintf(map, sizeof(map), "0 %d 1", (int)geteuid());
    if (geteuid() == 0)
        return unshare(CLONE_NEWNET) == 0;
    return unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0 && write_file("/proc/self/setgroups", "deny") &&
           write_file("/proc/self/uid_map", map);
}

static pid_t hold_namespace(void)
{
    int ends[2];
    char byte;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -1;
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (unshare(CLONE_NEWNET) == 0 && write(ends[1], "x", 1) == 1)
            pause();
        _exit(1);
    }
    close(ends[1]);
    bool made = read(ends[0], &byte, 1) == 1;
    close(ends[0]);
    return made ? pid : -1;
}

/* On this side, or within the worker's. */
static bool shell(bool there, const char *command)
{
    char line[512];
    if (there)
        snprintf(line, sizeof(line), "PATH=$PATH:/usr/sbin:/sbin nsenter -t %d -n %s", (int)other_side, command);
    else
        snprintf(line, sizeof(line), "PATH=$PATH:/usr/sbin:/sbin %s", command);
    return system(line) == 0;
}

static bool make_network(void)
{
    char move[64], net[64];
    if (!leave_network() || (other_side = hold_namespace()) < 0)
        return false;
    snprintf(move, sizeof(move), "ip link set vb netns %d", (int)other_side);
    snprintf(net, sizeof(net), "/proc/%d/ns/net", (int)other_side);
    worker_net = open(net, O_RDONLY | O_CLOEXEC);
    return worker_net >= 0 && shell(false, "ip link set lo up") && shell(true, "ip link set lo up") &&
           shell(false, "ip link add va type veth peer name vb") && shell(false, move) &&
           shell(false, "ip addr add 10.9.0.1/24 dev va") && shell(false, "ip link set va up") &&
           shell(true, "ip addr add 10.9.0.2/24 dev vb") && shell(true, "ip link set vb up");
}

static void cut_network(void)
{
    assert_true(shell(false, "tc qdisc add dev va root blackhole"));
    assert_true(shell(true, "tc qdisc add dev vb root blackhole"));
}

static void mend_network(void)
{
    assert_true(shell(false, "tc qdisc del dev va root"));
    assert_true(shell(true, "tc qdisc del dev vb root"));
}

/* ---- the tests ------------------------------------------------------------------------------ */

/* Whether the worker's kernel holds an established connection to the SINK. */
static bool is_connected(pid_t pid)
{
    char path[64], line[256];
    unsigned port, state, sink_port = (unsigned)atoi(strrchr(sink_endpoint, ':') + 1);
    bool is = false;
    snprintf(path, sizeof(path), "/proc/%d/net/tcp", (int)pid);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof(line), file))
        if (sscanf(line, " %*d: %*x:%*x %*x:%x %x", &port, &state) == 2)
            is |= port == sink_port && state == 1;
    fclose(file);
    return is;
}

/* As a broker does with a worker it hears of again: a new lane, which says hello. */
static void reopen_lane(uint64_t epoch)
{
    zmq_close(lane);
    connect_lane(hear_beat()->lane);
    say_hello(epoch);
}

static void a_short_cut_is_survived_on_the_same_connection(void **state)
{
    (void)state;
    struct worker_process worker = worker_start("run", "--allow-plaintext");
    open_lane(1);
    uint64_t token = say_start("run:g/0");
    hear_result("run:g/0");
    cut_network();
    while (hear(3000)) /* what was on its way, then nothing */
        ;
    assert_true(is_connected(worker.pid));
    mend_network();
    hear_beat_until(beat_has("run:g/0"));
    reopen_lane(1);
    hear_result("run:g/0"); /* it was not acknowledged: asked for by the hello */
    say_ack("run:g/0", token);
    hear_beat_until(heard.beat.jobs.count == 0);
    assert_int_equal(worker_stop(&worker), 0);
}

static void a_long_cut_is_noticed_and_both_directions_come_back(void **state)
{
    (void)state;
    struct worker_process worker = worker_start("run", "--allow-plaintext");
    open_lane(1);
    uint64_t token = say_start("run:g/0");
    hear_result("run:g/0");
    cut_network();
    int64_t began_ms = clock_ms();
    while (is_connected(worker.pid)) { /* 30 s after the first byte that nobody took */
        assert_true(clock_ms() - began_ms < 50000);
        hear(100);
    }
    print_message("noticed after %.1f s\n", (double)(clock_ms() - began_ms) / 1000);
    mend_network();
    int64_t mended_ms = clock_ms();
    hear_beat_until(beat_has("run:g/0"));
    assert_true(clock_ms() - mended_ms < 12000); /* an attempt under way is given up after 5 s */
    reopen_lane(1);
    hear_result("run:g/0");
    say_ack("run:g/0", token);
    say_start("run:g/1");
    hear_result("run:g/1");
    say_ack("run:g/1", next_token);
    hear_beat_until(heard.beat.jobs.count == 0);
    assert_int_equal(worker_stop(&worker), 0);
}

/* One argument: a pattern of the tests to run. */
int main(int argc, char **argv)
{
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    if (!make_network()) {
        printf("no network of its own here: skipped\n");
        return 77;
    }
    broker_host = "10.9.0.1";
    const struct CMUnitTest tests[] = {
        TEST(a_short_cut_is_survived_on_the_same_connection),
        TEST(a_long_cut_is_noticed_and_both_directions_come_back),
    };
    int failed = cmocka_run_group_tests_name("worker_partition", tests, NULL, NULL);
    kill(other_side, SIGKILL);
    return failed;
}
