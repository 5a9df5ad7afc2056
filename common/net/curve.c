#include "common/net/curve.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <zmq.h>

static bool set_text(void *socket, int option, const char *text)
{
    return zmq_setsockopt(socket, option, text, strlen(text)) == 0;
}

static bool set_int(void *socket, int option, int value)
{
    return zmq_setsockopt(socket, option, &value, sizeof(value)) == 0;
}

static bool set_key(void *socket, int option, const char text[KEY_TEXT_SIZE])
{
    return zmq_setsockopt(socket, option, text, KEY_TEXT_SIZE) == 0;
}

/* libzmq lets everybody in while no ZAP handler is bound: it must be there before this binds. */
int curve_serve(void *socket, const struct key *key, const char *domain)
{
    bool good = set_int(socket, ZMQ_CURVE_SERVER, 1) && set_key(socket, ZMQ_CURVE_PUBLICKEY, key->public_text) &&
                set_key(socket, ZMQ_CURVE_SECRETKEY, key->secret_text) && set_text(socket, ZMQ_ZAP_DOMAIN, domain);
    return good ? 0 : -errno;
}

int curve_use(void *socket, const struct key *key)
{
    bool good = set_key(socket, ZMQ_CURVE_SERVERKEY, key->broker_text) &&
                set_key(socket, ZMQ_CURVE_PUBLICKEY, key->public_text) &&
                set_key(socket, ZMQ_CURVE_SECRETKEY, key->secret_text);
    return good ? 0 : -errno;
}

bool endpoint_is_local(const char *endpoint)
{
    struct in_addr address;
    char host[64];
    if (strncmp(endpoint, "ipc://", 6) == 0)
        return true;
    if (sscanf(endpoint, "tcp://[%63[^]]]", host) == 1)
        return strcmp(host, "::1") == 0;
    if (sscanf(endpoint, "tcp://%63[^:]", host) != 1)
        return false;
    return strcmp(host, "localhost") == 0 ||
           (inet_pton(AF_INET, host, &address) == 1 && (ntohl(address.s_addr) >> 24) == 127);
}

/* ---- handshakes ------------------------------------------------------------------------------- */

enum {
    EVENTS_WANTED = ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL |
                    ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH
};

int handshakes_open(struct handshakes *handshakes, void *context, void *socket)
{
    static atomic_ullong serial;
    char address[64];
    snprintf(address, sizeof(address), "inproc://handshakes-%llu", atomic_fetch_add(&serial, 1));
    handshakes->monitor = NULL;
    if (zmq_socket_monitor(socket, address, EVENTS_WANTED) != 0)
        return -errno;
    handshakes->monitor = zmq_socket(context, ZMQ_PAIR);
    /* libzmq's own thread would wait for room in it */
    if (handshakes->monitor && set_int(handshakes->monitor, ZMQ_RCVHWM, 0) &&
        set_int(handshakes->monitor, ZMQ_LINGER, 0) && zmq_connect(handshakes->monitor, address) == 0)
        return 0;
    int code = -errno;
    handshakes_close(handshakes, socket);
    return code;
}

void handshakes_close(struct handshakes *handshakes, void *socket)
{
    if (socket)
        zmq_socket_monitor(socket, NULL, 0);
    if (handshakes->monitor)
        zmq_close(handshakes->monitor);
    handshakes->monitor = NULL;
}

/* An event is two frames: its number and value, and the address. */
static bool read_event(void *monitor, uint16_t *ret_event, uint32_t *ret_value)
{
    int events = 0;
    size_t size = sizeof(events);
    if (zmq_getsockopt(monitor, ZMQ_EVENTS, &events, &size) != 0 || !(events & ZMQ_POLLIN))
        return false;
    zmq_msg_t frame;
    zmq_msg_init(&frame);
    bool got = zmq_msg_recv(&frame, monitor, ZMQ_DONTWAIT) >= 0;
    if (got && zmq_msg_size(&frame) >= 6) {
        const char *bytes = zmq_msg_data(&frame);
        memcpy(ret_event, bytes, sizeof(*ret_event));
        memcpy(ret_value, bytes + 2, sizeof(*ret_value));
    }
    while (got && zmq_msg_more(&frame) && zmq_msg_recv(&frame, monitor, ZMQ_DONTWAIT) >= 0)
        ;
    zmq_msg_close(&frame);
    return got;
}

enum handshake handshakes_next(struct handshakes *handshakes)
{
    uint16_t event = 0;
    uint32_t value = 0;
    if (!handshakes->monitor || !read_event(handshakes->monitor, &event, &value))
        return HANDSHAKE_NONE;
    switch (event) {
    case ZMQ_EVENT_HANDSHAKE_SUCCEEDED: return HANDSHAKE_DONE;
    case ZMQ_EVENT_HANDSHAKE_FAILED_AUTH: return HANDSHAKE_REFUSED;
    case ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL:
        return value == ZMQ_PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH ? HANDSHAKE_MISMATCH : HANDSHAKE_BAD_KEY;
    case ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL: return HANDSHAKE_BROKEN;
    default: return HANDSHAKE_LOST;
    }
}
