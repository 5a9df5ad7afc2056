#include "broker/net/zap.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <zmq.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/log.h"

enum { FRAMES = 7, FRAME_MAX = 256, SAY_MS = 1000 };
/* The frames of a request, in order. */
enum { AT_VERSION, AT_ID, AT_DOMAIN, AT_ADDRESS, AT_ROUTE, AT_MECHANISM, AT_KEY };

struct zap {
    struct certs *certs;
    void *socket, *ours, *theirs; /* the handler; a pair that says when to stop */
    pthread_t thread;
    bool has_thread;
    int64_t said_ms;
    uint64_t unsaid;
};

static const struct {
    const char *name;
    unsigned roles;
} domains[ZAP_DOMAIN_COUNT] = {
    [ZAP_FRONT] = {"front", 1u << ROLE_TRAINER | 1u << ROLE_ADMIN},
    [ZAP_SINK] = {"sink", 1u << ROLE_WORKER},
    [ZAP_FEED] = {"feed", 1u << ROLE_TRAINER | 1u << ROLE_ADMIN},
    [ZAP_LANE] = {"lane", 1u << ROLE_WORKER},
};

const char *zap_domain_name(enum zap_domain domain) { return domains[domain].name; }

bool zap_takes(enum zap_domain domain, enum key_role role) { return domains[domain].roles & 1u << role; }

/* ---- a request ------------------------------------------------------------------------------ */

struct request {
    uint8_t bytes[FRAMES][FRAME_MAX];
    size_t len[FRAMES];
    size_t count;     /* of all frames, more than FRAMES if it is none of ours */
    bool is_too_long; /* one of them */
};

static bool read_request(void *socket, struct request *ret)
{
    zmq_msg_t frame;
    *ret = (struct request){0};
    for (bool more = true; more; zmq_msg_close(&frame)) {
        zmq_msg_init(&frame);
        if (zmq_msg_recv(&frame, socket, ZMQ_DONTWAIT) < 0)
            return false;
        size_t len = zmq_msg_size(&frame), at = ret->count++;
        ret->is_too_long |= len > FRAME_MAX;
        if (at < FRAMES && len <= FRAME_MAX) {
            memcpy(ret->bytes[at], zmq_msg_data(&frame), len);
            ret->len[at] = len;
        }
        more = zmq_msg_more(&frame);
    }
    return true;
}

static bool frame_is(const struct request *request, size_t at, const char *text)
{
    return request->len[at] == strlen(text) && memcmp(request->bytes[at], text, request->len[at]) == 0;
}

struct verdict {
    const char *code, *words;
    char user[KEY_TEXT_SIZE];
    struct cert who;
    bool is_known;
};

static bool find_domain(const struct request *request, enum zap_domain *ret)
{
    for (int i = 0; i < ZAP_DOMAIN_COUNT; i++)
        if (frame_is(request, AT_DOMAIN, domains[i].name)) {
            *ret = (enum zap_domain)i;
            return true;
        }
    return false;
}

static struct verdict judge(struct zap *zap, const struct request *request)
{
    struct verdict verdict = {.code = "400", .words = "malformed request"};
    enum zap_domain domain;
    if (request->count < AT_ID + 1 || request->is_too_long || !frame_is(request, AT_VERSION, "1.0"))
        return verdict;
    verdict.words = "only CURVE";
    if (request->count != FRAMES || !frame_is(request, AT_MECHANISM, "CURVE") || request->len[AT_KEY] != 32)
        return verdict;
    verdict.words = "no such domain";
    if (!find_domain(request, &domain))
        return verdict;
    zmq_z85_encode(verdict.user, request->bytes[AT_KEY], 32);
    verdict.words = "unknown key";
    verdict.is_known = certs_find(zap->certs, verdict.user, &verdict.who);
    if (!verdict.is_known)
        return verdict;
    verdict.words = "not for this role";
    if (zap_takes(domain, verdict.who.role))
        verdict.code = "200", verdict.words = "OK";
    return verdict;
}

