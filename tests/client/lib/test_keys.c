/* A client's key: which files are taken, what the other side's lack of one looks like, and when. */
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <zmq.h>

#include "common/net/keys.h"
#include "tests/client/lib/stream_world.h"

enum { SHORT_MS = 2000 };

static struct key broker_key;
static char folder[64], alice_key[96];

static void write_key(const char *path, enum key_role role, const char *name, const char *broker)
{
    struct key key = {.role = role};
    struct fail fail;
    strcpy(key.name, name);
    strcpy(key.broker_text, broker);
    assert_int_equal(zmq_curve_keypair(key.public_text, key.secret_text), 0);
    if (key_write(path, &key, &fail))
        fail_msg("%s", fail.text);
}

static int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/sluice-keys-XXXXXX");
    assert_non_null(mkdtemp(folder));
    assert_int_equal(zmq_curve_keypair(broker_key.public_text, broker_key.secret_text), 0);
    snprintf(alice_key, sizeof(alice_key), "%s/alice.key", folder);
    write_key(alice_key, ROLE_TRAINER, "alice", broker_key.public_text);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    char command[96];
    snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    return system(command);
}

static void lock(struct fixture *f) { fake_lock(f->broker, broker_key.secret_text); }

/* Connected anew, as it is before a first request. */
static void connect_with(struct fixture *f, const char *path)
{
    sluice_close(&f->client);
    f->client = sluice_connect(fake_url(f->broker));
    sluice_set_timeout(f->client, SHORT_MS);
    if (path && sluice_set_key(f->client, path))
        fail_msg("%s", sluice_error(f->client));
}

static void expect_shut_out(struct fixture *f, const char *words)
{
    const char *text;
    assert_int_equal(sluice_status(f->client, &text), -EACCES);
    if (!strstr(sluice_error(f->client), words))
        fail_msg("not '%s' in: %s", words, sluice_error(f->client));
}

static void with_its_key_a_client_asks_and_reads(void **state)
{
    struct fixture *f = *state;
    const char *text;
    lock(f);
    connect_with(f, alice_key);
    sluice_set_timeout(f->client, SOON_MS);
    assert_int_equal(sluice_status(f->client, &text), 0);
    subscribe(f, 0);
    fake_add(f->broker, true);
    expect(f, 1, 1); /* FEED takes it too */
}

static void the_key_of_the_environment_is_taken_and_none_undoes_it(void **state)
{
    struct fixture *f = *state;
    const char *text;
    setenv("SLUICE_KEY", alice_key, 1);
    connect_with(f, NULL);
    unsetenv("SLUICE_KEY");
    lock(f);
    sluice_set_timeout(f->client, SOON_MS);
    assert_int_equal(sluice_status(f->client, &text), 0);
    fake_lock(f->broker, "");
    setenv("SLUICE_KEY", alice_key, 1);
    connect_with(f, NULL);
    unsetenv("SLUICE_KEY");
    assert_int_equal(sluice_set_key(f->client, NULL), 0);
    assert_int_equal(sluice_status(f->client, &text), 0);
}

static void without_a_key_a_broker_that_wants_one_says_so(void **state)
{
    struct fixture *f = *state;
    lock(f);
    connect_with(f, NULL);
    expect_shut_out(f, "want"); /* it does, or perhaps: by which side closed first */
}

static void with_a_key_a_broker_that_speaks_plaintext_says_so(void **state)
{
    struct fixture *f = *state;
    connect_with(f, alice_key);
    expect_shut_out(f, "speaks plaintext");
}

static void a_key_that_names_another_broker_is_told_from_silence(void **state)
{
    struct fixture *f = *state;
    struct key other;
    char path[96];
    assert_int_equal(zmq_curve_keypair(other.public_text, other.secret_text), 0);
    snprintf(path, sizeof(path), "%s/other.key", folder);
    write_key(path, ROLE_ADMIN, "root", other.public_text);
    lock(f);
    connect_with(f, path);
    expect_shut_out(f, "broke off the handshake: its key is not the one that");
}

