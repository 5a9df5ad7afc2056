/* Who is let in: the certificate directory, and the handler that libzmq asks. */
#include "tests/broker/net/key_place.h"

#include <dirent.h>
#include <errno.h>

#include "broker/net/auth.h"
#include "common/base/cleanup.h"
#include "common/base/clock.h"

enum { WAIT_MS = 10000 };

struct scene {
    char dir[32];
    struct key_place place;
    void *context;
    struct auth auth;
    struct key alice, worker, admin;
};

static int set_up(void **state)
{
    struct scene *scene = calloc(1, sizeof(*scene));
    struct fail fail;
    char keys[64];
    strcpy(scene->dir, "/tmp/sluice-zap-XXXXXX");
    assert_non_null(mkdtemp(scene->dir));
    snprintf(keys, sizeof(keys), "%s/keys", scene->dir);
    key_place_make(&scene->place, keys);
    scene->alice = key_place_add(&scene->place, ROLE_TRAINER, "alice");
    scene->worker = key_place_add(&scene->place, ROLE_WORKER, "w1");
    scene->admin = key_place_add(&scene->place, ROLE_ADMIN, "root");
    scene->context = zmq_ctx_new();
    assert_int_equal(auth_open(&scene->auth, scene->context, keys, &fail), 0);
    *state = scene;
    return 0;
}

static int tear_down(void **state)
{
    struct scene *scene = *state;
    char command[64];
    auth_close(&scene->auth);
    zmq_ctx_term(scene->context);
    snprintf(command, sizeof(command), "rm -rf %s", scene->dir);
    assert_int_equal(system(command), 0);
    free(scene);
    return 0;
}

/* ---- the handler ----------------------------------------------------------------------------- */

struct frame {
    const char *bytes;
    size_t len;
};

/* Asks as libzmq does; the answer's six frames. */
static void ask(struct scene *scene, const struct frame *frames, size_t count, char ret[6][128])
{
    void *request = zmq_socket(scene->context, ZMQ_REQ);
    int wait_ms = WAIT_MS, none = 0;
    zmq_setsockopt(request, ZMQ_RCVTIMEO, &wait_ms, sizeof(wait_ms));
    zmq_setsockopt(request, ZMQ_LINGER, &none, sizeof(none));
    assert_int_equal(zmq_connect(request, "inproc://zeromq.zap.01"), 0);
    for (size_t i = 0; i < count; i++)
        assert_true(zmq_send(request, frames[i].bytes, frames[i].len, i + 1 < count ? ZMQ_SNDMORE : 0) >= 0);
    for (size_t i = 0; i < 6; i++) {
        int len = zmq_recv(request, ret[i], 127, 0), more;
        size_t size = sizeof(more);
        assert_true(len >= 0);
        ret[i][len] = '\0';
        assert_int_equal(zmq_getsockopt(request, ZMQ_RCVMORE, &more, &size), 0);
        assert_int_equal(more, i < 5);
    }
    zmq_close(request);
}

static const char *ask_curve(struct scene *scene, const char *domain, const struct key *key, char ret[6][128])
{
    uint8_t bytes[32];
    zmq_z85_decode(bytes, key->public_text);
    const struct frame frames[] = {{"1.0", 3}, {"id", 2},    {domain, strlen(domain)}, {"1.2.3.4", 7},
                                   {"", 0},    {"CURVE", 5}, {(const char *)bytes, 32}};
    ask(scene, frames, 7, ret);
    return ret[2];
}

