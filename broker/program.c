#include "broker/program.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "broker/net/lane_address.h"
#include "broker/io/io.h"
#include "common/base/log.h"
#include "common/base/memory.h"
#include "common/cmdline/cmdline.h"
#include "common/net/curve.h"

/* As in sysexits.h where that has one: 75 to try again later, 76 not to. */
enum { EXIT_DISK_FULL = 75, EXIT_DAMAGED = 76 };

enum { MEMORY_KEPT = 32 << 20 };

/* ---- the tables: options, then settings ------------------------------------------------------ */

/* Words of the table, in its order. */
enum { CHECK_SMALL, CHECK_WHOLE };
_Static_assert(LOG_DEBUG == 0 && LOG_ERROR == 3 && LEDGER_FULL == 0 && LEDGER_NONE == 2, "not in the table's order");
#define PLACING_WORD(name, word) "|" word
#define PLACING_WORDS (&(PLACINGS(PLACING_WORD))[1])

struct told {
#define OPTION OPTION_FIELD
#include "broker/options.def"
#undef OPTION
};

static const struct option options[] = {
#define OPTION(...) OPTION_ROW(struct told, __VA_ARGS__)
#include "broker/options.def"
#undef OPTION
};

#define SETTING_KIND_MS OPTION_DURATION, "TIME"
#define SETTING_KIND_COUNT OPTION_NUMBER, "N"
#define SETTING_KIND_BYTES OPTION_SIZE, "SIZE"
#define SETTING_ROW(name, offset, kind, value, ...)                                                                    \
    {                                                                                                                  \
        name, kind, offset, value, __VA_ARGS__                                                                         \
    }
#define SETTING_ROW_OF(...) SETTING_ROW(__VA_ARGS__)

static const struct option settings[] = {
#define SETTING(type, name, preset, min, max, doc)                                                                     \
    SETTING_ROW_OF(#name, offsetof(struct core_settings, SETTING_MEMBER_##type(name)), SETTING_KIND_##type, doc,       \
                   preset, min, max),
#include "broker/core/state/settings.def"
#undef SETTING
};

static const struct cmdline_status statuses[] = {
    {EXIT_SUCCESS, "it was told to stop, by SIGTERM or SIGINT"},
    {EXIT_FAILURE, "it could not start or go on; a sentence on stderr says why"},
    {CMDLINE_WRONG, "the command line is wrong"},
    {EXIT_DISK_FULL, "the disk is full; nothing acknowledged is lost. Make room and start it again"},
    {EXIT_DAMAGED, "the ledger is damaged, and was left as it is. To start it again as it is helps "
                   "nothing (docs/operations.md)"},
};

static const struct cmdline line = {
    .program = "sluice-broker",
    .arguments = "",
    .brief = "Takes groups of rollouts, hands their jobs to workers, gives trajectories to trainers",
    .doc = "It prints one line, `broker ready front=... sink=... feed=... epoch=N`, when it can be "
           "used. Stop it as you\n"
           "like, kill -9 included, and start it again on the same --data: what was accepted goes "
           "on. SIGTERM stops it\n"
           "tidily. One broker to a directory.\n",
    .example = "sluice-broker --data /var/lib/sluice &\n"
               "sluice-worker init & sluice-worker run & sluice-worker eval &\n",
    .tables = {{.title = "options", .rows = options, .count = ROWS(options)},
               {.title = "settings", .rows = settings, .count = ROWS(settings)}},
    .statuses = statuses,
    .status_count = ROWS(statuses),
};

/* ---- endpoints ------------------------------------------------------------------------------- */

static bool print_endpoint(char ret[ENDPOINT_SIZE], const char *format, const char *a, const char *b)
{
    return snprintf(ret, ENDPOINT_SIZE, format, a, b) < ENDPOINT_SIZE;
}

static int read_ipc(const char *dir, struct io_endpoints *ret)
{
    enum { SOCKET_PATH_MAX = 107 - 6 }; /* of sockaddr_un, with "/front" */
    if (strlen(dir) > SOCKET_PATH_MAX)
        return cmdline_wrong(&line, "--ipc: '%.40s...' is too long for a Unix socket", dir);
    print_endpoint(ret->front, "ipc://%s/%s", dir, "front");
    print_endpoint(ret->sink, "ipc://%s/%s", dir, "sink");
    print_endpoint(ret->feed, "ipc://%s/%s", dir, "feed");
    return 0;
}