/* Somebody who is refused tries again ten times a second. */
static void say_refused(struct zap *zap, const struct request *request, const struct verdict *verdict)
{
    int64_t now_ms = clock_ms();
    if (zap->said_ms && now_ms - zap->said_ms < SAY_MS) {
        zap->unsaid++;
        return;
    }
    log_event(LOG_WARN, "keys.refused", "socket=%.*s address=%.*s key=\"%s\" name=%s role=%s why=\"%s\" unsaid=%llu",
              (int)request->len[AT_DOMAIN], request->bytes[AT_DOMAIN], (int)request->len[AT_ADDRESS],
              request->bytes[AT_ADDRESS], verdict->user, verdict->is_known ? verdict->who.name : "?",
              verdict->is_known ? key_role_name(verdict->who.role) : "?", verdict->words,
              (unsigned long long)zap->unsaid);
    zap->said_ms = now_ms;
    zap->unsaid = 0;
}

static void answer(struct zap *zap, const struct request *request, const struct verdict *verdict)
{
    bool is_let_in = strcmp(verdict->code, "200") == 0;
    size_t id_len = request->count > AT_ID ? request->len[AT_ID] : 0;
    const char *user = is_let_in ? verdict->user : "";
    zmq_send(zap->socket, "1.0", 3, ZMQ_SNDMORE);
    zmq_send(zap->socket, request->bytes[AT_ID], id_len, ZMQ_SNDMORE);
    zmq_send(zap->socket, verdict->code, 3, ZMQ_SNDMORE);
    zmq_send(zap->socket, verdict->words, strlen(verdict->words), ZMQ_SNDMORE);
    zmq_send(zap->socket, user, strlen(user), ZMQ_SNDMORE);
    zmq_send(zap->socket, "", 0, 0);
    if (!is_let_in)
        say_refused(zap, request, verdict);
}

static void *run(void *arg)
{
    struct zap *zap = arg;
    zmq_pollitem_t items[] = {{zap->socket, 0, ZMQ_POLLIN, 0}, {zap->theirs, 0, ZMQ_POLLIN, 0}};
    struct request request;
    while (zmq_poll(items, 2, -1) >= 0 || errno == EINTR) {
        if (items[1].revents)
            break;
        while (read_request(zap->socket, &request)) {
            struct verdict verdict = judge(zap, &request);
            answer(zap, &request, &verdict);
        }
    }
    return NULL;
}

/* ---- life --------------------------------------------------------------------------------- */

static void *pair(void *context, bool binds)
{
    int none = 0;
    void *socket = zmq_socket(context, ZMQ_PAIR);
    if (!socket)
        return NULL;
    zmq_setsockopt(socket, ZMQ_LINGER, &none, sizeof(none));
    int code = binds ? zmq_bind(socket, "inproc://zap-stop") : zmq_connect(socket, "inproc://zap-stop");
    if (code != 0)
        zmq_close(take_ptr(&socket));
    return socket;
}

static int begin(struct zap *zap, void *context)
{
    int none = 0;
    zap->socket = zmq_socket(context, ZMQ_REP);
    if (!zap->socket || zmq_setsockopt(zap->socket, ZMQ_LINGER, &none, sizeof(none)) != 0 ||
        zmq_bind(zap->socket, "inproc://zeromq.zap.01") != 0)
        return -errno;
    zap->theirs = pair(context, true);
    zap->ours = zap->theirs ? pair(context, false) : NULL;
    if (!zap->ours)
        return -errno;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int code = pthread_create(&zap->thread, NULL, run, zap);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    zap->has_thread = code == 0;
    return -code;
}

int zap_start(struct zap **ret, void *context, struct certs *certs, struct fail *fail)
{
    struct zap *zap = calloc(1, sizeof(*zap));
    if (!zap)
        return fail_set(fail, -ENOMEM, "out of memory");
    zap->certs = certs;
    int code = begin(zap, context);
    if (code) {
        zap_stop(&zap);
        return fail_set(fail, code, "cannot start the ZAP handler: %s", zmq_strerror(-code));
    }
    *ret = zap;
    return 0;
}

void zap_stop(struct zap **stopping)
{
    struct zap *zap = take_ptr(stopping);
    if (!zap)
        return;
    if (zap->has_thread) {
        zmq_send(zap->ours, "", 0, 0);
        pthread_join(zap->thread, NULL);
    }
    void *sockets[] = {zap->ours, zap->theirs, zap->socket};
    for (size_t i = 0; i < 3; i++)
        if (sockets[i])
            zmq_close(sockets[i]);
    free(zap);
}
