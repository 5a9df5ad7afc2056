/* sluice-gateway: reads its command line, listens, and runs until it is told to stop. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "client/gateway/families.h"
#include "client/gateway/door/engines.h"
#include "client/gateway/gateway.h"
#include "common/base/cleanup.h"
#include "common/base/descriptors.h"
#include "common/base/log.h"
#include "common/cmdline/cmdline.h"
#include "common/net/curve.h"
#include "common/net/listen_address.h"

struct told {
#define OPTION OPTION_FIELD
#include "client/gateway/options.def"
#undef OPTION
};

static const struct option options[] = {
#define OPTION(...) OPTION_ROW(struct told, __VA_ARGS__)
#include "client/gateway/options.def"
#undef OPTION
};

static const struct cmdline_status statuses[] = {
    {EXIT_SUCCESS, "it was told to stop, by SIGTERM or SIGINT"},
    {EXIT_FAILURE, "it could not start; a sentence on stderr says why"},
    {CMDLINE_WRONG, "the command line is wrong"},
};

static const struct cmdline line = {
    .program = "sluice-gateway",
    .arguments = "",
    .brief = "Speaks HTTP for a broker: a REST API, the page, metrics, and the APIs of ProRL, Polar, NeMo Gym and "
             "SandboxFusion",
    .doc = "It prints one line, `gateway ready url=...`, when it listens; the broker may come later. A client of the\n"
           "broker like any other: stop it as you like, kill -9 included, and start it again. docs/gateway.md has it "
           "all.\n",
    .example = "sluice-gateway &\n"
               "curl http://127.0.0.1:5780/api/v1/status\n",
    .tables = {{.title = "options", .rows = options, .count = ROWS(options)}},
    .statuses = statuses,
    .status_count = ROWS(statuses),
};

static int complain(const struct fail *fail)
{
    fprintf(stderr, "sluice-gateway: %s\n", fail->text);
    return fail->code == -EINVAL ? CMDLINE_WRONG : EXIT_FAILURE;
}

/* ---- what it was told ------------------------------------------------------------------------------------ */

/* Whatever others could listen in to. */
static int check_reach(const struct told *told, const struct listen_address *address)
{
    const bool is_local = address->is_loopback || address->is_unix;
    if (is_local || told->allow_plaintext || (told->tls_cert && told->key))
        return 0;
    return cmdline_wrong(
        &line,
        "--listen %s: others than this machine could reach it, and %s: say --tls-cert and --tls-key, and "
        "--key, or put a proxy with TLS in front of 127.0.0.1; --allow-plaintext if you trust all who "
        "can reach it",
        told->listen, told->key ? "tokens would go in plaintext" : "nobody would be asked for a token");
}

static int check(const struct told *told)
{
    struct fail fail;
    if (!told->tls_cert != !told->tls_key)
        return cmdline_wrong(&line, "--tls-cert and --tls-key go together");
    if (told->anonymous && !told->key)
        return cmdline_wrong(&line, "--anonymous is for a broker that asks for keys: say --key, too");
    for (size_t i = 0; i < told->engine.count; i++)
        if (engines_rule_check(told->engine.items[i], &fail) < 0)
            return cmdline_wrong(&line, "--engine: %s", fail.text);
    for (size_t i = 0; i < told->callback.count; i++)
        if (engines_rule_check(told->callback.items[i], &fail) < 0)
            return cmdline_wrong(&line, "--callback: %s", fail.text);
    for (size_t i = 0; i < told->api.count; i++)
        if (!family_is_known(told->api.items[i]))
            return cmdline_wrong(&line, "--api: there is no '%.50s': %s", told->api.items[i], family_names());
    return 0;
}

static int read_key(const char *path, struct key *key, const struct key **ret)
{
    struct fail fail;
    *ret = NULL;
    if (!path)
        return 0;
    if (key_read_own(path, key, &fail) < 0)
        return complain(&fail);
    if (key->role != ROLE_TRAINER && key->role != ROLE_ADMIN)
        return cmdline_wrong(&line, "%s is the key of %s, whose role is %s: name a trainer's or an admin's key", path,
                             key->name, key_role_name(key->role));
    *ret = key;
    return 0;
}

/* $XDG_STATE_HOME/sluice/gateway-ADDRESS.ids, with / as _. */
static void plan_state(const struct told *told, const struct listen_address *address, char *ret, size_t size)
{
    const char *home = getenv("HOME"), *state = getenv("XDG_STATE_HOME");
    if (told->state)
        snprintf(ret, size, "%s", told->state);
    else if (state && *state)
        snprintf(ret, size, "%s/sluice/gateway-%s.ids", state, address->base);
    else
        snprintf(ret, size, "%s/.local/state/sluice/gateway-%s.ids", home && *home ? home : "/tmp", address->base);
    char *name = strstr(ret, "/gateway-");
    for (char *at = told->state || !name ? NULL : name + 1; at && *at; at++)
        *at = *at == '/' || *at == ':' ? '_' : *at;
}