static void each_socket_takes_its_roles_and_the_user_is_the_key(void **state)
{
    struct scene *scene = *state;
    struct key stranger = key_make(ROLE_ADMIN, "root");
    const struct {
        const char *domain;
        bool alice, worker, admin;
    } cases[] = {{"front", true, false, true}, {"feed", true, false, true},     {"sink", false, true, false},
                 {"lane", false, true, false}, {"cellar", false, false, false}, {"", false, false, false}};
    char answer[6][128];
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const struct {
            const struct key *key;
            bool is_let_in;
        } asks[] = {{&scene->alice, cases[i].alice},
                    {&scene->worker, cases[i].worker},
                    {&scene->admin, cases[i].admin},
                    {&stranger, false},
                    {&scene->place.broker, false}};
        for (size_t k = 0; k < sizeof(asks) / sizeof(*asks); k++) {
            const char *code = ask_curve(scene, cases[i].domain, asks[k].key, answer);
            assert_string_equal(code, asks[k].is_let_in ? "200" : "400");
            assert_string_equal(answer[0], "1.0");
            assert_string_equal(answer[1], "id");
            assert_string_equal(answer[4], asks[k].is_let_in ? asks[k].key->public_text : "");
        }
    }
}

static void what_is_no_request_is_answered_400_and_the_next_one_as_ever(void **state)
{
    struct scene *scene = *state;
    char long_text[1024], answer[6][128];
    memset(long_text, 'x', sizeof(long_text));
    const struct frame cases[][9] = {
        {{"", 0}},
        {{"1.0", 3}},
        {{"2.0", 3}, {"id", 2}, {"front", 5}, {"", 0}, {"", 0}, {"CURVE", 5}, {long_text, 32}},
        {{"1.0", 3}, {"id", 2}, {"front", 5}, {"", 0}, {"", 0}, {"CURVE", 5}, {long_text, 31}},
        {{"1.0", 3}, {"id", 2}, {"front", 5}, {"", 0}, {"", 0}, {"NULL", 4}},
        {{"1.0", 3}, {"id", 2}, {"front", 5}, {"", 0}, {"", 0}, {"PLAIN", 5}, {"a", 1}, {"b", 1}},
        {{"1.0", 3}, {"id", 2}, {"front", 5}, {"", 0}, {"", 0}, {"CURVE", 5}, {long_text, 32}, {"", 0}, {"", 0}},
        {{"1.0", 3}, {"id", 2}, {long_text, 1024}, {"", 0}, {"", 0}, {"CURVE", 5}, {long_text, 32}},
    };
    const size_t counts[] = {1, 1, 7, 7, 6, 8, 9, 7};
    for (size_t i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
        ask(scene, cases[i], counts[i], answer);
        assert_string_equal(answer[2], "400");
        assert_string_equal(answer[4], "");
    }
    assert_string_equal(ask_curve(scene, "front", &scene->alice, answer), "200");
}

/* ---- the directory --------------------------------------------------------------------------- */

static bool knows(struct scene *scene, const struct key *key)
{
    struct cert who;
    return certs_find(scene->auth.certs, key->public_text, &who);
}

