#include "client/lib/link.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/lib/client.h"
#include "common/base/cleanup.h"
#include "common/base/clock.h"

enum {
    FRAME_BYTES_MAX = 80 << 20, /* the largest record and then some */
    QUEUE_MESSAGES = 128,
    RECONNECT_MS = 100,
    RECONNECT_LAST_MS = 2000,
    BROKEN_LEAST =
        3, /* handshakes broken off in a row that mean something: a broker killed in one breaks it off, too */
    KEEPALIVE_IDLE_S = 20,
    KEEPALIVE_PERIOD_S = 5,
    KEEPALIVE_COUNT = 3
};

/* ---- keys ------------------------------------------------------------------------------------ */

static void take_key(struct link *link, const char *path)
{
    struct fail fail;
    key_wipe(&link->key);
    link->bad_key = key_read_own(path, &link->key, &fail);
    if (link->bad_key == 0 && link->key.role != ROLE_TRAINER && link->key.role != ROLE_ADMIN)
        link->bad_key = fail_set(&fail, -EINVAL,
                                 "%s is the key of %s, whose role is %s: name a trainer's or an admin's key", path,
                                 link->key.name, key_role_name(link->key.role));
    snprintf(link->key_path, sizeof(link->key_path), "%s", path);
    if (link->bad_key)
        snprintf(link->error, sizeof(link->error), "%s", fail.text);
}

void link_init(struct link *link)
{
    const char *path = getenv("SLUICE_KEY"), *allows = getenv("SLUICE_ALLOW_PLAINTEXT");
    link->allow_plaintext = allows && strcmp(allows, "1") == 0;
    if (path && *path)
        take_key(link, path);
}

void link_finish(struct link *link) { key_wipe(&link->key); }

void link_set_key(struct link *link, const struct key *key)
{
    key_wipe(&link->key);
    link->bad_key = 0;
    link->error[0] = '\0';
    snprintf(link->key_path, sizeof(link->key_path), "%s", key ? "its token" : "");
    if (key)
        link->key = *key;
}

int sluice_set_key(struct sluice_client *client, const char *path)
{
    struct link *link = &client->link;
    if (client->front)
        return client_fail(client, -EBUSY,
                           "%s is connected already: a client's key comes before "
                           "its first request",
                           client->front_url);
    link->error[0] = link->key_path[0] = '\0';
    link->bad_key = 0;
    if (path && *path)
        take_key(link, path);
    return link->bad_key ? client_fail(client, link->bad_key, "%s", link->error) : 0;
}

void sluice_allow_plaintext(struct sluice_client *client) { client->link.allow_plaintext = true; }

/* Before a socket connects to url: 0, or a negative errno with the client's sentence set. */
static int arm(struct sluice_client *client, void *socket, const char *url)
{
    struct link *link = &client->link;
    if (link->bad_key)
        return client_fail(client, link->bad_key, "%s", link->error);
    if (link->key_path[0]) {
        int code = curve_use(socket, &link->key);
        return code ? client_fail(client, code, "libzmq takes no keys: %s", zmq_strerror(-code)) : 0;
    }
    if (link->allow_plaintext || endpoint_is_local(url))
        return 0;
    return client_fail(client, -EACCES,
                       "%s is not on this machine and there is no key: name one with --key or "
                       "SLUICE_KEY, or set SLUICE_ALLOW_PLAINTEXT=1 if you trust the whole network",
                       url);
}

/* ---- sockets --------------------------------------------------------------------------------- */

static bool set_int(void *socket, int option, int value)
{
    return zmq_setsockopt(socket, option, &value, sizeof(value)) == 0;
}

static bool set_limits(void *socket)
{
    int64_t frame_bytes_max = FRAME_BYTES_MAX;
    return zmq_setsockopt(socket, ZMQ_MAXMSGSIZE, &frame_bytes_max, sizeof(frame_bytes_max)) == 0 &&
           set_int(socket, ZMQ_LINGER, 0) && set_int(socket, ZMQ_SNDHWM, QUEUE_MESSAGES) &&
           set_int(socket, ZMQ_RCVHWM, QUEUE_MESSAGES) && set_int(socket, ZMQ_RECONNECT_IVL, RECONNECT_MS) &&
           set_int(socket, ZMQ_RECONNECT_IVL_MAX, RECONNECT_LAST_MS) && set_int(socket, ZMQ_TCP_KEEPALIVE, 1) &&
           set_int(socket, ZMQ_TCP_KEEPALIVE_IDLE, KEEPALIVE_IDLE_S) &&
           set_int(socket, ZMQ_TCP_KEEPALIVE_INTVL, KEEPALIVE_PERIOD_S) &&
           set_int(socket, ZMQ_TCP_KEEPALIVE_CNT, KEEPALIVE_COUNT);
}

