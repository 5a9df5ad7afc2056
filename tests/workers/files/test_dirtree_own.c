/* A file without rights that several open at the same time: of a layer that evaluations share. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>

#include "common/files/dirtree_remove.h"
#include "tests/workers/files/as_everyone.h"
#include "workers/files/dirtree.h"

enum { PROCESSES = 3, THREADS = 2, ROUNDS = 400 };

static char top[64];
static int dir;

static int set_up(void **state)
{
    (void)state;
    snprintf(top, sizeof(top), "/var/tmp/sluice-own-XXXXXX");
    if (!mkdtemp(top))
        return -1;
    dir = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return dir < 0 ? -1 : 0;
}

static int tear_down(void **state)
{
    (void)state;
    close(dir);
    return dirtree_remove(top);
}

/* What they have of it may be of the moment in which another has given it rights. */
static void *open_often(void *arg)
{
    static const mode_t seen[] = {S_IFREG, S_IFREG | 0400};
    char content[4];
    (void)arg;
    for (size_t i = 0; i < ROUNDS; i++) {
        const int file = dirtree_open_own(dir, "shut", O_RDONLY, seen[i % 2]);
        if (file < 0 || read(file, content, sizeof(content)) != 3)
            return &dir;
        close(file);
    }
    return NULL;
}

static int run_threads(void)
{
    pthread_t threads[THREADS];
    void *failed, *any = NULL;
    for (size_t i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, open_often, NULL) != 0)
            return 1;
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], &failed);
        any = failed ? failed : any;
    }
    return any != NULL;
}

static void several_open_a_file_without_rights_and_leave_it_so(void **state)
{
    struct stat it;
    struct fail fail = {0};
    pid_t pids[PROCESSES];
    (void)state;
    assert_int_equal(dirtree_write(dir, "shut", slice_from_str("abc"), 0, &fail), 0);
    for (size_t i = 0; i < PROCESSES; i++) {
        pids[i] = fork();
        assert_true(pids[i] >= 0);
        if (pids[i] == 0)
            _exit(run_threads());
    }
    for (size_t i = 0; i < PROCESSES; i++) {
        int status = 1;
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_int_equal(status, 0);
    }
    assert_int_equal(fstatat(dir, "shut", &it, 0), 0);
    assert_int_equal(it.st_mode & 07777, 0);
}

static void what_is_another_kind_of_thing_by_now_is_not_opened(void **state)
{
    struct fail fail = {0};
    (void)state;
    assert_int_equal(dirtree_write(dir, "shut", slice_from_str("abc"), 0, &fail), 0);
    if (geteuid() != 0)
        assert_int_equal(dirtree_open_own(dir, "shut", O_RDONLY, S_IFDIR), -1);
    assert_int_equal(dirtree_open_own(dir, "none", O_RDONLY, S_IFREG), -1);
    assert_int_equal(errno, ENOENT);
}

static int group(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(several_open_a_file_without_rights_and_leave_it_so, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_another_kind_of_thing_by_now_is_not_opened, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("files without rights", tests, NULL, NULL);
}

int main(void) { return run_as_all(group); }
