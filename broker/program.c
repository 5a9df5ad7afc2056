#include "broker/program.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "broker/net/lane_address.h"
#include "broker/shell/shell.h"
#include "common/net/curve.h"
#include "common/base/log.h"

/* As in sysexits.h where that has one: 75 to try again later, 76 not to. */
enum { EXIT_USAGE = 2, EXIT_DISK_FULL = 75, EXIT_DAMAGED = 76 };

/* ---- the tables: options, then settings; getopt's `val` is an option's place in them ------- */

enum option_id {
#define OPTION(name, argument, value, doc) OPTION_##name,
#include "broker/options.def"
#undef OPTION
    OPTION_COUNT
};

static const struct {
    const char *name, *argument, *value, *doc;
} options[] = {
#define OPTION(name_, argument_, value_, doc_) {#name_, argument_, value_, doc_},
#include "broker/options.def"
#undef OPTION
};

static const struct setting {
    const char *name, *doc;
    size_t offset;
    uint64_t value, min, max;
} settings[] = {
#define SETTING(type, name_, default_, min_, max_, doc_)                                           \
    {#name_, doc_, offsetof(struct core_settings, name_), default_, min_, max_},
#include "broker/settings.def"
#undef SETTING
};
enum { SETTING_COUNT = sizeof(settings) / sizeof(*settings), ALL_COUNT = OPTION_COUNT + SETTING_COUNT };

struct command {
    const char *values[OPTION_COUNT];
    struct core_settings settings;
    bool help;
};

/* "beat_timeout_ms" as "beat-timeout-ms". */
static void dashed(const char *name, char ret[64])
{
    size_t i = 0;
    for (; name[i] && i < 63; i++)
        ret[i] = name[i] == '_' ? '-' : name[i];
    ret[i] = '\0';
}

/* ---- help --------------------------------------------------------------------------------------- */

static void print_help(void)
{
    printf("sluice-broker - takes groups of rollouts, hands their jobs to workers, gives trajectories\n"
           "\n"
           "usage: sluice-broker [--data DIR] [--bind ADDRESS] [--front PORT] ... [--SETTING VALUE]\n"
           "\n"
           "It prints one line, `broker ready front=... sink=... feed=... epoch=N`, when it can be used.\n"
           "Stop it as you like, kill -9 included, and start it again on the same --data: what was\n"
           "accepted goes on. SIGTERM stops it tidily. One broker to a directory.\n"
           "\n"
           "options:\n");
    for (int i = 0; i < OPTION_COUNT; i++) {
        char name[64];
        dashed(options[i].name, name);
        printf("  --%s%s%s\n      %s%s%s%s\n", name, options[i].argument[0] ? " " : "",
               options[i].argument, options[i].doc, options[i].value[0] ? " [" : "",
               options[i].value, options[i].value[0] ? "]" : "");
    }
    printf("  --help\n      This.\n\nsettings:\n");
    for (int i = 0; i < SETTING_COUNT; i++) {
        char name[64];
        dashed(settings[i].name, name);
        printf("  --%s N\n      %s [%llu; %llu to %llu]\n", name, settings[i].doc,
               (unsigned long long)settings[i].value, (unsigned long long)settings[i].min,
               (unsigned long long)settings[i].max);
    }
    printf("\nexample, on one machine:\n"
           "  sluice-broker --data /var/lib/sluice &\n"
           "  sluice worker init & sluice worker run & sluice worker eval &\n");
}

/* ---- reading ---------------------------------------------------------------------------------------- */

static int refuse_usage(const char *format, const char *what, const char *why)
{
    fprintf(stderr, "sluice-broker: ");
    fprintf(stderr, format, what, why);
    fprintf(stderr, "; sluice-broker --help lists the options\n");
    return EXIT_USAGE;
}

static bool parse_number(const char *text, uint64_t min, uint64_t max, uint64_t *ret)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || errno || value < min || value > max)
        return false;
    *ret = value;
    return true;
}

/* Both kinds of setting, MS and COUNT, are 64 bits wide and within both ranges. */
static int read_setting(struct command *command, const struct setting *setting, const char *text)
{
    uint64_t value;
    char name[64], bounds[96];
    dashed(setting->name, name);
    snprintf(bounds, sizeof(bounds), "'%.30s' is not a whole number from %llu to %llu", text,
             (unsigned long long)setting->min, (unsigned long long)setting->max);
    if (!parse_number(text, setting->min, setting->max, &value))
        return refuse_usage("--%s: %s", name, bounds);
    memcpy((char *)&command->settings + setting->offset, &value, sizeof(value));
    return 0;
}

static void make_getopt_table(struct option table[ALL_COUNT + 2], char names[ALL_COUNT][64])
{
    for (int i = 0; i < ALL_COUNT; i++) {
        bool is_option = i < OPTION_COUNT;
        dashed(is_option ? options[i].name : settings[i - OPTION_COUNT].name, names[i]);
        bool has_value = !is_option || options[i].argument[0];
        table[i] =
            (struct option){names[i], has_value ? required_argument : no_argument, NULL, i};
    }
    table[ALL_COUNT] = (struct option){"help", no_argument, NULL, ALL_COUNT};
    table[ALL_COUNT + 1] = (struct option){0};
}

