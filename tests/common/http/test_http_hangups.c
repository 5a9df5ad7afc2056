/* Clients that hang up, say nothing, or stop in the middle: they are noticed, and keep nobody out. */
#include "tests/common/http/http_world.h"

#define HOST "Host: h\r\n"

enum { MANY = 200, IDLERS = 1000, IDLE_MS = 600 };

static void who_hangs_up_while_it_waits_is_gone(void **state)
{
    (void)state;
    static struct client clients[MANY];
    for (size_t i = 0; i < MANY; i++) {
        client_open(&clients[i]);
        client_say(&clients[i], "GET /wait HTTP/1.1\r\n" HOST "\r\n");
    }
    await_count("all wait", &owner.waiting_count, MANY);
    for (size_t i = 0; i < MANY; i++) {
        const struct linger rude = {.l_onoff = 1};
        if (i % 2)
            setsockopt(clients[i].fd, SOL_SOCKET, SO_LINGER, &rude, sizeof(rude));
        client_close(&clients[i]);
    }
    await_count("all are gone", &owner.gone, MANY);
    assert_int_equal(owner.whole, 0);
    assert_int_equal(owner.waiting_count, 0);
    assert_int_equal(http_server_connections(server), 0);
}

static bool are_gone(const void *arg)
{
    (void)arg;
    return owner.gone == owner.heard && http_server_connections(server) == 0;
}

/* At whatever point, nothing is left of it. Of one that sends a part and closes at once, only its silence is heard. */
static void who_hangs_up_in_a_request_leaves_nothing(void **state)
{
    (void)state;
    static const char whole[] = "POST /echo?a=b HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhello";
    for (size_t len = 0; len < sizeof(whole); len++) {
        struct client client;
        client_open(&client);
        client_say_bytes(&client, slice_of(whole, len));
        client_close(&client);
    }
    struct client last;
    client_open(&last);
    client_say(&last, "GET / HTTP/1.1\r\n" HOST "\r\n");
    client_await(&last, "fine");
    client_close(&last);
    await("all are gone", are_gone, NULL);
    assert_int_equal(http_server_held(server), 0);
}

/* ---- those that only keep others out --------------------------------------------------------------------- */

static int open_impatient(void **state)
{
    (void)state;
    struct http_server_plan plan = usual_plan();
    plan.idle_ms = IDLE_MS;
    plan.connections_max = IDLERS + 1;
    open_server(&plan);
    return 0;
}

static bool are_closed(const void *arg)
{
    const struct client *clients = arg;
    for (size_t i = 0; i < IDLERS; i++)
        if (!clients[i].is_closed)
            return false;
    return true;
}

static void who_says_nothing_is_sent_away_and_who_waits_is_not(void **state)
{
    (void)state;
    static struct client idlers[IDLERS];
    static const char *const said[] = {"", "GET /wait HTTP/1.1\r\nHo",
                                       "POST / HTTP/1.1\r\n" HOST "Content-Length: 9\r\n\r\nx",
                                       "GET / HTTP/1.1\r\n" HOST "\r\n"};
    struct client patient, late;
    client_open(&patient);
    client_say(&patient, "GET /wait HTTP/1.1\r\n" HOST "\r\n");
    await_count("one waits", &owner.waiting_count, 1);
    for (size_t i = 0; i < IDLERS; i++) {
        client_open(&idlers[i]);
        client_say(&idlers[i], said[i % 4]);
    }
    client_open(&late);
    client_say(&late, "GET / HTTP/1.1\r\n" HOST "\r\n");
    client_await(&late, "fine");
    await("idlers are closed", are_closed, idlers);
    assert_int_equal(owner.waiting_count, 1);
    answer_text(owner.waiting[0], 200, "at last");
    client_await(&patient, "at last");
    for (size_t i = 0; i < IDLERS; i++)
        client_close(&idlers[i]);
    client_close(&patient);
    client_close(&late);
}

static void say_more(void *arg)
{
    struct client *client = arg;
    if (client->is_closed)
        return;
    client_say(client, "y");
    loop_after(loop, 20, say_more, client);
}

static void who_never_comes_to_an_end_is_sent_away(void **state)
{
    (void)state;
    struct client client;
    client_open(&client);
    client_say(&client, "GET / HTTP/1.1\r\nX: ");
    say_more(&client);
    client_await_close(&client);
    client_close(&client);
}

/* Its kernel holds a part, ours another; the rest stays here. */
static void who_stops_to_read_its_answer_is_sent_away(void **state)
{
    (void)state;
    struct client client;
    client_open(&client);
    client_go_deaf(&client);
    client_say(&client, "GET /large?size=30000000 HTTP/1.1\r\n" HOST "\r\n");
    await_count("it is gone", &owner.gone, 1);
    assert_int_equal(owner.whole, 0);
    assert_int_equal(http_server_held(server), 0);
    client_close(&client);
}

static void read_some(void *arg)
{
    static char part[20000];
    struct client *client = arg;
    const ssize_t n = recv(client->fd, part, sizeof(part), MSG_DONTWAIT);
    client->out_at += n > 0 ? (size_t)n : 0; /* of nothing: counts what it has read */
    client->is_closed = n == 0 || (n < 0 && errno != EAGAIN);
    if (!client->is_closed)
        loop_after(loop, 10, read_some, client);
}

/* So slowly that the kernel takes nothing of it for longer than an idler is borne. */
static void who_reads_slowly_is_borne(void **state)
{
    (void)state;
    struct client client;
    client_open(&client);
    client_go_deaf(&client);
    client_say(&client, "GET /large?size=6000000 HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n");
    client.out_at = client.out.len = 0;
    loop_unwatch(loop, &client.watch);
    read_some(&client);
    client_await_close(&client);
    assert_true(client.out_at > 6000000);
    assert_int_equal(owner.whole, 1);
    client.out_at = 0;
    client_close(&client);
}

static void between_requests_a_connection_lives_for_a_while(void **state)
{
    (void)state;
    struct client client;
    client_open(&client);
    for (size_t i = 1; i <= 3; i++) {
        client_say(&client, "GET / HTTP/1.1\r\n" HOST "\r\n");
        client_await_times(&client, "fine", i);
    }
    client_await_close(&client);
    client_close(&client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(who_hangs_up_while_it_waits_is_gone, open_usual, close_server),
        cmocka_unit_test_setup_teardown(who_hangs_up_in_a_request_leaves_nothing, open_impatient, close_server),
        cmocka_unit_test_setup_teardown(who_says_nothing_is_sent_away_and_who_waits_is_not, open_impatient,
                                        close_server),
        cmocka_unit_test_setup_teardown(who_never_comes_to_an_end_is_sent_away, open_impatient, close_server),
        cmocka_unit_test_setup_teardown(who_stops_to_read_its_answer_is_sent_away, open_impatient, close_server),
        cmocka_unit_test_setup_teardown(who_reads_slowly_is_borne, open_impatient, close_server),
        cmocka_unit_test_setup_teardown(between_requests_a_connection_lives_for_a_while, open_impatient, close_server),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
