/* What an endpoint of a beat may say, and where a lane may lead. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>

#include "broker/net/lane_address.h"

/* Where the broker connects, or why not. */
static int settle(const char *endpoint, const struct lane_rules *rules, const char *peer, char ret[LANE_ENDPOINT_SIZE],
                  struct fail *fail)
{
    struct lane_address address;
    *fail = (struct fail){0};
    strcpy(ret, "");
    int code = lane_address_parse(slice_from_str(endpoint), &address, fail);
    if (code == 0)
        code = lane_address_settle(&address, rules, peer, fail);
    if (code == 0)
        lane_address_format(&address, ret);
    return code;
}

static void expect(const char *endpoint, struct lane_rules rules, const char *peer, const char *connects_to)
{
    char got[LANE_ENDPOINT_SIZE];
    struct fail fail;
    if (settle(endpoint, &rules, peer, got, &fail) != 0)
        fail_msg("%s from %s: %s", endpoint, peer ? peer : "nowhere", fail.text);
    assert_string_equal(got, connects_to);
}

static void expect_refused(const char *endpoint, struct lane_rules rules, const char *peer, int code, const char *words)
{
    char got[LANE_ENDPOINT_SIZE];
    struct fail fail;
    if (settle(endpoint, &rules, peer, got, &fail) != code)
        fail_msg("%s from %s: connects to '%s': %s", endpoint, peer ? peer : "nowhere", got, fail.text);
    if (!strstr(fail.text, words))
        fail_msg("%s: '%s' does not say '%s'", endpoint, fail.text, words);
}

static const struct lane_rules none;

static void a_lane_leads_to_where_its_workers_connection_comes_from(void **state)
{
    (void)state;
    expect("tcp://10.0.0.7:20417", none, "10.0.0.7", "tcp://10.0.0.7:20417");
    expect("tcp://10.0.0.7:1", none, "::ffff:10.0.0.7", "tcp://10.0.0.7:1");
    expect("tcp://[fd00::7]:65535", none, "fd00::7", "tcp://[fd00::7]:65535");
    expect("tcp://[FD00:0:0::7]:9", none, "fd00::7", "tcp://[fd00::7]:9");
    expect("tcp://[fe80::1%eth7]:9", none, "fe80::1%eth0", "tcp://[fe80::1%eth0]:9"); /* our interface */
    expect("tcp://[::ffff:10.0.0.7]:9", none, "10.0.0.7", "tcp://10.0.0.7:9");
}

static void a_lane_to_somebody_else_is_refused_and_the_sentence_says_what_would_help(void **state)
{
    (void)state;
    expect_refused("tcp://10.0.0.8:22", none, "10.0.0.7", -EACCES, "--lanes 10.0.0.8");
    expect_refused("tcp://10.0.0.8:22", none, "10.0.0.7", -EACCES, "--advertise 10.0.0.7");
    expect_refused("tcp://127.0.0.1:6379", none, "10.0.0.7", -EACCES, "comes from 10.0.0.7");
    expect_refused("tcp://169.254.169.254:80", none, "10.0.0.7", -EACCES, "--lanes");
    expect_refused("tcp://[::1]:80", none, "fd00::7", -EACCES, "--lanes ::1");
}

static void a_name_stands_for_the_workers_own_address_and_is_not_looked_up(void **state)
{
    (void)state;
    expect("tcp://node7.example:20417", none, "10.0.0.7", "tcp://10.0.0.7:20417");
    expect("tcp://metadata.internal:80", none, "fd00::7", "tcp://[fd00::7]:80");
}

static void what_the_operator_listed_is_connected_to(void **state)
{
    (void)state;
    struct lane_rules rules = {.list = "192.168.0.0/16, 10.1.2.3,fd00::/8,Gate.example"};
    struct fail fail;
    assert_int_equal(lane_rules_check(&rules, &fail), 0);
    expect("tcp://192.168.9.9:5", rules, "10.0.0.7", "tcp://192.168.9.9:5");
    expect("tcp://10.1.2.3:5", rules, "10.0.0.7", "tcp://10.1.2.3:5");
    expect("tcp://[fdab::1]:5", rules, "10.0.0.7", "tcp://[fdab::1]:5");
    expect("tcp://GATE.example:5", rules, "10.0.0.7", "tcp://gate.example:5");
    expect("tcp://10.0.0.7:5", rules, "10.0.0.7", "tcp://10.0.0.7:5"); /* and its own */
    expect_refused("tcp://192.169.0.1:5", rules, "10.0.0.7", -EACCES, "--lanes");
    expect_refused("tcp://10.1.2.4:5", rules, "10.0.0.7", -EACCES, "--lanes");
    expect_refused("tcp://[fc00::1]:5", rules, "10.0.0.7", -EACCES, "--lanes");
    struct lane_rules all = {.list = "0.0.0.0/0"};
    expect("tcp://192.0.2.1:5", all, "10.0.0.7", "tcp://192.0.2.1:5");
    expect_refused("tcp://[fc00::1]:5", all, "10.0.0.7", -EACCES, "--lanes");
}