#define until(expression)                                                                                              \
    do {                                                                                                               \
        int64_t end_ms_ = clock_ms() + WAIT_MS;                                                                        \
        while (!(expression))                                                                                          \
            if (clock_ms() > end_ms_)                                                                                  \
                fail_msg("waited too long for %s", #expression);                                                       \
            else                                                                                                       \
                zmq_poll(NULL, 0, 5);                                                                                  \
    } while (0)

static void adding_and_removing_a_file_counts_without_a_restart(void **state)
{
    struct scene *scene = *state;
    uint64_t removed = certs_removed(scene->auth.certs);
    struct key bob = key_place_add(&scene->place, ROLE_TRAINER, "bob");
    until(knows(scene, &bob));
    assert_int_equal(certs_removed(scene->auth.certs), removed);
    key_place_remove(&scene->place, ROLE_TRAINER, "bob");
    until(!knows(scene, &bob));
    assert_int_equal(certs_removed(scene->auth.certs), removed + 1);
    assert_true(knows(scene, &scene->alice));
}

static void a_name_with_a_new_key_does_not_let_the_old_one_in(void **state)
{
    struct scene *scene = *state;
    key_place_remove(&scene->place, ROLE_TRAINER, "alice");
    struct key again = key_place_add(&scene->place, ROLE_TRAINER, "alice");
    until(knows(scene, &again));
    assert_false(knows(scene, &scene->alice));
}

static void a_certificate_in_the_wrong_place_makes_nobody_known(void **state)
{
    struct scene *scene = *state;
    struct fail fail;
    struct key trainer = key_make(ROLE_TRAINER, "carol"), misnamed = key_make(ROLE_ADMIN, "dave"), bob;
    char path[192];
    key_wipe(&trainer);
    key_wipe(&misnamed);
    key_place_path(&scene->place, ROLE_ADMIN, "carol", path); /* a trainer among the admins */
    assert_int_equal(key_write(path, &trainer, &fail), 0);
    key_place_path(&scene->place, ROLE_ADMIN, "eve", path);
    assert_int_equal(key_write(path, &misnamed, &fail), 0);
    key_place_path(&scene->place, ROLE_ADMIN, "garbage", path);
    FILE *file = fopen(path, "w");
    assert_true(file && fputs("\x01\x02", file) >= 0 && fclose(file) == 0);
    bob = key_place_add(&scene->place, ROLE_TRAINER, "bob");
    until(knows(scene, &bob)); /* so it has been read */
    assert_false(knows(scene, &trainer));
    assert_false(knows(scene, &misnamed));
}

static void a_key_in_two_roles_is_nobodys(void **state)
{
    struct scene *scene = *state;
    struct fail fail;
    struct key shown = scene->alice;
    char path[192];
    key_wipe(&shown);
    shown.role = ROLE_ADMIN;
    key_place_path(&scene->place, ROLE_ADMIN, "alice", path);
    assert_int_equal(key_write(path, &shown, &fail), 0);
    until(!knows(scene, &scene->alice));
    assert_true(knows(scene, &scene->admin));
}

static bool is_disk_failing;

struct dirent *__real_readdir(DIR *stream);
struct dirent *__wrap_readdir(DIR *stream);

struct dirent *__wrap_readdir(DIR *stream)
{
    if (!is_disk_failing)
        return __real_readdir(stream);
    errno = EIO;
    return NULL;
}

static void a_folder_that_cannot_be_read_whole_leaves_its_keys_as_they_were(void **state)
{
    struct scene *scene = *state;
    assert_true(knows(scene, &scene->alice));
    is_disk_failing = true;
    struct key bob = key_place_add(&scene->place, ROLE_TRAINER, "bob");
    for (int64_t end_ms = clock_ms() + 2 * CERTS_LOOK_MS; clock_ms() < end_ms; zmq_poll(NULL, 0, 5))
        assert_true(knows(scene, &scene->alice) && !knows(scene, &bob));
    is_disk_failing = false;
    until(knows(scene, &bob));
    assert_true(knows(scene, &scene->alice));
}

static void without_a_broker_key_it_does_not_start_and_says_how_to_make_one(void **state)
{
    struct scene *scene = *state;
    struct certs *certs = NULL;
    struct fail fail;
    assert_int_equal(certs_open(&certs, scene->dir, &fail), -ENOENT);
    assert_non_null(strstr(fail.text, "sluice keys init"));
    assert_null(certs);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(each_socket_takes_its_roles_and_the_user_is_the_key),
        TEST(what_is_no_request_is_answered_400_and_the_next_one_as_ever),
        TEST(adding_and_removing_a_file_counts_without_a_restart),
        TEST(a_name_with_a_new_key_does_not_let_the_old_one_in),
        TEST(a_certificate_in_the_wrong_place_makes_nobody_known),
        TEST(a_key_in_two_roles_is_nobodys),
        TEST(a_folder_that_cannot_be_read_whole_leaves_its_keys_as_they_were),
        TEST(without_a_broker_key_it_does_not_start_and_says_how_to_make_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
