/* Key files: what is read, what is refused and why, and that nothing is overwritten. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/net/curve.h"

#define PUBLIC "Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID"
#define SECRET "D:)Q[IlAW!ahhC2ac:9*A}h:p?([4%wOTJ%JR%cs"
#define BROKER "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7"

struct place {
    char dir[32], path[64];
};

static int set_up(void **state)
{
    struct place *place = calloc(1, sizeof(*place));
    strcpy(place->dir, "/tmp/sluice-keys-XXXXXX");
    assert_non_null(mkdtemp(place->dir));
    snprintf(place->path, sizeof(place->path), "%s/a.key", place->dir);
    *state = place;
    return 0;
}

static int tear_down(void **state)
{
    struct place *place = *state;
    char command[64];
    snprintf(command, sizeof(command), "rm -rf %s", place->dir);
    assert_int_equal(system(command), 0);
    free(place);
    return 0;
}

static void put(const char *path, const char *text, mode_t mode)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0 && fclose(file) == 0);
    assert_int_equal(chmod(path, mode), 0);
}

static struct key alice(void)
{
    struct key key = {.role = ROLE_TRAINER};
    strcpy(key.name, "alice");
    strcpy(key.public_text, PUBLIC);
    strcpy(key.secret_text, SECRET);
    strcpy(key.broker_text, BROKER);
    return key;
}

static void what_is_written_is_what_is_read(void **state)
{
    struct place *place = *state;
    struct key key = alice(), read = {0};
    struct fail fail;
    struct stat info;
    assert_int_equal(key_write(place->path, &key, &fail), 0);
    assert_int_equal(key_read_own(place->path, &read, &fail), 0);
    assert_memory_equal(&read, &key, sizeof(key));
    assert_int_equal(stat(place->path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
}

static void nothing_is_overwritten_and_nothing_is_left_beside_it(void **state)
{
    struct place *place = *state;
    struct key key = alice();
    struct fail fail;
    char command[96];
    assert_int_equal(key_write(place->path, &key, &fail), 0);
    strcpy(key.name, "mallory");
    assert_int_equal(key_write(place->path, &key, &fail), -EEXIST);
    assert_non_null(strstr(fail.text, "exists already"));
    assert_int_equal(key_read(place->path, &key, &fail), 0);
    assert_string_equal(key.name, "alice");
    snprintf(command, sizeof(command), "test \"$(ls %s)\" = a.key", place->dir);
    assert_int_equal(system(command), 0);
}

static void a_secret_that_others_can_read_is_refused_and_a_certificate_is_not(void **state)
{
    struct place *place = *state;
    struct key key = alice();
    struct fail fail;
    assert_int_equal(key_write(place->path, &key, &fail), 0);
    static const mode_t open_modes[] = {0640, 0604, 0610, 0602};
    for (size_t i = 0; i < sizeof(open_modes) / sizeof(*open_modes); i++) {
        assert_int_equal(chmod(place->path, open_modes[i]), 0);
        assert_int_equal(key_read(place->path, &key, &fail), -EACCES);
        assert_non_null(strstr(fail.text, "chmod 600"));
    }
    put(place->path, "role worker\nname w\npublic " PUBLIC "\n", 0644);
    assert_int_equal(key_read(place->path, &key, &fail), 0);
    assert_int_equal(key_read_own(place->path, &key, &fail), -EINVAL);
    assert_non_null(strstr(fail.text, "certificate"));
}

static void a_file_that_is_no_key_is_refused_by_its_line(void **state)
{
    struct place *place = *state;
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"", "the line `role` is missing"},
        {"role trainer\n", "the line `name` is missing"},
        {"role trainer\nname a\n", "the line `public` is missing"},
        {"role king\n", "line 1 is not a role"},
        {"role trainer\nrole admin\n", "line 2 says its role twice"},
        {"role trainer\nname ../../etc/passwd\n", "line 2 is not a name"},
        {"name .hidden\n", "line 1 is not a name"},
        {"name -rf\n", "line 1 is not a name"},
        {"\n\npublic short\n", "line 3 is not a key"},
        {"public " PUBLIC "x\n", "line 1 is not a key"},
        {"public Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{h~D\n", "line 1 is not a key"},
        {"colour blue\n", "begins with none of"},
        {"role\n", "not of the form"},
        {"role trainer admin\n", "not of the form"},
        {"role "
         "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
         "aaaaa\n",
         "line 1"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct key key;
        struct fail fail;
        put(place->path, cases[i].text, 0600);
        assert_int_equal(key_read(place->path, &key, &fail), -EINVAL);
        assert_non_null(strstr(fail.text, place->path));
        if (!strstr(fail.text, cases[i].words))
            fail_msg("%s\n says %s", cases[i].text, fail.text);
    }
}

static void what_is_not_a_small_text_file_is_refused_without_waiting(void **state)
{
    struct place *place = *state;
    struct key key;
    struct fail fail;
    assert_int_equal(mkfifo(place->path, 0600), 0);
    assert_int_equal(key_read(place->path, &key, &fail), -EINVAL);
    unlink(place->path);
    assert_int_equal(key_read(place->path, &key, &fail), -ENOENT);
    assert_int_equal(key_read(place->dir, &key, &fail), -EINVAL);
    char big[KEY_FILE_MAX + 16];
    memset(big, '#', sizeof(big));
    big[sizeof(big) - 1] = '\0';
    put(place->path, big, 0600);
    assert_int_equal(key_read(place->path, &key, &fail), -EINVAL);
}

static void only_this_machine_is_local(void **state)
{
    (void)state;
    static const char *const local[] = {"ipc:///tmp/x",         "tcp://127.0.0.1:5750", "tcp://127.3.2.1:1",
                                        "tcp://localhost:5750", "tcp://[::1]:5750",     "tcp://127.0.0.1"};
    static const char *const far[] = {"tcp://10.0.0.1:5750",
                                      "tcp://0.0.0.0:5750",
                                      "tcp://*:5750",
                                      "tcp://127.0.0.1.example.com:5750",
                                      "tcp://[::]:5750",
                                      "",
                                      "tcp://localhost.example.com:1",
                                      "tcp://128.0.0.1:1",
                                      "udp://127.0.0.1"};
    for (size_t i = 0; i < sizeof(local) / sizeof(*local); i++)
        assert_true(endpoint_is_local(local[i]));
    for (size_t i = 0; i < sizeof(far) / sizeof(*far); i++)
        assert_false(endpoint_is_local(far[i]));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(what_is_written_is_what_is_read),
        TEST(nothing_is_overwritten_and_nothing_is_left_beside_it),
        TEST(a_secret_that_others_can_read_is_refused_and_a_certificate_is_not),
        TEST(a_file_that_is_no_key_is_refused_by_its_line),
        TEST(what_is_not_a_small_text_file_is_refused_without_waiting),
        cmocka_unit_test(only_this_machine_is_local),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
