/*
 * Bytes on a connection to a whole gateway, all of its APIs, whose broker is away: whatever they are, it goes on, and
 * what it answers begins as HTTP does. The first byte says in how many pieces they come and whether more could follow.
 */
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "client/gateway/families.h"
#include "client/gateway/gateway.h"
#include "common/base/buffer.h"
#include "common/base/log.h"
#include "common/net/listen_address.h"
#include "tests/fuzz.h"

enum { QUIET_TURNS = 4, TURNS_MAX = 400, ALIVE_EVERY = 64 };

static struct gateway *gateway;
static char folder[] = "/tmp/sluice-fuzz-XXXXXX", address[64];

/* ---- the gateway ---------------------------------------------------------------------------------------- */

static unsigned turns, quiet;
static uint64_t moved, moved_before; /* bytes of the client's */

/* Until nothing moves any more: a gateway that waits for its broker has nothing to say. */
static void on_turn(void *arg)
{
    (void)arg;
    identities_work(gateway->identities);
    quiet = moved == moved_before ? quiet + 1 : 0;
    moved_before = moved;
    if (quiet > QUIET_TURNS || ++turns > TURNS_MAX)
        loop_stop(gateway->loop);
}

static struct loop_soon again;

static void run_again(void *arg)
{
    (void)arg;
    loop_post(gateway->loop, &again);
}

static void remove_files(void)
{
    char path[96];
    static const char *const names[] = {"socket", "state", "state.prorl", "state.prorl.new"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
        unlink(path);
    }
    rmdir(folder);
}

static void end(void)
{
    loop_unpost(gateway->loop, &again);
    gateway_close(&gateway);
    remove_files();
}

static void begin(void)
{
    static const char *const none[] = {NULL}, *const loopback[] = {"loopback", NULL};
    static char state[64];
    static struct gateway_settings settings;
    const struct route_family *families[GATEWAY_FAMILIES_MAX];
    struct listen_address listening;
    struct fail fail = {0};
    log_open("gateway", LOG_ERROR, LOG_TEXT);
    must(mkdtemp(folder));
    snprintf(address, sizeof(address), "unix:%s/socket", folder);
    snprintf(state, sizeof(state), "%s/state", folder);
    must(listen_address_open("--listen", address, &listening, &fail) == 0);
    settings = (struct gateway_settings){.fd = listening.fd,
                                         .broker = {.url = "ipc:///nowhere/front", .own = NULL},
                                         .hosts = none,
                                         .stream = "gateway",
                                         .engines = loopback,
                                         .callbacks = loopback,
                                         .state_path = state,
                                         .body_max = 1 << 20,
                                         .connections_max = 64,
                                         .access_log = true,
                                         .orphan_ms = 60000,
                                         .prorl = {.timeout_ms = 1000}};
    const size_t count = families_choose(NULL, 0, families);
    gateway = gateway_open(&settings, families, count, &fail);
    if (!gateway)
        fprintf(stderr, "%s\n", fail.text);
    must(gateway);
    loop_set_prepare(gateway->loop, on_turn, NULL);
    again = (struct loop_soon){.run = run_again};
    loop_post(gateway->loop, &again);
    atexit(end);
}

/* ---- a client ------------------------------------------------------------------------------------------- */

struct client {
    int fd;
    const uint8_t *data;
    size_t size, at, piece;
    bool is_open_ended;
    struct loop_watch *watch;
    struct buffer heard;
};

static void on_ready(void *arg, uint32_t events)
{
    struct client *client = arg;
    char room[4096];
    if (events & EPOLLOUT && client->at < client->size) {
        const size_t left = client->size - client->at;
        const ssize_t sent = send(client->fd, client->data + client->at, left < client->piece ? left : client->piece,
                                  MSG_NOSIGNAL | MSG_DONTWAIT);
        client->at = sent < 0 ? client->size : client->at + (size_t)sent;
        moved++;
        if (client->at == client->size) {
            if (!client->is_open_ended)
                shutdown(client->fd, SHUT_WR);
            loop_rewatch(gateway->loop, client->watch, EPOLLIN);
        }
    }
    if (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
        const ssize_t got = recv(client->fd, room, sizeof(room), MSG_DONTWAIT);
        if (got <= 0) {
            loop_unwatch(gateway->loop, &client->watch);
            return;
        }
        moved++;
        buffer_append(&client->heard, room, (size_t)got);
    }
}

static void talk(struct client *client)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    snprintf(to.sun_path, sizeof(to.sun_path), "%s", address + strlen("unix:"));
    client->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    must(client->fd >= 0 && connect(client->fd, (struct sockaddr *)&to, sizeof(to)) == 0);
    client->watch = loop_watch(gateway->loop, client->fd, EPOLLIN | EPOLLOUT, on_ready, client);
    must(client->watch);
    turns = quiet = 0;
    moved_before = moved++;
    loop_run(gateway->loop);
    loop_unwatch(gateway->loop, &client->watch);
    close(client->fd);
    must(client->heard.len == 0 || (client->heard.len > 9 && memcmp(client->heard.data, "HTTP/1.", 7) == 0));
    turns = quiet = 0;
    loop_run(gateway->loop); /* its end is noticed */
}

static void check_alive(void)
{
    static const char ask[] = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
    struct client client = {
        .data = (const uint8_t *)ask, .size = sizeof(ask) - 1, .piece = 1 << 16, .is_open_ended = true};
    talk(&client);
    must(client.heard.len > 12 && memcmp(client.heard.data, "HTTP/1.1 200", 12) == 0);
    buffer_finish(&client.heard);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static unsigned count;
    if (!gateway)
        begin();
    if (size == 0)
        return 0;
    struct client client = {.data = data + 1,
                            .size = size - 1,
                            .piece = data[0] & 0x40 ? (size - 1) / (1 + (data[0] & 7)) + 1 : size,
                            .is_open_ended = data[0] & 0x80};
    talk(&client);
    buffer_finish(&client.heard);
    if (count++ % ALIVE_EVERY == 0)
        check_alive();
    return 0;
}