static int read_command(int argc, char **argv, struct command *command)
{
    char names[ALL_COUNT][64];
    struct option table[ALL_COUNT + 2];
    make_getopt_table(table, names);
    *command = (struct command){.settings = core_settings_default()};
    for (int i = 0; i < OPTION_COUNT; i++)
        command->values[i] = options[i].value;
    int code = 0;
    for (int at; code == 0 && (at = getopt_long(argc, argv, ":", table, NULL)) != -1;) {
        if (at == '?' || at == ':')
            code = refuse_usage(at == '?' ? "there is no option %s%s" : "%s wants a value%s",
                                argv[optind - 1], "");
        else if (at == ALL_COUNT)
            command->help = true;
        else if (at < OPTION_COUNT)
            command->values[at] = optarg ? optarg : "yes";
        else
            code = read_setting(command, &settings[at - OPTION_COUNT], optarg);
    }
    if (code == 0 && optind < argc)
        return refuse_usage("'%s' is not an option%s", argv[optind], "");
    return code;
}

static int read_level(const char *text, enum log_level *ret)
{
    static const char *const names[] = {"debug", "info", "warn", "error"};
    for (int i = 0; i < 4; i++)
        if (strcmp(text, names[i]) == 0) {
            *ret = (enum log_level)i;
            return 0;
        }
    return refuse_usage("--log: '%s' is none of debug, info, warn, error%s", text, "");
}

/* One of `words`, of which there are `count`. */
static int read_word(const char *option, const char *text, const char *const *words, int count,
                     int *ret)
{
    for (*ret = 0; *ret < count; ++*ret)
        if (strcmp(text, words[*ret]) == 0)
            return 0;
    return refuse_usage("--%s: '%.30s' is none of its words", option, text);
}

static int read_ledger(const struct command *command, struct ledger_options *ret)
{
    static const char *const durabilities[] = {[LEDGER_FULL] = "full", [LEDGER_PROCESS] = "process",
                                               [LEDGER_NONE] = "none"};
    static const char *const checks[] = {"small", "whole"};
    int durability, check;
    int code = read_word("durability", command->values[OPTION_durability], durabilities, 3,
                         &durability);
    if (code == 0)
        code = read_word("check-ledger", command->values[OPTION_check_ledger], checks, 2, &check);
    if (code == 0)
        *ret = (struct ledger_options){.dir = command->values[OPTION_data],
                                       .durability = (enum ledger_durability)durability,
                                       .check_all = check == 1};
    return code;
}

static int read_placing(const struct command *command, enum placing *ret)
{
    static const char *const words[] = {
#define X(name, word) word,
        PLACINGS(X)
#undef X
    };
    int at;
    int code = read_word("placing", command->values[OPTION_placing], words, PLACING_COUNT, &at);
    if (code == 0)
        *ret = (enum placing)at;
    return code;
}

static int read_reserve(const struct command *command, uint64_t *ret_bytes)
{
    const char *text = command->values[OPTION_disk_reserve_mib];
    if (!parse_number(text, 0, 1 << 30, ret_bytes))
        return refuse_usage("--disk-reserve-mib: '%.30s' is not a whole number of MiB%s", text, "");
    *ret_bytes <<= 20;
    return 0;
}

static int read_store(const struct command *command, struct shell_options *ret)
{
    const char *text = command->values[OPTION_store_grace_s], *dir = command->values[OPTION_store];
    uint64_t grace_s;
    if (!parse_number(text, 1, 31536000, &grace_s))
        return refuse_usage("--store-grace-s: '%.30s' is not a number of seconds from 1 to 31536000%s",
                            text, "");
    ret->store_dir = dir[0] ? dir : NULL;
    ret->store_grace_ms = (int64_t)grace_s * 1000;
    return 0;
}

/* ---- endpoints ---------------------------------------------------------------------------------------- */

static bool print_endpoint(char ret[ENDPOINT_SIZE], const char *format, const char *a, const char *b)
{
    return snprintf(ret, ENDPOINT_SIZE, format, a, b) < ENDPOINT_SIZE;
}

static int read_ipc(const char *dir, struct shell_endpoints *ret)
{
    enum { SOCKET_PATH_MAX = 107 - 6 }; /* of sockaddr_un, with "/front" */
    if (strlen(dir) > SOCKET_PATH_MAX)
        return refuse_usage("--ipc: '%.40s...' is too long for a Unix socket%s", dir, "");
    print_endpoint(ret->front, "ipc://%s/%s", dir, "front");
    print_endpoint(ret->sink, "ipc://%s/%s", dir, "sink");
    print_endpoint(ret->feed, "ipc://%s/%s", dir, "feed");
    return 0;
}

