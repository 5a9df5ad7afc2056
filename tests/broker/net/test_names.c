/* The names of hosts, and a broker whose name server says nothing. */
#include "tests/broker/io/io_world.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <poll.h>
#include <stdatomic.h>

#include "broker/net/names.h"

/* ---- a name server of our own: this stands before the C library's, for libzmq, too --------- */

static atomic_int asked;

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **ret)
{
    struct in_addr address;
    atomic_fetch_add(&asked, 1);
    if (node && strstr(node, "silent")) { /* as long as glibc waits for three servers, twice */
        poll(NULL, 0, 30000);
        return EAI_AGAIN;
    }
    bool is_number = !node || inet_pton(AF_INET, node, &address) == 1;
    if (!is_number && strcmp(node, "node7.test") != 0)
        return EAI_NONAME;
    if (!is_number || !node)
        address.s_addr = htonl(INADDR_LOOPBACK);
    struct found {
        struct addrinfo info;
        struct sockaddr_in place;
    } *found = calloc(1, sizeof(*found));
    assert_non_null(found);
    found->place = (struct sockaddr_in){
        .sin_family = AF_INET, .sin_addr = address, .sin_port = htons((uint16_t)(service ? atoi(service) : 0))};
    found->info = (struct addrinfo){.ai_family = AF_INET,
                                    .ai_addrlen = sizeof(found->place),
                                    .ai_socktype = hints ? hints->ai_socktype : 0,
                                    .ai_addr = (struct sockaddr *)&found->place};
    *ret = &found->info;
    return 0;
}

void freeaddrinfo(struct addrinfo *all) { free(all); }

/* ---- names --------------------------------------------------------------------------------- */

static int names_set_up(void **state)
{
    atomic_store(&asked, 0);
    *state = names_create();
    return *state ? 0 : -1;
}

static int names_tear_down(void **state)
{
    names_destroy((struct names **)state);
    return 0;
}

static struct name_answer wait_for(struct names *names, const char *host, int64_t now_ms)
{
    struct name_answer answer = names_find(names, host, now_ms);
    while (answer.state == NAME_ASKED) {
        struct pollfd item = {names_fd(names), POLLIN, 0};
        assert_int_equal(poll(&item, 1, WAIT_MS), 1);
        names_hear(names);
        answer = names_find(names, host, now_ms);
    }
    return answer;
}

static void a_name_is_looked_up_once_and_known_from_then_on(void **state)
{
    struct names *names = *state;
    int64_t now_ms = clock_ms();
    assert_int_equal(names_find(names, "node7.test", now_ms).state, NAME_ASKED);
    struct name_answer answer = wait_for(names, "node7.test", now_ms);
    assert_int_equal(answer.state, NAME_FOUND);
    assert_string_equal(answer.address, "127.0.0.1");
    for (int i = 0; i < 100; i++)
        assert_int_equal(names_find(names, "node7.test", now_ms).state, NAME_FOUND);
    assert_int_equal(atomic_load(&asked), 1);
}

static void an_old_address_counts_until_there_is_a_new_one(void **state)
{
    struct names *names = *state;
    int64_t now_ms = clock_ms();
    wait_for(names, "node7.test", now_ms);
    assert_int_equal(names_find(names, "node7.test", now_ms + 2 * NAME_KEPT_MS).state, NAME_FOUND);
    struct pollfd item = {names_fd(names), POLLIN, 0};
    assert_int_equal(poll(&item, 1, WAIT_MS), 1);
    assert_int_equal(atomic_load(&asked), 2);
}

static void a_name_that_nobody_has_fails_and_is_asked_for_again_later(void **state)
{
    struct names *names = *state;
    int64_t now_ms = clock_ms();
    struct name_answer answer = wait_for(names, "nobody.test", now_ms);
    assert_int_equal(answer.state, NAME_FAILED);
    assert_string_equal(answer.why, gai_strerror(EAI_NONAME));
    assert_int_equal(names_find(names, "nobody.test", now_ms + 1).state, NAME_FAILED);
    assert_int_equal(atomic_load(&asked), 1);
    assert_int_equal(names_find(names, "nobody.test", clock_ms() + NAME_AGAIN_MS).state, NAME_FAILED);
    struct pollfd item = {names_fd(names), POLLIN, 0};
    assert_int_equal(poll(&item, 1, WAIT_MS), 1);
    assert_int_equal(atomic_load(&asked), 2);
}

static void silence_fails_in_time_and_keeps_no_other_name_waiting(void **state)
{
    struct names *names = *state;
    int64_t now_ms = clock_ms();
    assert_int_equal(names_find(names, "silent.test", now_ms).state, NAME_ASKED);
    assert_int_equal(wait_for(names, "node7.test", now_ms).state, NAME_FOUND);
    struct name_answer answer = names_find(names, "silent.test", now_ms + NAMES_PATIENCE_MS);
    assert_int_equal(answer.state, NAME_FAILED);
    assert_string_equal(answer.why, "no name server has answered for 5 s");
}

static void more_names_than_there_are_places_wait_for_one(void **state)
{
    struct names *names = *state;
    int64_t now_ms = clock_ms();
    for (int i = 0; i < NAMES_MAX; i++) {
        char host[32];
        snprintf(host, sizeof(host), "silent-%d.test", i);
        assert_int_equal(names_find(names, host, now_ms).state, NAME_ASKED);
    }
    assert_int_equal(names_find(names, "node7.test", now_ms + 60000).state, NAME_ASKED);
    assert_true(atomic_load(&asked) <= NAMES_THREADS);
}