static int read_ports(const struct told *told, struct io_endpoints *ret)
{
    const struct {
        uint64_t port;
        char *endpoint;
    } ports[] = {{told->front, ret->front}, {told->sink, ret->sink}, {told->feed, ret->feed}};
    if (strncmp(told->bind, "tcp://", 6) != 0 || strlen(told->bind) > 200)
        return cmdline_wrong(&line, "--bind wants tcp://ADDRESS, not '%.200s'", told->bind);
    for (size_t i = 0; i < ROWS(ports); i++) {
        char port[8];
        snprintf(port, sizeof(port), "%u", (unsigned)(uint16_t)ports[i].port);
        print_endpoint(ports[i].endpoint, "%s:%s", told->bind, port);
    }
    return 0;
}

/* Nobody but this machine's users gets in without a key, unless the operator said so. */
static int check_reach(const struct told *told)
{
    if (told->ipc || told->keys || endpoint_is_local(told->bind))
        return 0;
    if (told->allow_plaintext) {
        log_event(LOG_WARN, "broker.plaintext", "bind=%s hint=\"whoever can reach it can use it\"", told->bind);
        return 0;
    }
    return cmdline_wrong(&line,
                         "--bind %s: others than this machine could reach it, and nobody is asked "
                         "for a key: make keys "
                         "with `sluice keys init DIR` and say --keys DIR, or say --allow-plaintext "
                         "if you trust all who "
                         "can reach it",
                         told->bind);
}

/* ---- running --------------------------------------------------------------------------------- */

static const char *if_any(const char *text) { return text && text[0] ? text : NULL; }

static int read_told(struct told *told, struct io_options *ret)
{
    struct fail fail;
    told->ipc = if_any(told->ipc);
    told->keys = if_any(told->keys);
    ret->ledger = (struct ledger_options){.dir = told->data,
                                          .durability = (enum ledger_durability)told->durability,
                                          .check_all = told->check_ledger == CHECK_WHOLE};
    ret->disk_reserve_bytes = told->disk_reserve_bytes;
    ret->placing = (enum placing)told->placing;
    ret->store_dir = if_any(told->store);
    ret->store_grace_ms = (int64_t)told->store_grace_ms;
    ret->connections_max = told->connections_max;
    ret->lanes = told->lanes ? told->lanes : "";
    ret->keys_dir = told->keys;
    ret->ipc_dir = told->ipc;
    if (lane_rules_check(&(struct lane_rules){.list = ret->lanes}, &fail) < 0)
        return cmdline_wrong(&line, "--lanes: %s", fail.text);
    return told->ipc ? read_ipc(told->ipc, &ret->endpoints) : read_ports(told, &ret->endpoints);
}

static int serve(const struct io_options *io_options)
{
    struct io *io = NULL;
    struct fail fail = {0};
    memory_keep(MEMORY_KEPT);
    int code = io_open(&io, io_options, &fail);
    if (code == 0) {
        const struct io_endpoints *bound = io_bound(io);
        printf("broker ready front=%s sink=%s feed=%s epoch=%llu\n", bound->front, bound->sink, bound->feed,
               (unsigned long long)io_epoch(io));
        fflush(stdout);
        log_event(LOG_INFO, "broker.started", "data=%s front=%s sink=%s feed=%s epoch=%llu", io_options->ledger.dir,
                  bound->front, bound->sink, bound->feed, (unsigned long long)io_epoch(io));
        code = io_serve(io, &fail);
    }
    io_close(&io);
    if (code == 0) {
        log_event(LOG_INFO, "broker.stopped", "data=%s", io_options->ledger.dir);
        return EXIT_SUCCESS;
    }
    fprintf(stderr, "sluice-broker: %s\n", fail.text);
    return code == -ENOSPC ? EXIT_DISK_FULL : code == -EBADMSG ? EXIT_DAMAGED : EXIT_FAILURE;
}

int program_main(int argc, char **argv)
{
    struct told told;
    struct io_options io_options = {0};
    struct cmdline_values values = {.into = {&told, &io_options.settings}};
    int status = cmdline_begin(&line, argc - 1, argv + 1, &values);
    cmdline_finish(&values);
    if (status >= 0)
        return status;
    log_open("broker", (enum log_level)told.log, (enum log_format)told.log_format);
    if ((status = read_told(&told, &io_options)) || (status = check_reach(&told)))
        return status;
    return serve(&io_options);
}
