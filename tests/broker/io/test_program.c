/* sluice-broker as a program: how it starts, what it says when it cannot, how it stops. */
#include "tests/broker/io/io_world.h"

#include <arpa/inet.h>

static void sigterm_ends_it_tidily(void **state)
{
    struct world *world = *state;
    submit(world, "a", 1, false);
    int status = world_stop(world, SIGTERM);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_int_equal(access(world->front + 6, F_OK), -1); /* the ipc files are gone */
    assert_int_equal(access(world->feed + 6, F_OK), -1);
    char wal[128];
    snprintf(wal, sizeof(wal), "%s/ledger.db-wal", world->data);
    assert_int_equal(access(wal, F_OK), -1); /* and the log is in the file */
    world_start(world);
    submit(world, "a", 1, true);
}

static void a_second_broker_is_refused_with_a_sentence(void **state)
{
    struct world *world = *state;
    char text[8192], pid[32], other[96];
    snprintf(pid, sizeof(pid), "(pid %d)", world->broker);
    snprintf(other, sizeof(other), "%s/other", world->dir);
    const char *same_data[] = {"--data", world->data, "--ipc", other, NULL};
    assert_int_equal(world_run(same_data, text, sizeof(text)), 1);
    assert_non_null(strstr(text, pid));
    const char *same_sockets[] = {"--data", other, "--ipc", world->dir, NULL};
    assert_int_equal(world_run(same_sockets, text, sizeof(text)), 1);
    assert_non_null(strstr(text, pid));
    submit(world, "a", 1, false); /* and the first one never noticed */
}

/* A port that something else listens on. */
static int take_port(char ret_port[16])
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, len), 0);
    assert_int_equal(listen(fd, 1), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    snprintf(ret_port, 16, "%u", ntohs(address.sin_port));
    return fd;
}

static void a_port_in_use_is_a_sentence_that_names_it(void **state)
{
    struct world *world = *state;
    char text[8192], port[16], other[96];
    AUTO_CLOSE int fd = take_port(port);
    assert_true(fd >= 0);
    snprintf(other, sizeof(other), "%s/other", world->dir);
    const char *arguments[] = {"--data", other, "--front", port, NULL};
    assert_int_equal(world_run(arguments, text, sizeof(text)), 1);
    assert_non_null(strstr(text, port));
    assert_non_null(strstr(text, "in use"));
    assert_non_null(strstr(text, "--front"));
}

static void bad_usage_is_told_by_name_with_status_2(void **state)
{
    (void)state;
    static const struct {
        const char *arguments[3];
        const char *words;
    } cases[] = {
        {{"--frnt", "1", NULL}, "there is no option --frnt"},
        {{"--front", "99999", NULL}, "--front"},
        {{"--front", "", NULL}, "--front"},
        {{"--data", NULL}, "--data wants DIR"},
        {{"--bind", "127.0.0.1", NULL}, "tcp://ADDRESS"},
        {{"--bind", "tcp://0.0.0.0", NULL}, "--allow-plaintext"},
        {{"--bind", "tcp://*", NULL}, "sluice keys init"},
        {{"--bind", "tcp://127.0.0.1.example.com", NULL}, "--keys DIR"},
        {{"--log", "loud", NULL}, "--log wants debug|info|warn|error, not 'loud'"},
        {{"--durability", "maybe", NULL}, "--durability wants full|process|none"},
        {{"--placing", "random", NULL}, "--placing wants live-tokens|assignments|round-robin|hash"},
        {{"--beat-timeout", "5000", NULL}, "--beat-timeout wants a time from 100ms to 1h"},
        {{"--task-bytes-max", "1000", NULL}, "--task-bytes-max wants a size from 1B to 1TiB"},
        {{"--disk-reserve", "lots", NULL}, "--disk-reserve wants a size from 0 to 1PiB"},
        {{"--lanes", "10.0.0.0/99", NULL}, "--lanes: "},
        {{"--rollouts-max", "0", NULL}, "--rollouts-max"},
        {{"stray", NULL}, "stray"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char text[8192];
        assert_int_equal(world_run(cases[i].arguments, text, sizeof(text)), 2);
        assert_non_null(strstr(text, cases[i].words));
        assert_non_null(strstr(text, "--help"));
    }
}

static void help_names_every_option_and_setting(void **state)
{
    (void)state;
    const char *const names[] = {
#define OPTION(kind, name, ...) "\n  --" #name " ",
#include "broker/options.def"
#undef OPTION
#define SETTING(type, name, ...) "\n  --" #name " ",
#include "broker/core/state/settings.def"
#undef SETTING
        "\n  --help ",
    };
    char text[16384];
    const char *arguments[] = {"--help", NULL};
    assert_int_equal(world_run(arguments, text, sizeof(text)), 0);
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        char name[64];
        snprintf(name, sizeof(name), "%s", names[i]);
        for (char *at = name; (at = strchr(at, '_'));)
            *at = '-';
        assert_non_null(strstr(text, name));
    }
}

int main(int argc, char **argv)
{
    if (world_is_broker(argc, argv))
        return world_be_broker(argc, argv);
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_set_up, world_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(sigterm_ends_it_tidily),
        TEST(a_second_broker_is_refused_with_a_sentence),
        TEST(a_port_in_use_is_a_sentence_that_names_it),
        cmocka_unit_test(bad_usage_is_told_by_name_with_status_2),
        cmocka_unit_test(help_names_every_option_and_setting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
