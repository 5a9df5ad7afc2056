/* A tar as a source: what it holds that nothing becomes of is read, too, and not without end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/files/dirtree_remove.h"
#include "workers/sources/source.h"

enum { BLOCK = 512, MIB = 1 << 20 };

static char top[64];
static int root, file;
static atomic_bool stop;

static int set_up(void **state)
{
    (void)state;
    atomic_store(&stop, false);
    strcpy(top, "/tmp/sluice-tar-XXXXXX");
    root = mkdtemp(top) ? open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    file = root < 0 ? -1 : openat(root, ".", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
    return file < 0 ? -1 : 0;
}

static int tear_down(void **state)
{
    (void)state;
    close(file);
    close(root);
    return dirtree_remove(top);
}

/* A regular file of zeros, which the tar is sparse in. */
static void add(const char *name, unsigned size)
{
    char header[BLOCK] = "";
    unsigned sum = 0;
    snprintf(header, 100, "%s", name);
    strcpy(header + 100, "0000644");
    strcpy(header + 108, "0000000");
    strcpy(header + 116, "0000000");
    snprintf(header + 124, 12, "%011o", size);
    strcpy(header + 136, "00000000000");
    memset(header + 148, ' ', 8);
    header[156] = '0';
    memcpy(header + 257, "ustar\00000", 8);
    for (size_t i = 0; i < BLOCK; i++)
        sum += (unsigned char)header[i];
    snprintf(header + 148, 8, "%06o", sum);
    assert_int_equal(write(file, header, BLOCK), BLOCK);
    const off_t end = lseek(file, (size + BLOCK - 1) / BLOCK * BLOCK, SEEK_CUR);
    assert_true(end >= 0 && ftruncate(file, end) == 0);
}

static void end_tar(void)
{
    const off_t end = lseek(file, 2L * BLOCK, SEEK_END);
    assert_true(end >= 0 && ftruncate(file, end) == 0 && lseek(file, 0, SEEK_SET) == 0);
    assert_true(source_is_tar(file));
}

static int unpack(struct fail *fail)
{
    end_tar();
    return source_unpack(file, root, 1, &stop, fail);
}

static void what_is_passed_over_counts(void **state)
{
    struct fail fail = {0};
    (void)state;
    add(".", 8 * MIB);
    add("a", 1);
    assert_int_equal(unpack(&fail), -EINVAL);
    assert_non_null(strstr(fail.text, "it unpacks to more than 1048576 bytes"));
}

/* Once some of it has been read. */
static void *stop_it(void *arg)
{
    (void)arg;
    while (lseek(file, 0, SEEK_CUR) < 4 * MIB)
        sched_yield();
    atomic_store(&stop, true);
    return NULL;
}

static void what_is_passed_over_ends_when_it_is_stopped(void **state)
{
    struct fail fail = {0};
    pthread_t thread;
    (void)state;
    add(".", 4000U * MIB);
    end_tar();
    assert_int_equal(pthread_create(&thread, NULL, stop_it, NULL), 0);
    assert_int_equal(source_unpack(file, root, 8192, &stop, &fail), -ECANCELED);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static void a_little_is_passed_over(void **state)
{
    struct fail fail = {0};
    struct stat it;
    (void)state;
    add(".", MIB / 2);
    add("a", 1);
    assert_int_equal(unpack(&fail), 0);
    assert_true(fstatat(root, "a", &it, 0) == 0 && it.st_size == 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_passed_over_counts),
        TEST(what_is_passed_over_ends_when_it_is_stopped),
        TEST(a_little_is_passed_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