static void what_is_no_name_is_asked_of_nobody(void **state)
{
    static const char *const others[] = {"", "a b", "a;b", "-x", "a/b", "[::1]", "a\tb", "\xc3\xa4.test"};
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
        assert_int_equal(names_find(*state, others[i], 1).state, NAME_FAILED);
    assert_int_equal(atomic_load(&asked), 0);
}

/* ---- a broker ------------------------------------------------------------------------------ */

/* Names that its operator listed; others stand for the worker's own address. */
static int listed_set_up(void **state)
{
    struct world *world = world_create();
    world->options[0] = "--lanes";
    world->options[1] = "silent.test,nobody.test,node7.test";
    world_start(world);
    world_connect(world);
    *state = world;
    return 0;
}

static void beat_as(struct world *world, void *push, const char *worker, const char *lane)
{
    struct msg_worker_beat beat = {.worker = S(worker),
                                   .stage = S("run"),
                                   .slots = 1,
                                   .lane = S(lane),
                                   .host = S("h"),
                                   .progress = (uint64_t)clock_ms()};
    world_send(world, push, MSG_worker_beat, &beat);
}

/* Asks until the status says `words`; the longest that an answer took, in ms. */
static int64_t ask_until(struct world *world, void *push, const char *lane, const char *words)
{
    int64_t longest_ms = 0, until_ms = clock_ms() + WAIT_MS;
    for (bool said = false; !said;) {
        assert_true(clock_ms() < until_ms);
        if (push)
            beat_as(world, push, "named", lane);
        struct msg_status_get get = {.tag = 1};
        struct msg_status status;
        int64_t asked_ms = clock_ms();
        world_ask(world, MSG_status_get, &get, MSG_status, &status);
        int64_t took_ms = clock_ms() - asked_ms;
        longest_ms = took_ms > longest_ms ? took_ms : longest_ms;
        said = memmem(status.json.data, status.json.len, words, strlen(words)) != NULL;
        poll(NULL, 0, 20);
    }
    return longest_ms;
}

static void a_lane_whose_name_nobody_answers_for_stalls_nobody_and_is_told_of(void **state)
{
    struct world *world = *state;
    void *push = world_socket(world, ZMQ_PUSH, world->sink, false);
    fake_add(world, STAGE_INIT);
    fake_add(world, STAGE_RUN);
    fake_add(world, STAGE_EVAL);
    const char *lane = "tcp://silent.test:20417";
    int64_t longest_ms = ask_until(world, push, lane, "\"state\":\"unreached\"");
    submit(world, "a", 4, false);
    int64_t while_asked_ms = ask_until(world, push, lane, "no name server has answered");
    assert_true(longest_ms < 2000 && while_asked_ms < 2000);
    ask_until(world, push, lane, "\"ok\":4"); /* the others' rollouts end */
    zmq_close(push);
}

static void a_lane_with_a_name_is_connected_once_the_name_is_known(void **state)
{
    struct world *world = *state;
    struct fake *fake = fake_add(world, STAGE_INIT);
    zmq_close(fake->pull);
    fake->pull = world_socket(world, ZMQ_PULL, "tcp://127.0.0.1:*", true);
    char bound[64];
    size_t size = sizeof(bound);
    zmq_getsockopt(fake->pull, ZMQ_LAST_ENDPOINT, bound, &size);
    snprintf(fake->lane, sizeof(fake->lane), "tcp://node7.test%s", strrchr(bound, ':'));
    submit(world, "a", 1, false);
    world_until(world, fake->epoch == 1 && fake->started == 1);
}

static void a_lane_whose_name_nobody_has_says_why_and_what_to_do(void **state)
{
    struct world *world = *state;
    void *push = world_socket(world, ZMQ_PUSH, world->sink, false);
    ask_until(world, push, "tcp://nobody.test:20417", gai_strerror(EAI_NONAME));
    ask_until(world, push, "tcp://nobody.test:20417", "--advertise");
    zmq_close(push);
}

int main(int argc, char **argv)
{
    if (world_is_broker(argc, argv))
        return world_be_broker(argc, argv);
#define NAMES(name) cmocka_unit_test_setup_teardown(name, names_set_up, names_tear_down)
#define TEST(name) cmocka_unit_test_setup_teardown(name, listed_set_up, world_tear_down)
    const struct CMUnitTest tests[] = {
        NAMES(a_name_is_looked_up_once_and_known_from_then_on),
        NAMES(an_old_address_counts_until_there_is_a_new_one),
        NAMES(a_name_that_nobody_has_fails_and_is_asked_for_again_later),
        NAMES(silence_fails_in_time_and_keeps_no_other_name_waiting),
        NAMES(more_names_than_there_are_places_wait_for_one),
        NAMES(what_is_no_name_is_asked_of_nobody),
        TEST(a_lane_whose_name_nobody_answers_for_stalls_nobody_and_is_told_of),
        TEST(a_lane_with_a_name_is_connected_once_the_name_is_known),
        TEST(a_lane_whose_name_nobody_has_says_why_and_what_to_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
