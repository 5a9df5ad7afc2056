/* fake_orders.c - the test's side of the fake broker: orders to its thread, and its life. */
#include "tests/client/fake_broker_state.h"

#include <stdlib.h>
#include <stdio.h>
#include <unistd.h>
#include <zmq.h>

#include "tests/port_claim.h"

/* The port was ours a moment ago; libzmq lets it go in its own time. */
static void come_back(struct fake_broker *broker)
{
    broker->start_id++;
    while (!fake_bind(broker, broker->port))
        zmq_poll(NULL, 0, 5);
}

/* ---- orders -------------------------------------------------------------------------------------- */

struct order {
    void (*run)(struct fake_broker *broker, struct order *order);
    const char *topic, *text;
    uint64_t number;
    unsigned count;
    bool flag;
};

static void *fake_main(void *arg)
{
    struct fake_broker *broker = arg;
    for (;;) {
        zmq_pollitem_t items[] = {{broker->orders_out, 0, ZMQ_POLLIN, 0},
                                  {broker->front, 0, ZMQ_POLLIN, 0},
                                  {broker->feed, 0, ZMQ_POLLIN, 0}};
        zmq_poll(items, broker->front ? 3 : 1, -1);
        if (broker->front && items[1].revents)
            fake_take_request(broker);
        if (broker->front && items[2].revents)
            fake_take_subscription(broker);
        if (items[0].revents) {
            char turn;
            zmq_recv(broker->orders_out, &turn, sizeof(turn), 0);
            struct order *order = atomic_load(&broker->order);
            if (order)
                order->run(broker, order);
            atomic_store(&broker->order, NULL);
            zmq_send(broker->orders_out, &turn, sizeof(turn), 0);
            if (!order)
                return NULL;
        }
    }
}

static void give(struct fake_broker *broker, struct order *order)
{
    char turn = 0;
    atomic_store(&broker->order, order);
    zmq_send(broker->orders_in, &turn, sizeof(turn), 0);
    zmq_recv(broker->orders_in, &turn, sizeof(turn), 0);
    fake_need(atomic_load(&broker->order) == NULL, "the order is carried out");
}

#define ORDER(name, ...)                                                                                               \
    static void do_##name(struct fake_broker *broker, struct order *order)                                             \
    {                                                                                                                  \
        (void)order;                                                                                                   \
        __VA_ARGS__                                                                                                    \
    }

