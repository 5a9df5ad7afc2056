/* key_place.h - a certificate directory of a test's own, with keys that are made as they are asked for. */
#ifndef SLUICE_TESTS_BROKER_NET_KEY_PLACE_H
#define SLUICE_TESTS_BROKER_NET_KEY_PLACE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zmq.h>

#include "common/net/keys.h"

struct key_place {
    char dir[80];
    struct key broker;
};

static inline struct key key_make(enum key_role role, const char *name)
{
    struct key key = {.role = role};
    strcpy(key.name, name);
    assert_int_equal(zmq_curve_keypair(key.public_text, key.secret_text), 0);
    return key;
}

static inline void key_place_make(struct key_place *place, const char *dir)
{
    static const char *const folders[] = {"", "/trusted", "/trusted/trainer", "/trusted/worker", "/trusted/admin"};
    char path[128];
    struct fail fail;
    snprintf(place->dir, sizeof(place->dir), "%s", dir);
    for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++) {
        snprintf(path, sizeof(path), "%s%s", dir, folders[i]);
        assert_int_equal(mkdir(path, 0700), 0);
    }
    place->broker = key_make(ROLE_BROKER, "broker");
    snprintf(path, sizeof(path), "%s/broker.key", dir);
    assert_int_equal(key_write(path, &place->broker, &fail), 0);
}

static inline void key_place_path(const struct key_place *place, enum key_role role, const char *name, char ret[192])
{
    snprintf(ret, 192, "%s/trusted/%s/%s.pub", place->dir, key_role_name(role), name);
}

/* Makes it known; the key, with the broker's. */
static inline struct key key_place_add(struct key_place *place, enum key_role role, const char *name)
{
    char path[192];
    struct fail fail;
    struct key key = key_make(role, name), shown = key;
    key_wipe(&shown);
    key_place_path(place, role, name, path);
    assert_int_equal(key_write(path, &shown, &fail), 0);
    strcpy(key.broker_text, place->broker.public_text);
    return key;
}

static inline void key_place_remove(struct key_place *place, enum key_role role, const char *name)
{
    char path[192];
    key_place_path(place, role, name, path);
    assert_int_equal(unlink(path), 0);
}

#endif
