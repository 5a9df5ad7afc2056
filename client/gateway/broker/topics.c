#include "client/gateway/broker/topics.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "common/base/cleanup.h"
#include "common/containers/table.h"

enum { MESSAGES_A_TURN = 256 };

struct topic {
    struct list listenings;
    struct list *next; /* while it is told: who hears next */
    char name[TOPIC_SIZE];
};

struct topics {
    struct loop *loop;
    struct caller *caller;
    void *socket; /* NULL: nobody listens, or it could not be made */
    uint64_t made;
    struct loop_watch *watch;
    struct loop_soon again;
    struct table names;
};

static void on_event(void *arg, uint32_t events)
{
    (void)arg;
    (void)events; /* topics_work reads, before the loop waits again */
}

static void close_socket(struct topics *topics)
{
    loop_unwatch(topics->loop, &topics->watch);
    if (topics->socket)
        zmq_close(take_ptr(&topics->socket));
}

static void subscribe(struct topics *topics, const struct topic *topic, int option)
{
    if (topics->socket)
        zmq_setsockopt(topics->socket, option, topic->name, strlen(topic->name));
}

/* Its subscriptions are made again with it. */
static void open_socket(struct topics *topics)
{
    int fd;
    size_t size = sizeof(fd), at = 0;
    close_socket(topics);
    topics->made = caller_made(topics->caller);
    topics->socket = caller_subscriber(topics->caller);
    if (!topics->socket)
        return;
    if (zmq_getsockopt(topics->socket, ZMQ_FD, &fd, &size) == 0)
        topics->watch = loop_watch(topics->loop, fd, EPOLLIN, on_event, NULL);
    for (const struct topic *topic; (topic = table_next(&topics->names, &at));)
        subscribe(topics, topic, ZMQ_SUBSCRIBE);
}

/* ---- who listens ------------------------------------------------------------------------------- */

static struct slice name_of(const struct topic *topic) { return slice_from_str(topic->name); }

static struct topic *find_topic(struct topics *topics, const char *name)
{
    struct topic *topic = table_find(&topics->names, slice_from_str(name));
    if (topic || strlen(name) >= TOPIC_SIZE)
        return topic;
    topic = calloc(1, sizeof(*topic));
    if (!topic)
        return NULL;
    list_init(&topic->listenings);
    snprintf(topic->name, sizeof(topic->name), "%s", name);
    if (!table_put(&topics->names, name_of(topic), topic)) {
        free(topic);
        return NULL;
    }
    subscribe(topics, topic, ZMQ_SUBSCRIBE);
    return topic;
}

bool topics_listen(struct topics *topics, struct listening *listening, const char *name)
{
    topics_leave(listening);
    struct topic *topic = find_topic(topics, name);
    if (!topic)
        return false;
    listening->topics = topics;
    listening->topic = topic;
    list_push_back(&topic->listenings, &listening->link);
    if (!topics->socket)
        open_socket(topics);
    loop_post(topics->loop, &topics->again);
    return true;
}

static void drop_topic(struct topics *topics, struct topic *topic)
{
    subscribe(topics, topic, ZMQ_UNSUBSCRIBE);
    table_take(&topics->names, name_of(topic));
    free(topic);
}

void topics_leave(struct listening *listening)
{
    struct topics *topics = take_ptr(&listening->topics);
    if (!topics)
        return;
    struct topic *topic = listening->topic;
    if (topic->next == &listening->link)
        topic->next = listening->link.next;
    list_remove(&listening->link);
    if (list_is_empty(&topic->listenings) && !topic->next)
        drop_topic(topics, topic);
}

/* ---- what comes ------------------------------------------------------------------------------------ */

static void tell(struct topics *topics, struct topic *topic, struct slice body)
{
    for (struct list *at = topic->listenings.next; at != &topic->listenings; at = topic->next) {
        struct listening *listening = container_of(at, struct listening, link);
        topic->next = at->next;
        listening->heard(listening->arg, body);
    }
    topic->next = NULL;
    if (list_is_empty(&topic->listenings))
        drop_topic(topics, topic);
}

static bool has_more(void *socket)
{
    int more = 0;
    size_t size = sizeof(more);
    return zmq_getsockopt(socket, ZMQ_RCVMORE, &more, &size) == 0 && more;
}

/* Topic and body. False: there is nothing now. */
static bool take_message(struct topics *topics)
{
    char name[TOPIC_SIZE] = "";
    zmq_msg_t body;
    const int len = zmq_recv(topics->socket, name, sizeof(name) - 1, ZMQ_DONTWAIT);
    if (len < 0)
        return false;
    if (!has_more(topics->socket))
        return true;
    name[len < (int)sizeof(name) - 1 ? len : (int)sizeof(name) - 1] = '\0';
    zmq_msg_init(&body);
    if (zmq_msg_recv(&body, topics->socket, ZMQ_DONTWAIT) >= 0) {
        struct topic *topic = table_find(&topics->names, slice_from_str(name));
        if (topic)
            tell(topics, topic, slice_of(zmq_msg_data(&body), zmq_msg_size(&body)));
    }
    zmq_msg_close(&body);
    return true;
}

void topics_work(struct topics *topics)
{
    if (topics->names.count == 0)
        return;
    if (!topics->socket || topics->made != caller_made(topics->caller))
        open_socket(topics);
    for (int i = 0; topics->socket && take_message(topics); i++)
        if (i == MESSAGES_A_TURN) {
            loop_post(topics->loop, &topics->again);
            return;
        }
}

/* ---- all of it ---------------------------------------------------------------------------------------- */

static void run_again(void *arg) { (void)arg; }

struct topics *topics_open(struct loop *loop, struct caller *caller)
{
    struct topics *topics = calloc(1, sizeof(*topics));
    if (!topics)
        return NULL;
    *topics = (struct topics){.loop = loop, .caller = caller, .again = {.run = run_again}};
    return topics;
}

void topics_close(struct topics **handle)
{
    struct topics *topics = take_ptr(handle);
    size_t at = 0;
    if (!topics)
        return;
    for (struct topic *topic; (topic = table_next(&topics->names, &at));) {
        struct listening *listening;
        LIST_EACH(listening, &topic->listenings, link) {
            list_remove(&listening->link);
            listening->topics = NULL;
        }
        free(topic);
    }
    table_finish(&topics->names);
    close_socket(topics);
    loop_unpost(topics->loop, &topics->again);
    free(topics);
}