void *link_socket(struct sluice_client *client, int type, const char *url)
{
    if (!client->feed_url[0]) {
        client_fail(client, -EINVAL, "'%s' is not a broker's URL: say tcp://HOST:PORT or ipc:///DIRECTORY/front",
                    client->front_url);
        errno = EINVAL;
        return NULL;
    }
    if (!client->context && !(client->context = zmq_ctx_new())) {
        client_fail(client, -errno, "no ZeroMQ context: %s", zmq_strerror(errno));
        return NULL;
    }
    void *socket = zmq_socket(client->context, type);
    bool is_front = type == ZMQ_DEALER;
    int code = socket ? arm(client, socket, url) : 0;
    if (code == 0 && is_front && socket)
        code = handshakes_open(&client->link.handshakes, client->context, socket);
    if (code == 0 &&
        (!socket || !set_limits(socket) || !set_int(socket, ZMQ_IMMEDIATE, is_front) || zmq_connect(socket, url) != 0))
        code = client_fail(client, -errno, "cannot connect to %s: %s", url, zmq_strerror(errno));
    if (code) {
        if (is_front)
            handshakes_close(&client->link.handshakes, socket);
        if (socket)
            zmq_close(socket);
        errno = -code;
        return NULL;
    }
    return socket;
}

/* ---- FRONT ----------------------------------------------------------------------------------- */

int link_open_front(struct sluice_client *client)
{
    if (client->front)
        return 0;
    client->front = link_socket(client, ZMQ_DEALER, client->front_url);
    client->link.made += client->front != NULL;
    return client->front ? 0 : -errno;
}

void link_close_front(struct sluice_client *client)
{
    if (!client->front)
        return;
    handshakes_close(&client->link.handshakes, client->front);
    zmq_close(take_ptr(&client->front));
}

/* Both sides see what does not fit, and whoever closes first leaves the other with less to say. */
static void explain(struct sluice_client *client, enum handshake news)
{
    struct link *link = &client->link;
    const char *url = client->front_url;
    char *error = link->error;
    size_t size = sizeof(link->error);
    bool has_key = link->key_path[0];
    if (news == HANDSHAKE_REFUSED)
        snprintf(error, size,
                 "the broker at %s refuses the key of %s (%.300s): its operator "
                 "removed it, or never knew it",
                 url, link->key.name, link->key_path);
    else if (news == HANDSHAKE_MISMATCH && has_key)
        snprintf(error, size,
                 "the broker at %s speaks plaintext: connect without a key, or start "
                 "it with --keys",
                 url);
    else if (news == HANDSHAKE_MISMATCH)
        snprintf(error, size, "the broker at %s wants a key: name one with --key or SLUICE_KEY", url);
    else if (!error[0] && has_key)
        snprintf(error, size,
                 "the broker at %s broke off the handshake: its key is not the one that "
                 "%.300s names, or it speaks plaintext",
                 url, link->key_path);
    else if (!error[0])
        snprintf(error, size, "the broker at %s broke off the handshake: does it want a key?", url);
}

void link_mend(struct sluice_client *client, int64_t now_ms)
{
    struct link *link = &client->link;
    for (enum handshake news; (news = handshakes_next(&link->handshakes)) != HANDSHAKE_NONE;) {
        link->broken = news == HANDSHAKE_BROKEN ? link->broken + 1 : news == HANDSHAKE_DONE ? 0 : link->broken;
        if (news == HANDSHAKE_DONE)
            link->error[0] = '\0';
        else if (news != HANDSHAKE_LOST && (news != HANDSHAKE_BROKEN || link->broken >= BROKEN_LEAST))
            explain(client, news);
        if (news != HANDSHAKE_DONE && news != HANDSHAKE_LOST && news != HANDSHAKE_BROKEN) {
            link->is_refused = true;
            link->again_ms = now_ms + LINK_AGAIN_MS;
        }
    }
    if (!link->is_refused || now_ms < link->again_ms)
        return;
    void *old = client->front;
    struct handshakes heard = link->handshakes;
    link->is_refused = false;
    client->front = NULL;
    if (link_open_front(client) == 0) {
        handshakes_close(&heard, old);
        zmq_close(old);
    } else {
        client->front = old;
        link->handshakes = heard;
    }
}

int link_fail(struct sluice_client *client)
{
    if (client->link.error[0])
        return client_fail(client, -EACCES, "%s", client->link.error);
    const int code = client_fail(client, -ETIMEDOUT, "no broker answers at %s", client->front_url);
    client->is_silent = true;
    return code;
}
