#include "client/gateway/gateway.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/gateway/http_call.h"
#include "client/gateway/door/access_log.h"
#include "client/gateway/door/admission.h"
#include "client/gateway/door/door.h"
#include "client/gateway/exporting.h"
#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/http/http_server.h"

enum {
    HEADER_BYTES = 16 << 10, /* of a connection: 2,000 that wait have so much each */
    HELD_MAX = 512 << 20,
    UNSENT_MAX = 1 << 20,
    IDLE_MS = 75000, /* clients keep connections for 30 s and more */
    PEM_MAX = 1 << 20
};

/* ---- what the server tells ------------------------------------------------------------------------------ */

static void on_heard(void *arg, struct exchange *exchange)
{
    exchange_set_header(exchange, "X-Content-Type-Options", "nosniff");
    struct http_call *call = http_call_begin(arg, exchange);
    if (call)
        door_admit(call);
}

static void on_asked(void *arg, struct exchange *exchange)
{
    (void)arg;
    admission_run(exchange_user(exchange));
}

/* A stream of events takes as long as somebody looks: that is no time of an answer. */
static void note_request(struct gateway *gateway, const struct exchange *exchange, const struct http_call *call)
{
    const int status = exchange_status(exchange);
    gateway_counts_note(&gateway->counts, call && call->route ? call->route->pattern : "", status);
    if (call && !call->is_stream)
        observed_add(&gateway->counts.seconds, &observed_seconds, (double)(clock_us() - call->began_us) / 1e6);
}

static void on_gone(void *arg, struct exchange *exchange, bool is_whole)
{
    struct gateway *gateway = arg;
    struct http_call *call = exchange_user(exchange);
    access_log_note(gateway, exchange, call, is_whole);
    if (call)
        call->is_delivered = is_whole;
    note_request(gateway, exchange, call);
    http_call_finish(call);
}

static const char *on_error(void *arg, struct exchange *exchange, int status, const char *words, struct buffer *ret)
{
    const struct http_call *call = exchange_user(exchange);
    const struct trouble trouble = {.status = status, .reason = "bad-request", .field = "", .words = words};
    (void)arg;
    return call && call->family ? call->family->write_trouble(&trouble, ret) : route_write_detail(&trouble, ret);
}

/* ---- TLS -------------------------------------------------------------------------------------------------- */

static int read_pem(const char *path, char **ret, struct fail *fail)
{
    AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct buffer text = {0};
    ssize_t got = fd < 0 ? -1 : 1;
    for (uint8_t *room; got > 0 && text.len < PEM_MAX && (room = buffer_reserve(&text, 4096)); text.len += (size_t)got)
        if ((got = read(fd, room, 4096)) <= 0)
            break;
    if (got == 0 && (*ret = buffer_take_str(&text)))
        return 0;
    const int error = got < 0 ? errno : E2BIG;
    buffer_finish(&text);
    return fail_set(fail, -error, "cannot read %s: %s", path, strerror(error));
}

static int read_tls(const struct gateway_settings *settings, char **certificate, char **key, struct fail *fail)
{
    *certificate = *key = NULL;
    if (!settings->certificate_path)
        return 0;
    const int failed = read_pem(settings->certificate_path, certificate, fail);
    return failed ? failed : read_pem(settings->key_path, key, fail);
}

int gateway_renew(struct gateway *gateway, struct fail *fail)
{
    AUTO_FREE char *certificate = NULL, *key = NULL;
    int failed = read_tls(gateway->settings, &certificate, &key, fail);
    if (!failed && certificate)
        failed = http_server_renew_tls(gateway->server, certificate, key, fail);
    return failed;
}

/* ---- from its start to its end -------------------------------------------------------------------------------- */

static void before_wait(void *arg) { identities_work(((struct gateway *)arg)->identities); }

static bool open_families(struct gateway *gateway, const struct route_family *const *families, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (families[i]->open && !families[i]->open(gateway, &gateway->kept[i]))
            return false;
        gateway->families[gateway->family_count++] = families[i];
    }
    return true;
}

static int open_server(struct gateway *gateway, struct fail *fail)
{
    AUTO_FREE char *certificate = NULL, *key = NULL;
    const struct gateway_settings *settings = gateway->settings;
    const int failed = read_tls(settings, &certificate, &key, fail);
    if (failed) {
        close(settings->fd);
        return failed;
    }
    const struct http_server_plan plan = {.fd = settings->fd,
                                          .connections_max = settings->connections_max,
                                          .header_bytes = HEADER_BYTES,
                                          .body_max = settings->body_max,
                                          .held_max = HELD_MAX,
                                          .unsent_max = UNSENT_MAX,
                                          .idle_ms = IDLE_MS,
                                          .certificate = certificate,
                                          .key = key,
                                          .heard = on_heard,
                                          .asked = on_asked,
                                          .gone = on_gone,
                                          .write_error = on_error,
                                          .arg = gateway};
    gateway->server = http_server_open(gateway->loop, &plan, fail);
    return gateway->server ? 0 : fail->code;
}

struct gateway *gateway_open(const struct gateway_settings *settings, const struct route_family *const *families,
                             size_t count, struct fail *fail)
{
    struct gateway *gateway = calloc(1, sizeof(*gateway));
    if (!gateway || !(gateway->loop = loop_create())) {
        close(settings->fd);
        free(gateway);
        fail_memory(fail);
        return NULL;
    }
    gateway->settings = settings;
    struct identities_plan broker = settings->broker;
    broker.loop = gateway->loop;
    gateway->identities = identities_open(&broker);
    loop_set_prepare(gateway->loop, before_wait, gateway);
    int failed = gateway->identities ? 0 : fail_memory(fail);
    if (failed)
        close(settings->fd);
    else
        failed = open_server(gateway, fail);
    if (!failed && !open_families(gateway, families, count))
        failed = fail_set(fail, -EIO, "cannot start the API %s", families[gateway->family_count]->name);
    if (!failed && settings->otlp_url) {
        gateway->exporting = exporting_open(gateway->loop, gateway->identities, settings->otlp_url, fail);
        failed = gateway->exporting ? 0 : fail->code;
    }
    if (failed)
        gateway_close(&gateway);
    return gateway;
}

void gateway_run(struct gateway *gateway) { loop_run(gateway->loop); }

void gateway_stop(struct gateway *gateway) { loop_stop(gateway->loop); }

void gateway_close(struct gateway **handle)
{
    struct gateway *gateway = take_ptr(handle);
    if (!gateway)
        return;
    http_server_close(&gateway->server);
    exporting_close(&gateway->exporting);
    while (gateway->family_count > 0) {
        const size_t i = --gateway->family_count;
        if (gateway->families[i]->close)
            gateway->families[i]->close(gateway, gateway->kept[i]);
    }
    if (gateway->identities)
        identities_close(&gateway->identities);
    loop_destroy(&gateway->loop);
    free(gateway);
}
