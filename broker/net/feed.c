#include "broker/net/feed.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "broker/net/zmq_frame.h"
#include "common/containers/table.h"
#include "common/base/cleanup.h"
#include "common/base/log.h"

enum { SWEEP_MS = 500, SWEEP_MAX = 4096 };
enum { READS_MAX = 4096, TOPIC_SIZE = 80, ASKERS_MAX = 1024, BIND_TRIES = 50, PASSED_MAX = 1 << 20 };

/* What one name has asked for since the connections were last dropped. */
struct asker {
    char name[KEY_NAME_SIZE];
    size_t bytes;
    int64_t banned_until_ms;
};

/* Who listens to a stream, whether it may or not: each of them has its connection's end to be heard of. */
struct listeners {
    size_t count;
    int64_t none_since_ms;
    uint32_t len;
    char stream[];
};

struct feed {
    void *xpub;
    const struct auth *auth;
    char endpoint[256];
    bool is_bound, out_of_step;
    size_t topics; /* bytes of topics asked for and not given up */
    uint64_t removed;
    struct asker askers[ASKERS_MAX];
    size_t asker_count;
    struct table listeners; /* by stream */
    size_t silent;          /* streams without any, which are kept for a while */
    int64_t sweep_ms;
};

struct feed *feed_create(void *xpub, const char *endpoint, const struct auth *auth)
{
    struct feed *feed = calloc(1, sizeof(*feed));
    if (!feed)
        return NULL;
    feed->xpub = xpub;
    feed->auth = auth;
    feed->is_bound = true;
    feed->removed = auth->certs ? certs_removed(auth->certs) : 0;
    snprintf(feed->endpoint, sizeof(feed->endpoint), "%s", endpoint);
    return feed;
}

void feed_destroy(struct feed **destroying)
{
    struct feed *feed = take_ptr(destroying);
    if (!feed)
        return;
    size_t at = 0;
    for (void *one; (one = table_next(&feed->listeners, &at));)
        free(one);
    table_finish(&feed->listeners);
    zmq_close(feed->xpub);
    free(feed);
}

void *feed_socket(const struct feed *feed) { return feed->xpub; }

/* ---- who listens --------------------------------------------------------------------------- */

static struct listeners *find_listeners(struct feed *feed, struct slice stream)
{
    struct listeners *found = table_find(&feed->listeners, stream);
    if (found)
        return found;
    found = calloc(1, sizeof(*found) + stream.len);
    if (!found)
        return NULL;
    memcpy(found->stream, stream.data, stream.len);
    found->len = (uint32_t)stream.len;
    feed->silent++;
    if (table_put(&feed->listeners, slice_of(found->stream, found->len), found))
        return found;
    feed->silent--;
    free(found);
    return NULL;
}

static void come(struct feed *feed, struct slice stream)
{
    struct listeners *listeners = find_listeners(feed, stream);
    if (listeners)
        feed->silent -= listeners->count++ == 0;
}

static void go(struct feed *feed, struct slice stream, int64_t now_ms)
{
    struct listeners *listeners = table_find(&feed->listeners, stream);
    if (!listeners || listeners->count == 0 || --listeners->count > 0)
        return;
    listeners->none_since_ms = now_ms;
    feed->silent++;
}

static void all_go(struct feed *feed, int64_t now_ms)
{
    size_t at = 0;
    for (struct listeners *one; (one = table_next(&feed->listeners, &at)); one->count = 0)
        if (one->count)
            one->none_since_ms = now_ms;
    feed->silent = feed->listeners.count;
}

/* One of those that nobody has listened to for long, or NULL. */
static struct listeners *next_silent(const struct feed *feed, size_t *at, int64_t now_ms)
{
    struct listeners *one;
    while ((one = table_next(&feed->listeners, at)))
        if (!one->count && now_ms - one->none_since_ms >= FEED_GRACE_MS)
            return one;
    return NULL;
}

