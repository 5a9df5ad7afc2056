/* fake_broker_state.h - what the two files of the fake broker share; only its thread touches it. */
#ifndef SLUICE_TESTS_CLIENT_FAKE_BROKER_STATE_H
#define SLUICE_TESTS_CLIENT_FAKE_BROKER_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "common/base/buffer.h"
#include "tests/client/fake_broker.h"

enum { GROUPS_MAX = 4096 };

struct kept {
    char rollout[128], group[97];
    unsigned sample;
    bool broken;
};

struct fake_broker {
    pthread_t thread;
    void *context, *orders_in, *orders_out; /* orders: an inproc PAIR that says whose turn it is */
    _Atomic(struct order *) order;          /* handed over by an atomic: ThreadSanitizer sees no inproc */
    void *front, *feed;
    int port;
    char secret[41]; /* of CURVE; "": plaintext */
    char url[64], stream[65], topic[72];
    uint64_t epoch, start_id, first, head, pending, capacity, acked;
    struct kept *kept; /* number n is kept[n - 1] */
    unsigned subscribers, ignore, full, counts[MESSAGE_COUNT];
    enum refusal_reason refuse_with;
    enum message_id refuse_only; /* unless refuses_any */
    char refuse_text[256];
    char spice[64];
    char warning[256], status[4096], next_status[4096], last_options[256];
    char told_options[256]; /* a copy, which only who asks for it sees change */
    uint64_t done_count;
    int feed_queue; /* messages FEED keeps for a subscriber, 0: all */
    bool garbage, answers_done, finish_at_once, for_good, knows_stream, holds_head, refuses_any;
    struct {
        char name[97];
        char *content;
    } groups[GROUPS_MAX];
    unsigned group_count;
};

/* Like assert, in every build. */
void fake_need(bool good, const char *what);

bool fake_bind(struct fake_broker *broker, int port);
void fake_unbind(struct fake_broker *broker);
void fake_keep(struct fake_broker *broker, const char *group, unsigned sample, bool broken);
void fake_send_kept(struct fake_broker *broker, const char *topic, const char *stream, uint64_t seq);
void fake_send_head(struct fake_broker *broker);
void fake_take_request(struct fake_broker *broker);
void fake_take_subscription(struct fake_broker *broker);

#endif