/* ---- running ------------------------------------------------------------------------------------------------- */

struct running {
    struct gateway *gateway;
    int signals;
};

static void renew(struct gateway *gateway)
{
    struct fail fail;
    if (gateway_renew(gateway, &fail) < 0)
        log_event(LOG_ERROR, "gateway.tls", "error=\"%s\" action=kept", fail.text);
    else
        log_event(LOG_INFO, "gateway.tls", "action=renewed");
}

static void on_signal(void *arg, uint32_t events)
{
    struct running *running = arg;
    struct signalfd_siginfo info;
    (void)events;
    while (read(running->signals, &info, sizeof(info)) == (ssize_t)sizeof(info))
        if (info.ssi_signo == SIGHUP)
            renew(running->gateway);
        else
            gateway_stop(running->gateway);
}

static int open_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static int run(const struct gateway_settings *settings, const struct told *told, const char *base)
{
    const struct route_family *families[GATEWAY_FAMILIES_MAX];
    struct fail fail = {0};
    AUTO_CLOSE int signals = open_signals();
    const size_t count = families_choose(told->api.items, told->api.count, families);
    struct gateway *gateway = gateway_open(settings, families, count, &fail);
    if (!gateway)
        return complain(&fail);
    struct running running = {gateway, signals};
    struct loop_watch *watch = loop_watch(gateway->loop, signals, EPOLLIN, on_signal, &running);
    printf("gateway ready url=%s%s\n",
           settings->certificate_path  ? "https://"
           : strncmp(base, "unix:", 5) ? "http://"
                                       : "",
           base);
    fflush(stdout);
    if (watch)
        gateway_run(gateway);
    loop_unwatch(gateway->loop, &watch);
    gateway_close(&gateway);
    return EXIT_SUCCESS;
}

/* Ended by NULL. */
static const char *const *list_of(const struct texts *texts, const char *ret[TEXTS_MAX + 1])
{
    memcpy(ret, texts->items, texts->count * sizeof(*ret));
    ret[texts->count] = NULL;
    return ret;
}

static int start(struct told *told)
{
    static const char *const loopback[] = {"loopback", NULL}, *const nowhere[] = {NULL};
    struct listen_address address;
    struct key own, anonymous;
    struct fail fail;
    char state[4096];
    const char *hosts[TEXTS_MAX + 1], *engines[TEXTS_MAX + 1];
    struct gateway_settings settings = {.certificate_path = told->tls_cert,
                                        .key_path = told->tls_key,
                                        .stream = told->stream,
                                        .hosts = list_of(&told->host, hosts),
                                        .body_max = told->body_max_bytes,
                                        .connections_max = (unsigned)told->connections_max,
                                        .otlp_url = told->otlp,
                                        .access_log = told->access_log,
                                        .orphan_ms = (int64_t)told->orphan_ms,
                                        .prorl = {.no_input_ids = told->prorl_input_ids == 1,
                                                  .timeout_ms = (int64_t)told->prorl_timeout_ms,
                                                  .images = told->prorl_images},
                                        .run_code_image = told->run_code_image};
    int status = check(told);
    if (!status)
        status = read_key(told->key, &own, &settings.broker.own);
    if (!status)
        status = read_key(told->anonymous, &anonymous, &settings.broker.anonymous);
    if (status)
        return status;
    if (listen_address_open("--listen", told->listen, &address, &fail) < 0)
        return complain(&fail);
    status = check_reach(told, &address);
    if (status) {
        close(address.fd);
        return status;
    }
    plan_state(told, &address, state, sizeof(state));
    settings.fd = address.fd;
    settings.is_local = address.is_loopback;
    settings.state_path = state;
    settings.engines = told->engine.count                       ? list_of(&told->engine, engines)
                       : address.is_loopback || address.is_unix ? loopback
                                                                : nowhere;
    settings.callbacks = told->callback.count ? told->callback.items : loopback;
    settings.broker.url = told->broker;
    settings.broker.allow_plaintext = told->allow_plaintext;
    return run(&settings, told, address.base);
}

static void read_environment(struct told *told)
{
    const char *key = getenv("SLUICE_KEY");
    if (!told->key && key && *key)
        told->key = key;
    if (told->key && !*told->key)
        told->key = NULL;
}

int main(int argc, char **argv)
{
    struct told told = {0};
    struct cmdline_values values = {.into = {&told}};
    int status = cmdline_begin(&line, argc - 1, argv + 1, &values);
    if (status < 0) {
        log_open("gateway", (enum log_level)told.log, (enum log_format)told.log_format);
        descriptors_allow_all();
        read_environment(&told);
        if (told.with_parent)
            prctl(PR_SET_PDEATHSIG, SIGTERM);
        status = start(&told);
    }
    cmdline_finish(&values);
    return status;
}