ORDER(add, {
    fake_keep(broker, "g", (unsigned)broker->head % 1000, order->number);
    if (order->flag)
        fake_send_kept(broker, broker->topic, broker->stream, broker->head);
})
ORDER(add_many, {
    uint32_t dice = 12345;
    for (uint64_t i = 0; i < order->number; i++) {
        dice = dice * 1664525u + 1013904223u;
        fake_keep(broker, "g", (unsigned)broker->head % 1000, false);
        if ((dice >> 16) % 100 >= order->count)
            fake_send_kept(broker, broker->topic, broker->stream, broker->head);
    }
})
ORDER(publish, { fake_send_kept(broker, order->topic, order->text, order->number); })
ORDER(publish_head, { fake_send_head(broker); })
ORDER(publish_bytes, {
    zmq_send(broker->feed, order->topic, strlen(order->topic), ZMQ_SNDMORE);
    zmq_send(broker->feed, order->text, strlen(order->text), order->flag ? ZMQ_SNDMORE : 0);
    if (order->flag)
        zmq_send(broker->feed, "more", 4, 0);
})
ORDER(forget, { broker->first = order->number + 1; })
ORDER(restart, {
    fake_unbind(broker);
    come_back(broker);
    broker->epoch = order->flag ? 1 : broker->epoch + 1;
    if (order->flag)
        broker->head = 1;
})
ORDER(restore, {
    fake_unbind(broker);
    come_back(broker);
    broker->epoch++;
    broker->head = order->number;
    for (unsigned i = 0; i < order->count; i++)
        fake_keep(broker, "restored", i, false);
})
ORDER(empty, {
    fake_unbind(broker);
    come_back(broker);
    broker->first = 1;
    broker->head = 0;
    broker->pending = order->number;
    broker->knows_stream = true;
    for (unsigned i = 0; i < order->count; i++)
        fake_keep(broker, "other", i, false);
})
ORDER(drop_much, {
    fake_unbind(broker);
    broker->feed_queue = 1;
    come_back(broker);
})
ORDER(leave, { fake_unbind(broker); })
ORDER(return, {
    come_back(broker);
    broker->epoch++;
})
ORDER(ignore, { broker->ignore = order->count; })
ORDER(refuse, {
    broker->refuse_with = (enum refusal_reason)order->number;
    snprintf(broker->refuse_text, sizeof(broker->refuse_text), "%s", order->text);
    broker->for_good = order->flag;
    broker->refuse_only = (enum message_id)order->count;
    broker->refuses_any = order->count == MESSAGE_COUNT;
})
/* The sockets go and come back as a broker's that has this key. */
ORDER(lock, {
    fake_unbind(broker);
    snprintf(broker->secret, sizeof(broker->secret), "%s", order->text);
    come_back(broker);
})
ORDER(hold_head, { broker->holds_head = true; })
ORDER(spice, { snprintf(broker->spice, sizeof(broker->spice), "%s", order->text); })
ORDER(warn, { snprintf(broker->warning, sizeof(broker->warning), "%s", order->text); })
ORDER(status, { snprintf(broker->status, sizeof(broker->status), "%s", order->text); })
ORDER(next_status, { snprintf(broker->next_status, sizeof(broker->next_status), "%s", order->text); })
ORDER(count_done, { broker->done_count = order->number; })
ORDER(garbage, { broker->garbage = true; })
ORDER(answers_done, { broker->answers_done = true; })
ORDER(full, { broker->full = order->count; })
ORDER(finish, { broker->finish_at_once = order->flag; })
ORDER(stream, {
    snprintf(broker->stream, sizeof(broker->stream), "%s", order->text);
    snprintf(broker->topic, sizeof(broker->topic), "t/%s/", order->text);
})
ORDER(count, { order->count = broker->counts[order->number]; })
ORDER(groups, { order->count = broker->group_count; })
ORDER(acked, { order->number = broker->acked; })
ORDER(tell_options, { snprintf(broker->told_options, sizeof(broker->told_options), "%s", broker->last_options); })
ORDER(subscribers, { order->count = broker->subscribers; })

#define GIVE(...)                                                                                                      \
    struct order order = {__VA_ARGS__};                                                                                \
    give(broker, &order)

void fake_await_subscriber(struct fake_broker *broker)
{
    for (unsigned i = 0; i < 2000; i++) {
        GIVE(.run = do_subscribers);
        if (order.count > 0)
            return;
        zmq_poll(NULL, 0, 5);
    }
    fake_need(false, "a subscriber within ten seconds");
}

void fake_add(struct fake_broker *broker, bool published) { GIVE(.run = do_add, .flag = published); }

void fake_add_many(struct fake_broker *broker, uint64_t count, unsigned drop_percent)
{
    GIVE(.run = do_add_many, .number = count, .count = drop_percent);
}

void fake_add_broken(struct fake_broker *broker) { GIVE(.run = do_add, .flag = true, .number = 1); }

void fake_publish(struct fake_broker *broker, const char *topic, const char *stream, uint64_t seq)
{
    GIVE(.run = do_publish, .topic = topic, .text = stream, .number = seq);
}

void fake_publish_head(struct fake_broker *broker) { GIVE(.run = do_publish_head); }

void fake_publish_bytes(struct fake_broker *broker, const char *topic, const char *bytes, bool more)
{
    GIVE(.run = do_publish_bytes, .topic = topic, .text = bytes, .flag = more);
}

void fake_forget(struct fake_broker *broker, uint64_t seq) { GIVE(.run = do_forget, .number = seq); }

void fake_restart(struct fake_broker *broker, bool other_ledger) { GIVE(.run = do_restart, .flag = other_ledger); }

void fake_empty(struct fake_broker *broker, uint64_t count, uint64_t pending)
{
    GIVE(.run = do_empty, .number = pending, .count = (unsigned)count);
}

void fake_restore(struct fake_broker *broker, uint64_t seq, uint64_t count)
{
    GIVE(.run = do_restore, .number = seq, .count = (unsigned)count);
}

void fake_drop_much(struct fake_broker *broker) { GIVE(.run = do_drop_much); }
void fake_leave(struct fake_broker *broker) { GIVE(.run = do_leave); }
void fake_return(struct fake_broker *broker) { GIVE(.run = do_return); }
void fake_ignore(struct fake_broker *broker, unsigned count) { GIVE(.run = do_ignore, .count = count); }