static void an_item_of_the_list_that_is_none_is_refused_by_name(void **state)
{
    (void)state;
    static const char *const bad[] = {"10.0.0.0/33", "10.0.0.0/", "10.0.0/8",       "node7/8",     "fd00::/129",
                                      "-x",          "node7:5",   "[fd00::7]",      "10.0.0.0/-1", "*",
                                      "a..b",        "127.1",     "tcp://10.0.0.1", "10.0.0.0/8/8"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        char list[64];
        struct fail fail;
        snprintf(list, sizeof(list), "10.0.0.1,%s", bad[i]);
        if (lane_rules_check(&(struct lane_rules){.list = list}, &fail) != -EINVAL || !strstr(fail.text, bad[i]))
            fail_msg("%s: %s", bad[i], fail.text);
    }
    assert_int_equal(lane_rules_check(&none, NULL), 0);
}

static void what_libzmq_would_make_more_of_is_no_endpoint(void **state)
{
    (void)state;
    struct lane_rules all = {.list = "0.0.0.0/0,::/0", .ipc_dir = "/run/sluice"};
    static const char *const bad[] = {"tcp://10.0.0.7;10.0.0.8:22",
                                      "tcp://eth0;10.0.0.8:22",
                                      "tcp://eth0:5;10.0.0.8:22",
                                      "tcp://*:5",
                                      "tcp://10.0.0.7:*",
                                      "tcp://10.0.0.7:0",
                                      "tcp://10.0.0.7:65536",
                                      "tcp://10.0.0.7:+5",
                                      "tcp://10.0.0.7:5 ",
                                      "tcp://10.0.0.7:",
                                      "tcp://10.0.0.7",
                                      "tcp://:5",
                                      "tcp://",
                                      "tcp://[::1:5",
                                      "tcp://::1:5",
                                      "tcp://[10.0.0.7]:5",
                                      "tcp://[node7]:5",
                                      "tcp://127.1:5",
                                      "tcp://0x7f000001:5",
                                      "tcp://2130706433:5",
                                      "tcp://0.0.0.0:5",
                                      "tcp://[::]:5",
                                      "tcp://[::ffff:0.0.0.0]:5",
                                      "tcp://a b:5",
                                      "tcp://-a:5",
                                      "tcp://10.0.0.7:5:6",
                                      "tcp://a@b:5",
                                      "tcp://[::1]x:5",
                                      "tcp://10.0.0.7:000005",
                                      "ipc://",
                                      "ipc://@abstract",
                                      "ipc://relative",
                                      "ipc://*",
                                      "inproc://x",
                                      "pgm://1.2.3.4:5",
                                      "udp://10.0.0.7:5",
                                      "ws://10.0.0.7:5",
                                      "/etc/passwd",
                                      "TCP://10.0.0.7:5"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        expect_refused(bad[i], all, "10.0.0.7", -EINVAL, "");
    struct lane_address address;
    static const char nul[] = "tcp://10.0.0.7\0:5";
    assert_int_equal(lane_address_parse(slice_of(nul, sizeof(nul) - 1), &address, NULL), -EINVAL);
    char endless[600];
    memset(endless, 'a', sizeof(endless));
    memcpy(endless, "tcp://", 6);
    assert_int_equal(lane_address_parse(slice_of(endless, sizeof(endless)), &address, NULL), -EINVAL);
}

static void a_unix_socket_is_one_beside_the_brokers_own(void **state)
{
    (void)state;
    struct lane_rules rules = {.ipc_dir = "/run/sluice/"};
    expect("ipc:///run/sluice/lane-w1", rules, ":0:0:17", "ipc:///run/sluice/lane-w1");
    expect_refused("ipc:///run/sluice/../docker.sock", rules, NULL, -EACCES, "/run/sluice");
    expect_refused("ipc:///run/docker.sock", rules, NULL, -EACCES, "not in the directory");
    expect_refused("ipc:///run/sluice2/x", rules, NULL, -EACCES, "not in the directory");
    expect_refused("ipc:///run/sluice/", rules, NULL, -EACCES, "not in the directory");
    expect_refused("ipc:///run/sluice/lane-w1", none, "127.0.0.1", -EACCES, "not on --ipc");
}

static void who_came_over_a_unix_socket_is_on_this_machine(void **state)
{
    (void)state;
    struct lane_rules rules = {.ipc_dir = "/run/sluice"};
    expect("tcp://127.0.0.1:5", rules, ":0:0:17", "tcp://127.0.0.1:5");
    expect("tcp://[::1]:5", rules, NULL, "tcp://[::1]:5");
    expect("tcp://node7:5", rules, "", "tcp://127.0.0.1:5");
    expect_refused("tcp://10.0.0.7:5", rules, ":0:0:17", -EACCES, "comes from this machine");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lane_leads_to_where_its_workers_connection_comes_from),
        cmocka_unit_test(a_lane_to_somebody_else_is_refused_and_the_sentence_says_what_would_help),
        cmocka_unit_test(a_name_stands_for_the_workers_own_address_and_is_not_looked_up),
        cmocka_unit_test(what_the_operator_listed_is_connected_to),
        cmocka_unit_test(an_item_of_the_list_that_is_none_is_refused_by_name),
        cmocka_unit_test(what_libzmq_would_make_more_of_is_no_endpoint),
        cmocka_unit_test(a_unix_socket_is_one_beside_the_brokers_own),
        cmocka_unit_test(who_came_over_a_unix_socket_is_on_this_machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
