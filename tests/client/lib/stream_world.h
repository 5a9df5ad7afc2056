/* stream_world.h - a client that reads the fake broker's stream "train". */
#ifndef SLUICE_TESTS_CLIENT_LIB_STREAM_WORLD_H
#define SLUICE_TESTS_CLIENT_LIB_STREAM_WORLD_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "client/sluice.h"
#include "tests/client/fake_broker.h"

enum { SOON_MS = 20000, NOT_SO_SOON_MS = 100 };

struct fixture {
    struct fake_broker *broker;
    struct sluice_client *client;
    const struct sluice_trajectory *got;
};

static inline int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    f->broker = fake_start();
    f->client = sluice_connect(fake_url(f->broker));
    *state = f;
    return 0;
}

static inline int tear_down(void **state)
{
    struct fixture *f = *state;
    sluice_close(&f->client);
    fake_stop(&f->broker);
    free(f);
    return 0;
}

static inline void subscribe(struct fixture *f, uint64_t from)
{
    int failed = sluice_subscribe(f->client, "train", from);
    if (failed)
        fail_msg("%s", sluice_error(f->client));
    fake_await_subscriber(f->broker);
}

static inline void expect(struct fixture *f, uint64_t first, uint64_t last)
{
    for (uint64_t seq = first; seq <= last; seq++) {
        int failed = sluice_next(f->client, SOON_MS, &f->got);
        if (failed)
            fail_msg("number %llu: %s", (unsigned long long)seq, sluice_error(f->client));
        assert_int_equal(f->got->seq, seq);
    }
}

static inline void expect_nothing(struct fixture *f)
{
    assert_int_equal(sluice_next(f->client, NOT_SO_SOON_MS, &f->got), -EAGAIN);
    assert_null(f->got);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#endif