void fake_refuse(struct fake_broker *broker, enum refusal_reason reason, const char *text)
{
    GIVE(.run = do_refuse, .number = reason, .text = text, .count = MESSAGE_COUNT);
}

void fake_refuse_for_good(struct fake_broker *broker, enum refusal_reason reason, const char *text)
{
    GIVE(.run = do_refuse, .number = reason, .text = text, .count = MESSAGE_COUNT, .flag = true);
}

void fake_refuse_one(struct fake_broker *broker, enum message_id id, enum refusal_reason reason, const char *text)
{
    GIVE(.run = do_refuse, .number = reason, .text = text, .count = (unsigned)id);
}

void fake_lock(struct fake_broker *broker, const char *secret) { GIVE(.run = do_lock, .text = secret); }

void fake_hold_head(struct fake_broker *broker) { GIVE(.run = do_hold_head); }

void fake_warn(struct fake_broker *broker, const char *text) { GIVE(.run = do_warn, .text = text); }

void fake_spice(struct fake_broker *broker, const char *text) { GIVE(.run = do_spice, .text = text); }

void fake_set_status(struct fake_broker *broker, const char *json) { GIVE(.run = do_status, .text = json); }

void fake_set_next_status(struct fake_broker *broker, const char *json) { GIVE(.run = do_next_status, .text = json); }

void fake_count_done(struct fake_broker *broker, uint64_t count) { GIVE(.run = do_count_done, .number = count); }

void fake_answer_garbage(struct fake_broker *broker) { GIVE(.run = do_garbage); }
void fake_answer_done(struct fake_broker *broker) { GIVE(.run = do_answers_done); }
void fake_be_full(struct fake_broker *broker, unsigned count) { GIVE(.run = do_full, .count = count); }

void fake_finish_at_once(struct fake_broker *broker, bool yes) { GIVE(.run = do_finish, .flag = yes); }

void fake_name_stream(struct fake_broker *broker, const char *name) { GIVE(.run = do_stream, .text = name); }

unsigned fake_count(struct fake_broker *broker, enum message_id id)
{
    GIVE(.run = do_count, .number = id);
    return order.count;
}

unsigned fake_groups(struct fake_broker *broker)
{
    GIVE(.run = do_groups);
    return order.count;
}

uint64_t fake_acked(struct fake_broker *broker)
{
    GIVE(.run = do_acked);
    return order.number;
}

const char *fake_last_options(struct fake_broker *broker)
{
    GIVE(.run = do_tell_options);
    return broker->told_options;
}

/* ---- life --------------------------------------------------------------------------------------------- */

struct fake_broker *fake_start(void)
{
    struct fake_broker *broker = calloc(1, sizeof(*broker));
    fake_need(broker, "memory");
    broker->context = zmq_ctx_new();
    broker->epoch = 3;
    broker->start_id = 90;
    broker->pending = 7;
    broker->first = 1;
    do
        broker->port = ports_claim(3);
    while (!fake_bind(broker, broker->port));
    snprintf(broker->url, sizeof(broker->url), "tcp://127.0.0.1:%d", broker->port);
    broker->orders_in = zmq_socket(broker->context, ZMQ_PAIR);
    broker->orders_out = zmq_socket(broker->context, ZMQ_PAIR);
    zmq_bind(broker->orders_out, "inproc://orders");
    zmq_connect(broker->orders_in, "inproc://orders");
    broker->done_count = 3;
    strcpy(broker->status, "{\"epoch\":3}");
    strcpy(broker->stream, "train");
    strcpy(broker->topic, "t/train/");
    pthread_create(&broker->thread, NULL, fake_main, broker);
    return broker;
}

void fake_stop(struct fake_broker **handle)
{
    struct fake_broker *broker = *handle;
    *handle = NULL;
    give(broker, NULL);
    pthread_join(broker->thread, NULL);
    if (broker->front)
        fake_unbind(broker);
    zmq_close(broker->orders_in);
    zmq_close(broker->orders_out);
    zmq_ctx_term(broker->context);
    for (unsigned i = 0; i < broker->group_count; i++)
        free(broker->groups[i].content);
    free(broker->kept);
    free(broker);
}

const char *fake_url(const struct fake_broker *broker) { return broker->url; }
