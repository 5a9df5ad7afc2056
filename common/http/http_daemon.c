#include "common/http/http_daemon.h"

#include <errno.h>
#include <microhttpd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "common/base/cleanup.h"
#include "common/http/request.h"

static const char tls_versions[] = "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2";

static void run(void *arg)
{
    struct http_daemon *daemon = arg;
    MHD_UNSIGNED_LONG_LONG wait_ms;
    MHD_run(daemon->mhd);
    if (MHD_get_timeout(daemon->mhd, &wait_ms) == MHD_YES && wait_ms == 0)
        loop_post(daemon->server->loop, &daemon->soon);
}

static void on_event(void *arg, uint32_t events)
{
    (void)events;
    run(arg);
}

static void on_connection(void *arg, struct MHD_Connection *of, void **slot, enum MHD_ConnectionNotificationCode what)
{
    struct http_daemon *daemon = arg;
    struct http_server *server = daemon->server;
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        *slot = http_connections_add(&server->connections, daemon, of);
        daemon->count += *slot != NULL;
    } else {
        daemon->count -= *slot != NULL;
        http_connections_drop(&server->connections, take_ptr((struct http_connection **)slot));
        loop_post(server->loop, &server->left);
    }
}

/* The path is decoded once, by target.h. */
static size_t leave_escaped(void *arg, struct MHD_Connection *of, char *text)
{
    (void)arg;
    (void)of;
    return strlen(text);
}

/* What MHD says while it starts is why it does not; the first of it says most. */
static __attribute__((format(printf, 2, 0))) void hear_mhd(void *arg, const char *format, va_list args)
{
    struct http_daemon *daemon = arg;
    struct fail *fail = daemon->starting;
    if (!fail || fail->text[0])
        return;
    vsnprintf(fail->text, sizeof(fail->text), format, args);
    fail->text[strcspn(fail->text, "\n")] = '\0';
}

static struct MHD_Daemon *start(struct http_daemon *daemon, const char *certificate, const char *key)
{
    const struct http_server_plan *plan = &daemon->server->plan;
    const struct MHD_OptionItem tls[] = {
        {MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)(uintptr_t)certificate},
        {MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)(uintptr_t)key},
        {MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)(uintptr_t)tls_versions},
        {MHD_OPTION_END, 0, NULL},
    };
    const struct MHD_OptionItem none = {MHD_OPTION_END, 0, NULL};
    return MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ITC |
                                MHD_USE_ERROR_LOG | (certificate ? MHD_USE_TLS : 0),
                            0, NULL, NULL, request_take, daemon, MHD_OPTION_EXTERNAL_LOGGER, hear_mhd, daemon,
                            MHD_OPTION_CONNECTION_LIMIT, plan->connections_max, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                            plan->header_bytes, MHD_OPTION_NOTIFY_COMPLETED, request_end, daemon,
                            MHD_OPTION_NOTIFY_CONNECTION, on_connection, daemon, MHD_OPTION_URI_LOG_CALLBACK,
                            request_begin, daemon, MHD_OPTION_UNESCAPE_CALLBACK, leave_escaped, NULL, MHD_OPTION_ARRAY,
                            certificate ? tls : &none, MHD_OPTION_END);
}

static int start_with(struct http_daemon *daemon, const char *certificate, const char *key, struct fail *fail)
{
    struct fail why = {0};
    if (certificate && MHD_is_feature_supported(MHD_FEATURE_TLS) != MHD_YES)
        return fail_set(fail, -ENOTSUP, "TLS: this program was built without it");
    daemon->starting = &why;
    daemon->mhd = start(daemon, certificate, key);
    daemon->starting = NULL;
    if (!daemon->mhd)
        return fail_set(fail, certificate ? -EINVAL : -ENOMEM, "%s: %s", certificate ? "TLS" : "HTTP",
                        why.text[0] ? why.text : "the server does not start");
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(daemon->mhd, MHD_DAEMON_INFO_EPOLL_FD);
    daemon->watch = loop_watch(daemon->server->loop, info->epoll_fd, EPOLLIN, on_event, daemon);
    return daemon->watch ? 0 : fail_memory(fail);
}

struct http_daemon *http_daemon_open(struct http_server *server, const char *certificate, const char *key,
                                     struct fail *fail)
{
    struct http_daemon *daemon = calloc(1, sizeof(*daemon));
    if (!daemon) {
        fail_memory(fail);
        return NULL;
    }
    daemon->server = server;
    daemon->renewals = server->renewals;
    daemon->soon = (struct loop_soon){.run = run, .arg = daemon};
    if (start_with(daemon, certificate, key, fail) < 0)
        http_daemon_close(&daemon);
    return daemon;
}

/* MHD closes it where it does not take it. */
void http_daemon_add(struct http_daemon *daemon, int fd, const struct sockaddr *address, socklen_t len)
{
    MHD_add_connection(daemon->mhd, fd, address, len);
}

void http_daemon_close(struct http_daemon **daemon)
{
    struct http_daemon *it = take_ptr(daemon);
    if (!it)
        return;
    loop_unwatch(it->server->loop, &it->watch);
    if (it->mhd)
        MHD_stop_daemon(it->mhd);
    loop_unpost(it->server->loop, &it->soon);
    free(it);
}