static int read_ports(const struct command *command, struct shell_endpoints *ret)
{
    const struct {
        enum option_id option;
        char *endpoint;
    } ports[] = {{OPTION_front, ret->front}, {OPTION_sink, ret->sink}, {OPTION_feed, ret->feed}};
    const char *address = command->values[OPTION_bind];
    if (strncmp(address, "tcp://", 6) != 0 || strlen(address) > 200)
        return refuse_usage("--bind: '%.200s' is not of the form tcp://ADDRESS%s", address, "");
    for (size_t i = 0; i < sizeof(ports) / sizeof(*ports); i++) {
        const char *text = command->values[ports[i].option];
        uint64_t port;
        if (!parse_number(text, 1, 65535, &port))
            return refuse_usage("--%s: '%s' is not a port", options[ports[i].option].name, text);
        print_endpoint(ports[i].endpoint, "%s:%s", address, text);
    }
    return 0;
}

/* ---- running ------------------------------------------------------------------------------------------ */

static int read_connections(const struct command *command, size_t *ret)
{
    uint64_t value;
    if (!parse_number(command->values[OPTION_connections_max], 16, 65536, &value))
        return refuse_usage("--connections-max: '%s' is not a number from 16 to 65536%s",
                            command->values[OPTION_connections_max], "");
    *ret = value;
    return 0;
}

static int read_lanes(const struct command *command, struct shell_options *ret)
{
    struct fail fail;
    ret->lanes = command->values[OPTION_lanes];
    if (lane_rules_check(&(struct lane_rules){.list = ret->lanes}, &fail) == 0)
        return 0;
    return refuse_usage("--lanes: %s%s", fail.text, "");
}

/* Nobody but this machine's users gets in without a key, unless the operator said so. */
static int check_reach(const struct command *command)
{
    const char *address = command->values[OPTION_bind];
    if (command->values[OPTION_ipc][0] || command->values[OPTION_keys][0] ||
        endpoint_is_local(address))
        return 0;
    if (command->values[OPTION_allow_plaintext][0]) {
        log_event(LOG_WARN, "broker.plaintext", "bind=%s hint=\"whoever can reach it can use it\"",
                  address);
        return 0;
    }
    return refuse_usage("--bind %s: others than this machine could reach it, and nobody is asked for "
                        "a key: make keys with `sluice keys init DIR` and say --keys DIR, or say "
                        "--allow-plaintext if you trust all who can reach it%s", address, "");
}

static int serve(const struct shell_options *shell_options)
{
    struct shell *shell = NULL;
    struct fail fail = {0};
    int code = shell_open(&shell, shell_options, &fail);
    if (code == 0) {
        const struct shell_endpoints *bound = shell_bound(shell);
        printf("broker ready front=%s sink=%s feed=%s epoch=%llu\n", bound->front, bound->sink,
               bound->feed, (unsigned long long)shell_epoch(shell));
        fflush(stdout);
        log_event(LOG_INFO, "broker.started", "data=%s front=%s sink=%s feed=%s epoch=%llu",
                  shell_options->ledger.dir, bound->front, bound->sink, bound->feed,
                  (unsigned long long)shell_epoch(shell));
        code = shell_serve(shell, &fail);
    }
    shell_close(&shell);
    if (code == 0) {
        log_event(LOG_INFO, "broker.stopped", "data=%s", shell_options->ledger.dir);
        return EXIT_SUCCESS;
    }
    fprintf(stderr, "sluice-broker: %s\n", fail.text);
    return code == -ENOSPC ? EXIT_DISK_FULL : code == -EBADMSG ? EXIT_DAMAGED : EXIT_FAILURE;
}

int program_main(int argc, char **argv)
{
    struct command command;
    struct shell_options shell_options = {0};
    enum log_level level = LOG_INFO;
    int code = read_command(argc, argv, &command);
    if (code == 0 && command.help) {
        print_help();
        return EXIT_SUCCESS;
    }
    const char *ipc = code == 0 ? command.values[OPTION_ipc] : "";
    if (code == 0)
        code = read_level(command.values[OPTION_log], &level);
    if (code == 0)
        code = read_ledger(&command, &shell_options.ledger);
    if (code == 0)
        code = read_reserve(&command, &shell_options.disk_reserve_bytes);
    if (code == 0)
        code = read_placing(&command, &shell_options.placing);
    if (code == 0)
        code = read_store(&command, &shell_options);
    if (code == 0)
        code = ipc[0] ? read_ipc(ipc, &shell_options.endpoints)
                      : read_ports(&command, &shell_options.endpoints);
    if (code == 0)
        code = read_connections(&command, &shell_options.connections_max);
    if (code == 0)
        code = read_lanes(&command, &shell_options);
    log_open("broker", level);
    if (code == 0)
        code = check_reach(&command);
    if (code)
        return code;
    shell_options.keys_dir = command.values[OPTION_keys][0] ? command.values[OPTION_keys] : NULL;
    shell_options.ipc_dir = ipc[0] ? ipc : NULL;
    shell_options.settings = command.settings;
    return serve(&shell_options);
}