/* What is taken out moves others about: they are found the next time. */
static void let_go(struct feed *feed, struct core *core, int64_t now_ms)
{
    if (!feed->silent || now_ms < feed->sweep_ms)
        return;
    struct listeners *one;
    size_t at = 0, count = 0;
    while (count < SWEEP_MAX && (one = next_silent(feed, &at, now_ms))) {
        struct slice stream = slice_of(one->stream, one->len);
        core_nobody_reads(core, stream);
        table_take(&feed->listeners, stream);
        free(one);
        feed->silent--;
        count++;
    }
    feed->sweep_ms = now_ms + (count < SWEEP_MAX ? SWEEP_MS : 0);
}

/* ---- dropping everybody -------------------------------------------------------------------- */

/* libzmq lets go of a port a moment after zmq_unbind. */
static void bind_again(struct feed *feed)
{
    for (int i = 0; i < BIND_TRIES && !feed->is_bound; i++) {
        feed->is_bound = zmq_bind(feed->xpub, feed->endpoint) == 0;
        if (!feed->is_bound)
            poll(NULL, 0, 1);
    }
}

/* What they have asked for and was not read yet. */
static void pass_over(struct feed *feed)
{
    zmq_msg_t frame;
    zmq_msg_init(&frame);
    for (int i = 0; i < PASSED_MAX && zmq_msg_recv(&frame, feed->xpub, ZMQ_DONTWAIT) >= 0; i++)
        ;
    zmq_msg_close(&frame);
}

/* Unbinding ends the connections that came in by it. */
static void drop_all(struct feed *feed, const char *why, int64_t now_ms)
{
    log_event(LOG_WARN, "feed.dropped", "why=\"%s\" action=subscribers-connect-again", why);
    if (feed->is_bound)
        zmq_unbind(feed->xpub, feed->endpoint);
    feed->is_bound = false;
    pass_over(feed);
    feed->topics = 0;
    all_go(feed, now_ms);
    for (size_t i = 0; i < feed->asker_count; i++)
        feed->askers[i].bytes = 0;
    bind_again(feed);
}

/* ---- who asks ------------------------------------------------------------------------------ */

/* A place is kept for a name; when there are no more, that of one which asks for nothing is reused. */
static struct asker *find_asker(struct feed *feed, const char *name, int64_t now_ms)
{
    struct asker *idle = NULL;
    for (size_t i = 0; i < feed->asker_count; i++) {
        struct asker *asker = &feed->askers[i];
        if (strcmp(asker->name, name) == 0)
            return asker;
        if (!asker->bytes && now_ms >= asker->banned_until_ms)
            idle = asker;
    }
    if (feed->asker_count < ASKERS_MAX)
        idle = &feed->askers[feed->asker_count++];
    if (idle) {
        *idle = (struct asker){0};
        snprintf(idle->name, sizeof(idle->name), "%s", name);
    }
    return idle;
}

static void ban_the_most(struct feed *feed, int64_t now_ms)
{
    struct asker *most = NULL;
    for (size_t i = 0; i < feed->asker_count; i++)
        if (!most || feed->askers[i].bytes > most->bytes)
            most = &feed->askers[i];
    if (!most || !feed->auth->certs)
        return;
    most->banned_until_ms = now_ms + FEED_BAN_MS;
    log_event(LOG_WARN, "feed.flooded", "name=%s bytes=%zu action=not-heard-for-%d-s", most->name, most->bytes,
              FEED_BAN_MS / 1000);
}

/* The stream of t/<stream>/, and nothing else. */
static bool read_topic(struct slice topic, struct slice *ret)
{
    if (topic.len < 4 || memcmp(topic.data, "t/", 2) != 0 || topic.data[topic.len - 1] != '/')
        return false;
    *ret = slice_of(topic.data + 2, topic.len - 3);
    return ret->len <= 64 && name_is_valid(*ret);
}

static bool may_subscribe(struct core *core, const struct caller *caller, struct slice topic)
{
    struct slice stream;
    if (caller->is_admin)
        return true;
    return read_topic(topic, &stream) && core_may_read(core, caller, stream);
}

static void take_subscription(struct feed *feed, struct core *core, zmq_msg_t *frame, struct slice topic,
                              int64_t now_ms)
{
    char name[KEY_NAME_SIZE];
    struct caller caller = {0};
    if (!auth_find_caller(feed->auth, frame, ZAP_FEED, &caller, name))
        return;
    struct asker *asker = find_asker(feed, name, now_ms);
    if (!asker || now_ms < asker->banned_until_ms)
        return;
    asker->bytes += topic.len;
    if (may_subscribe(core, &caller, topic))
        zmq_setsockopt(feed->xpub, ZMQ_SUBSCRIBE, topic.data, topic.len);
}