/* It takes a connection, ends before the handshake does, and is not there any more. */
static void a_broker_that_is_killed_in_a_handshake_is_silent_and_wants_no_key(void **state)
{
    struct fixture *f = *state;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    char url[64];
    const char *text;
    int listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listening, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(listening, 1), 0);
    assert_int_equal(getsockname(listening, (struct sockaddr *)&address, &size), 0);
    snprintf(url, sizeof(url), "tcp://127.0.0.1:%u", ntohs(address.sin_port));
    sluice_close(&f->client);
    f->client = sluice_connect(url);
    sluice_set_timeout(f->client, 1);
    assert_int_equal(sluice_status(f->client, &text), -ETIMEDOUT); /* connects */
    int taken = accept(listening, NULL, NULL);
    assert_true(taken >= 0);
    close(taken);
    close(listening);
    sluice_set_timeout(f->client, SHORT_MS);
    assert_int_equal(sluice_status(f->client, &text), -ETIMEDOUT);
    assert_non_null(strstr(sluice_error(f->client), "no broker answers at"));
}

static void a_client_that_was_shut_out_comes_in_once_the_broker_is_the_right_one(void **state)
{
    struct fixture *f = *state;
    const char *text;
    connect_with(f, alice_key);
    expect_shut_out(f, "speaks plaintext");
    lock(f);
    sluice_set_timeout(f->client, SOON_MS);
    assert_int_equal(sluice_status(f->client, &text), 0);
}

static void files_that_are_no_key_of_a_client_are_refused_by_name(void **state)
{
    struct fixture *f = *state;
    const char *text;
    char worker[96], open[96], none[96];
    snprintf(worker, sizeof(worker), "%s/node7.key", folder);
    snprintf(open, sizeof(open), "%s/open.key", folder);
    snprintf(none, sizeof(none), "%s/none.key", folder);
    write_key(worker, ROLE_WORKER, "node7", broker_key.public_text);
    write_key(open, ROLE_TRAINER, "bob", broker_key.public_text);
    assert_int_equal(chmod(open, 0644), 0);
    assert_int_equal(sluice_set_key(f->client, worker), -EINVAL);
    assert_non_null(strstr(sluice_error(f->client),
                           "is the key of node7, whose role is worker: name a trainer's or an admin's key"));
    assert_int_equal(sluice_set_key(f->client, none), -ENOENT);
    assert_non_null(strstr(sluice_error(f->client), none));
    assert_int_equal(sluice_set_key(f->client, open), -EACCES);
    assert_non_null(strstr(sluice_error(f->client), open));
    assert_int_equal(sluice_status(f->client, &text), -EACCES); /* and nothing is sent without it */
    assert_int_equal(fake_count(f->broker, MSG_status_get), 0);
    assert_int_equal(sluice_set_key(f->client, NULL), 0);
    assert_int_equal(sluice_status(f->client, &text), 0);
}

static void a_key_after_the_first_request_is_refused_and_reading_goes_on(void **state)
{
    struct fixture *f = *state;
    lock(f);
    connect_with(f, alice_key);
    sluice_set_timeout(f->client, SOON_MS);
    subscribe(f, 0);
    assert_int_equal(sluice_set_key(f->client, alice_key), -EBUSY);
    assert_non_null(strstr(sluice_error(f->client), "a client's key comes before its first request"));
    assert_int_equal(sluice_set_key(f->client, NULL), -EBUSY);
    fake_add(f->broker, true);
    fake_add(f->broker, false); /* fetched: FRONT is there too */
    fake_publish_head(f->broker);
    expect(f, 1, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(with_its_key_a_client_asks_and_reads),
        CASE(the_key_of_the_environment_is_taken_and_none_undoes_it),
        CASE(without_a_key_a_broker_that_wants_one_says_so),
        CASE(with_a_key_a_broker_that_speaks_plaintext_says_so),
        CASE(a_key_that_names_another_broker_is_told_from_silence),
        CASE(a_broker_that_is_killed_in_a_handshake_is_silent_and_wants_no_key),
        CASE(a_client_that_was_shut_out_comes_in_once_the_broker_is_the_right_one),
        CASE(files_that_are_no_key_of_a_client_are_refused_by_name),
        CASE(a_key_after_the_first_request_is_refused_and_reading_goes_on),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
