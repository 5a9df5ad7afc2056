/*
 * fake_broker.h - enough of a broker, in a thread, to test a client against: a ROUTER, an XPUB,
 * one stream kept in memory, and switches for what can go wrong. Calls come from the test's
 * thread and have taken effect when they return.
 */
#ifndef SLUICE_TESTS_CLIENT_FAKE_BROKER_H
#define SLUICE_TESTS_CLIENT_FAKE_BROKER_H

#include <stdbool.h>
#include <stdint.h>

#include "schemas/messages/message.h"

struct fake_broker;

/* On ports of its own; its one stream is "train", empty. */
struct fake_broker *fake_start(void);
void fake_stop(struct fake_broker **broker);
const char *fake_url(const struct fake_broker *broker);

/* Waits until a client has subscribed to FEED. */
void fake_await_subscriber(struct fake_broker *broker);

/* The stream's next trajectory, with a record of three tokens; published, or only kept. */
void fake_add(struct fake_broker *broker, bool published);
void fake_add_many(struct fake_broker *broker, uint64_t count, unsigned drop_percent);
/* One whose record cannot be read. */
void fake_add_broken(struct fake_broker *broker);
/* Publishes a kept number again, under any topic and stream name. */
void fake_publish(struct fake_broker *broker, const char *topic, const char *stream, uint64_t seq);
void fake_publish_head(struct fake_broker *broker);
void fake_publish_bytes(struct fake_broker *broker, const char *topic, const char *bytes, bool more);
/* Numbers up to seq are no longer kept. */
void fake_forget(struct fake_broker *broker, uint64_t seq);
/* The sockets go and come back, a start later; with another ledger the stream is empty again. */
void fake_restart(struct fake_broker *broker, bool other_ledger);
/* As an older back-up: a start later, what came after seq is gone and `count` others are there. */
void fake_restore(struct fake_broker *broker, uint64_t seq, uint64_t count);
/* As another ledger at its start of the same number: `count` others are there, and so many more under way; it knows
 * the stream also without any. */
void fake_empty(struct fake_broker *broker, uint64_t count, uint64_t pending);
/* FEED comes back with queues of one message: it drops what is not read at once. */
void fake_drop_much(struct fake_broker *broker);
/* As a broker with this secret key, which lets everybody in who knows its public one; "": plaintext. */
void fake_lock(struct fake_broker *broker, const char *secret);
/* The sockets go, and come back with fake_return. */
void fake_leave(struct fake_broker *broker);
void fake_return(struct fake_broker *broker);

/* The next `count` requests are not answered. */
void fake_ignore(struct fake_broker *broker, unsigned count);
/* The next fetch is answered with its trajectories and, until it comes again, no head. */
void fake_hold_head(struct fake_broker *broker);
/* The next request that is no fetch is refused so, or answered by garbage (REFUSAL_NONE). */
void fake_refuse(struct fake_broker *broker, enum refusal_reason reason, const char *text);
/* The next of this kind. */
void fake_refuse_one(struct fake_broker *broker, enum message_id id, enum refusal_reason reason, const char *text);
/* The same, and without saying when to try again. */
void fake_refuse_for_good(struct fake_broker *broker, enum refusal_reason reason, const char *text);
void fake_answer_garbage(struct fake_broker *broker);
/* The next request that is no fetch is answered with `done`, whatever it asks. */
void fake_answer_done(struct fake_broker *broker);
/* The first submits of these groups are refused queue-full. */
void fake_be_full(struct fake_broker *broker, unsigned count);
/* Accepted groups carry this warning. Until told otherwise: `done` counts so many, status is this. */
void fake_warn(struct fake_broker *broker, const char *text);
/* Every text of trajectories made from now on ends so, and none is trainable. */
void fake_spice(struct fake_broker *broker, const char *text);
void fake_count_done(struct fake_broker *broker, uint64_t count);
void fake_set_status(struct fake_broker *broker, const char *json);
/* The status after the next one. */
void fake_set_next_status(struct fake_broker *broker, const char *json);
/* Whether a submit makes and publishes its trajectories at once. */
void fake_finish_at_once(struct fake_broker *broker, bool yes);

void fake_name_stream(struct fake_broker *broker, const char *name);

/* How many of these requests came; how many groups there are; up to where it was acknowledged. */
unsigned fake_count(struct fake_broker *broker, enum message_id id);
unsigned fake_groups(struct fake_broker *broker);
uint64_t fake_acked(struct fake_broker *broker);
/* "priority=7 lease_ms=- ..." of the last submit, drain or back-up, '-' for what was not given. */
const char *fake_last_options(struct fake_broker *broker);

#endif