/*
 * A frame without a sender says that a connection ended which had asked. What somebody takes back itself counts
 * only if the stream is its own: anybody may take back what it never asked for.
 */
static bool is_believed(const struct feed *feed, const struct core *core, zmq_msg_t *frame, struct slice stream)
{
    char name[KEY_NAME_SIZE];
    struct caller caller = {0};
    if (!zmq_msg_gets(frame, "User-Id"))
        return true;
    return auth_find_caller(feed->auth, frame, ZAP_FEED, &caller, name) && core_is_owner(core, &caller, stream);
}

static void count_listener(struct feed *feed, const struct core *core, zmq_msg_t *frame, struct slice topic,
                           bool is_new, int64_t now_ms)
{
    struct slice stream;
    if (!feed->auth->certs || !read_topic(topic, &stream))
        return;
    if (is_new)
        come(feed, stream);
    else if (is_believed(feed, core, frame, stream))
        go(feed, stream, now_ms);
}

/* A frame is 1 and a topic, or 0 and one; libzmq sends the latter itself when a connection ends. */
static void take_frame(struct feed *feed, struct core *core, struct conn_limit *conns, zmq_msg_t *frame, int64_t now_ms)
{
    const uint8_t *bytes = zmq_msg_data(frame);
    size_t len = zmq_msg_size(frame);
    if (len < 1 || bytes[0] > 1) {
        feed->out_of_step = true;
        conn_limit_shut_down(conns, frame, "a subscriber sent something that is not a subscription");
        return;
    }
    struct slice topic = slice_of(bytes + 1, len - 1);
    if (bytes[0] == 1)
        feed->topics += topic.len;
    else
        feed->topics -= topic.len < feed->topics ? topic.len : feed->topics;
    count_listener(feed, core, frame, topic, bytes[0] == 1, now_ms);
    if (feed->out_of_step)
        return;
    if (bytes[0] == 1)
        take_subscription(feed, core, frame, topic, now_ms);
    else
        zmq_setsockopt(feed->xpub, ZMQ_UNSUBSCRIBE, topic.data, topic.len);
}

bool feed_take(struct feed *feed, struct core *core, struct conn_limit *conns, int64_t now_ms)
{
    zmq_msg_t frame;
    int reads = 0;
    if (!feed->is_bound)
        bind_again(feed);
    zmq_msg_init(&frame);
    while (reads < READS_MAX && zmq_msg_recv(&frame, feed->xpub, ZMQ_DONTWAIT) >= 0) {
        conn_limit_heard(conns, &frame);
        take_frame(feed, core, conns, &frame, now_ms);
        reads++;
    }
    zmq_msg_close(&frame);
    if (reads < READS_MAX)
        feed->out_of_step = false;
    let_go(feed, core, now_ms);
    uint64_t removed = feed->auth->certs ? certs_removed(feed->auth->certs) : 0;
    if (removed != feed->removed)
        drop_all(feed, "a key was removed", now_ms);
    feed->removed = removed;
    if (feed->topics > FEED_TOPICS_MAX || feed->listeners.count > FEED_STREAMS_MAX) {
        ban_the_most(feed, now_ms);
        drop_all(feed, "it subscribes to more topics than it may", now_ms);
    }
    return reads < READS_MAX;
}

/* ---- publishing ----------------------------------------------------------------------------- */

int feed_publish(struct feed *feed, struct slice stream, zmq_msg_t *body)
{
    char topic[TOPIC_SIZE];
    int len = snprintf(topic, sizeof(topic), "t/%.*s/", SLICE_ARG(stream));
    if (!zmq_frame_send_copy(feed->xpub, slice_of(topic, (size_t)len), ZMQ_SNDMORE)) {
        int code = -errno;
        zmq_msg_close(body);
        return code;
    }
    return zmq_frame_send(feed->xpub, body, 0) ? 0 : -errno;
}
