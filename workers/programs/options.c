#include "workers/programs/options.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/cleanup.h"
#include "common/base/url.h"
#include "workers/layers/cache.h"
#include "workers/sandbox/container/secrets.h"
#include "workers/sandbox/proto/tier.h"
#include "workers/tools/search/search_service.h"

enum { PORT_MAX = 32767, HOST_MAX = 120, GRACE_MAX_S = 86400, OUTBOX_MAX_MIB = 65536, IMAGES_MAX_GIB = 65536, CACHE_MAX_MIB = 1 << 30 };

enum option_id {
    OPTION_NONE = 256, /* above every character, as getopt_long wants */
#define OPTION(name, word, argument, standard, doc) OPTION_##name,
#include "workers/programs/options.def"
#undef OPTION
};

static const struct option long_options[] = {
#define OPTION(name, word, argument, standard, doc)                                                \
    {word, (argument) ? required_argument : no_argument, NULL, OPTION_##name},
#include "workers/programs/options.def"
#undef OPTION
    {0}};

void options_print_help(FILE *out)
{
    fputs("sluice-worker init|run|eval [OPTION ...]\n\n"
          "Does the jobs of one stage: takes them from the broker, one per slot, sends each result\n"
          "until it is acknowledged, and outlives the broker. Any number, on any node.\n\n",
          out);
    static const struct {
        const char *word, *argument, *standard, *doc;
    } rows[] = {
#define OPTION(name, word, argument, standard, doc) {word, argument, standard, doc},
#include "workers/programs/options.def"
#undef OPTION
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        char head[64];
        snprintf(head, sizeof(head), "--%s %s", rows[i].word,
                 rows[i].argument ? rows[i].argument : "");
        fprintf(out, "  %-19s %s", head, rows[i].doc);
        fprintf(out, rows[i].standard[0] ? "\n%22s(%s)\n" : "\n", "", rows[i].standard);
    }
    fputs("\nTiers of sandbox, best first:\n", out);
    tier_print_help(out);
    fputs("\nSIGTERM and SIGINT drain it, as `sluice drain` does: it takes no new job, gives what\n"
          "runs its grace to end and the rest back, and ends; a second signal: at once.\n"
          "Prints `worker ready stage=STAGE id=ID lane=ENDPOINT` once it can be given jobs.\n"
          "Ends with 0 once drained, 2 for a wrong command line, 3 when it cannot make its\n"
          "directories, 4 when the spawner of sandboxes does not start or died, 5 when it cannot\n"
          "open its sockets. --doctor ends with 0 when all is well, 1 when sandboxes work but of a\n"
          "weaker tier or near a low limit, 2 when there can be none; --engine-check\n"
          "with 0 when all is well, 1 when a check failed, 2 when there is no engine that can be exact.\n"
          "SLUICE_LOG=debug|info|warn|error sets what it says on stderr.\n\n"
          "  sluice-worker run --broker tcp://10.0.0.1:5750 --key node7.key --slots 64 \\\n"
          "      --store /shared/sluice/store --cache /var/tmp/sluice\n",
          out);
}

/* ---- values ----------------------------------------------------------------------------- */

static bool parse_number(const char *text, uint64_t min, uint64_t max, uint64_t *ret)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end || errno || value < min || value > max)
        return false;
    *ret = value;
    return true;
}

static int parse_ports(const char *text, struct worker_plan *plan, struct fail *fail)
{
    unsigned first, last;
    char tail;
    int read = sscanf(text, "%5u-%5u%c", &first, &last, &tail);
    if (read == 1 && !strchr(text, '-'))
        last = first;
    else if (read != 2)
        return fail_set(fail, -EINVAL, "--lane-ports %s: not A-B", text);
    if (first < 1 || first > last || last > PORT_MAX)
        return fail_set(fail, -EINVAL, "--lane-ports %s: ports must rise and lie in 1-%d", text,
                        PORT_MAX);
    plan->port_first = first;
    plan->port_last = last;
    return 0;
}

static int take_tier(const char *word, struct options *ret, struct fail *fail)
{
    enum tier tier;
    if (strcmp(word, "auto") != 0 && !tier_parse(word, &tier))
        return fail_set(fail, -EINVAL, "--sandbox %s: neither auto nor a tier (see --help)", word);
    ret->sandbox = word;
    return 0;
}

static int take_cgroup(const char *word, struct options *ret, struct fail *fail)
{
    ret->cgroup_off = strcmp(word, "off") == 0;
    if (!ret->cgroup_off && strcmp(word, "auto") != 0)
        return fail_set(fail, -EINVAL, "--cgroup %s: neither auto nor off", word);
    return 0;
}

static int take_engine_check(const char *value, struct options *ret, struct fail *fail)
{
    struct slice text = slice_from_str(value);
    struct url url;
    ret->engine_check = value;
    return url_parse(text, &url, fail) == 0 ? 0 : fail_wrap(fail, "--engine-check %.*s", SLICE_ARG(url_shown(text)));
}

static int take_option(int id, const char *word, const char *value, struct options *ret,
                       const char **data, struct fail *fail)
{
    struct worker_plan *plan = &ret->plan;
    uint64_t number;
    switch (id) {
    case OPTION_broker:
        plan->broker = value;
        return 0;
    case OPTION_slots:
        if (!parse_number(value, 1, 32768, &plan->slots))
            return fail_set(fail, -EINVAL, "--slots %s: not a number in 1-32768", value);
        return 0;
    case OPTION_data:
        *data = value;
        return 0;
    case OPTION_store:
        plan->store = value;
        return 0;
    case OPTION_cache:
        plan->cache = value;
        return 0;
    case OPTION_cache_mib:
        if (!parse_number(value, 1, CACHE_MAX_MIB, &number))
            return fail_set(fail, -EINVAL, "--cache-mib %s: not a number of MiB in 1-%d", value,
                            CACHE_MAX_MIB);
        plan->cache_bytes = number << 20;
        return 0;
    case OPTION_lane_ports:
        return parse_ports(value, plan, fail);
    case OPTION_advertise:
        if (strlen(value) < 1 || strlen(value) > HOST_MAX || strpbrk(value, " /\t\n"))
            return fail_set(fail, -EINVAL, "--advertise %s: not a host", value);
        plan->advertise = value;
        return 0;
    case OPTION_key:
        ret->key_path = value;
        return 0;
    case OPTION_allow_plaintext:
        plan->allow_plaintext = true;
        return 0;
    case OPTION_grace:
        if (!parse_number(value, 0, GRACE_MAX_S, &number))
            return fail_set(fail, -EINVAL, "--grace %s: not a number of seconds in 0-%d", value,
                            GRACE_MAX_S);
        plan->grace_ms = (int64_t)number * 1000;
        return 0;
    case OPTION_outbox:
        if (!parse_number(value, 1, OUTBOX_MAX_MIB, &number))
            return fail_set(fail, -EINVAL, "--outbox %s: not a number of MiB in 1-%d", value,
                            OUTBOX_MAX_MIB);
        plan->outbox_bytes = (size_t)number << 20;
        return 0;
    case OPTION_images:
        if (ret->image_count == IMAGE_LIST_MAX)
            return fail_set(fail, -EINVAL, "--images: more than %d", IMAGE_LIST_MAX);
        ret->images[ret->image_count++] = value;
        return 0;
    case OPTION_images_gib:
        if (!parse_number(value, 1, IMAGES_MAX_GIB, &number))
            return fail_set(fail, -EINVAL, "--images-gib %s: not a number of GiB in 1-%d", value,
                            IMAGES_MAX_GIB);
        plan->images_gib = (unsigned)number;
        return 0;
    case OPTION_sandbox:
        return take_tier(value, ret, fail);
    case OPTION_cgroup:
        return take_cgroup(value, ret, fail);
    case OPTION_doctor:
        ret->doctor = true;
        return 0;
    case OPTION_engine_check:
        return take_engine_check(value, ret, fail);
    case OPTION_json:
        ret->json = true;
        return 0;
    case OPTION_grant:
        return grants_add(&plan->grants, value, fail);
    case OPTION_search:
        plan->search = value;
        return 0;
    case OPTION_search_key:
        ret->search_key_path = value;
        return 0;
    case OPTION_tokenizer:
        return tokenizers_add(&plan->tokenizers, value, fail);
    case OPTION_with_parent:
        ret->with_parent = true;
        return 0;
    case OPTION_help:
        ret->help = true;
        return 0;
    default:
        return fail_set(fail, -EINVAL, "%s: no such option, or its argument is missing", word);
    }
}

static int take_stage(int argc, char **argv, struct options *ret, struct fail *fail)
{
    static const uint64_t slots[STAGE_COUNT] = {
        [STAGE_INIT] = 4, [STAGE_RUN] = 32, [STAGE_EVAL] = 4};
    if (optind + 1 != argc || !stage_parse(slice_from_str(argv[optind]), &ret->plan.stage))
        return fail_set(fail, -EINVAL, "say which stage to work on: init, run or eval");
    if (ret->plan.slots == 0)
        ret->plan.slots = slots[ret->plan.stage];
    return 0;
}

static int take_key(struct options *ret, struct fail *fail)
{
    if (!ret->key_path || !ret->key_path[0])
        return 0;
    int code = key_read_own(ret->key_path, &ret->key, fail);
    if (code == 0 && ret->key.role != ROLE_WORKER)
        code = fail_set(fail, -EINVAL, "%s is %s's key, who is %s: a worker's is wanted",
                        ret->key_path, ret->key.name, key_role_name(ret->key.role));
    ret->plan.key = &ret->key;
    return code;
}

/* The first line of the file, or the environment's; neither is ever said. */
static int take_search(struct options *ret, struct fail *fail)
{
    const char *path = ret->search_key_path, *given = getenv("SLUICE_SEARCH_KEY");
    char line[SEARCH_KEY_MAX + 2] = "";
    if (!ret->plan.search)
        return path ? fail_set(fail, -EINVAL, "--search-key goes with --search") : 0;
    AUTO_FCLOSE FILE *file = path ? fopen(path, "re") : NULL;
    if (path && (!file || !fgets(line, sizeof(line), file)))
        return fail_set(fail, -EINVAL, "--search-key %s: it cannot be read or is empty", path);
    line[strcspn(line, "\r\n")] = '\0';
    if (path || (given && *given))
        ret->search_key = strdup(path ? line : given);
    explicit_bzero(line, sizeof(line));
    ret->plan.search_key = ret->search_key;
    return search_check(ret->plan.search, ret->search_key, fail);
}

/* A directory given, or one under --data. */
static char *choose_directory(const char *given, const char *data, const char *name)
{
    char *path = NULL;
    int len = given ? asprintf(&path, "%s", given) : asprintf(&path, "%s/%s", data, name);
    return len < 0 ? NULL : path;
}

int options_parse(int argc, char **argv, struct options *ret, struct fail *fail)
{
    *ret = (struct options){.plan = {.broker = getenv("SLUICE_BROKER"),
                                     .store = getenv("SLUICE_STORE"),
                                     .port_first = 20000,
                                     .port_last = 29999,
                                     .grace_ms = 30000,
                                     .outbox_bytes = (size_t)64 << 20},
                            .key_path = getenv("SLUICE_KEY"),
                            .sandbox = "auto"};
    const char *data = "./sluice-data";
    int id, error;
    opterr = 0;
    while ((id = getopt_long(argc, argv, "h", long_options, NULL)) != -1)
        if ((error = take_option(id == 'h' ? OPTION_help : id, argv[optind - 1], optarg, ret, &data,
                                 fail)))
            return error;
    if (ret->help)
        return 0;
    if ((error = take_key(ret, fail)) || (error = take_search(ret, fail)))
        return error;
    if (!ret->plan.broker)
        ret->plan.broker = "tcp://127.0.0.1:5750";
    ret->data = data;
    ret->store = choose_directory(ret->plan.store, data, "store");
    ret->cache = choose_directory(ret->plan.cache, data, "cache");
    if (!ret->store || !ret->cache)
        return fail_set(fail, -ENOMEM, "out of memory");
    const bool needs_no_stage = ret->doctor || ret->engine_check;
    if (ret->json && !needs_no_stage)
        return fail_set(fail, -EINVAL, "--json goes with --doctor and --engine-check");
    return needs_no_stage && optind == argc ? 0 : take_stage(argc, argv, ret, fail);
}

void options_finish(struct options *options)
{
    free(take_ptr(&options->store));
    free(take_ptr(&options->cache));
    free(take_ptr(&options->mount_point));
    free(take_ptr(&options->disks));
    key_wipe(&options->key);
    if (options->search_key)
        explicit_bzero(options->search_key, strlen(options->search_key));
    free(take_ptr(&options->search_key));
    tokenizers_finish(&options->plan.tokenizers);
    image_list_finish(&options->plan.images);
}

/* ---- directories ------------------------------------------------------------------------ */

/* Not for other users of the node: what agents wrote lies in it. */
static int make_directory(char **path, struct fail *fail)
{
    for (char *at = *path + 1; *at; at++) {
        if (*at != '/')
            continue;
        *at = '\0';
        mkdir(*path, 0755); /* what matters shows at the end */
        *at = '/';
    }
    if (mkdir(*path, 0750) < 0 && errno != EEXIST)
        return fail_set(fail, -errno, "cannot make %s: %s", *path, strerror(errno));
    AUTO_FREE char *absolute = realpath(*path, NULL);
    if (!absolute || access(absolute, R_OK | W_OK | X_OK) < 0)
        return fail_set(fail, -errno, "cannot use %s: %s", *path, strerror(errno));
    free(*path);
    *path = take_ptr(&absolute);
    return 0;
}

static int make_below_cache(const struct options *options, const char *name, char **ret, struct fail *fail)
{
    if (asprintf(ret, "%s/%s", options->cache, name) < 0) {
        *ret = NULL;
        return fail_set(fail, -ENOMEM, "out of memory");
    }
    return 0;
}

/* A certificate directory (`sluice keys init`) that its own key lies in has everybody's. NULL: there is none, or no memory. */
static char *find_keys(const char *key_path)
{
    struct stat it;
    AUTO_FREE char *trusted = NULL;
    const char *slash = key_path ? strrchr(key_path, '/') : NULL;
    if (!key_path || asprintf(&trusted, "%.*s/trusted", slash ? (int)(slash - key_path) : 1, slash ? key_path : ".") < 0) {
        trusted = NULL;
        return NULL;
    }
    if (stat(trusted, &it) < 0 || !S_ISDIR(it.st_mode))
        return NULL;
    *strrchr(trusted, '/') = '\0';
    return take_ptr(&trusted);
}

/* Where SINK's socket and the lanes' are, too. NULL: the broker is reached otherwise, or no memory. */
static char *find_sockets(const char *broker)
{
    static const char ipc[] = "ipc://";
    char *path = broker && strncmp(broker, ipc, strlen(ipc)) == 0 ? strdup(broker + strlen(ipc)) : NULL;
    char *slash = path ? strrchr(path, '/') : NULL;
    if (slash)
        *slash = '\0';
    return path;
}

/* The ledger is in `data`. */
static int keep_own(struct options *options, struct fail *fail)
{
    AUTO_FREE char *sockets = find_sockets(options->plan.broker);
    AUTO_FREE char *keys = find_keys(options->key_path);
    const char *const own[] = {options->store,    options->cache, options->data, options->key_path,
                               options->search_key_path, keys,           sockets};
    int code = image_list_use_cache(&options->plan.images, options->cache, fail);
    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]) && code == 0; i++) {
        if (!own[i] || !own[i][0])
            continue;
        code = image_list_keep(&options->plan.images, own[i], fail);
        if (code == 0)
            code = secrets_keep(own[i], fail);
    }
    for (size_t i = 0; i < options->image_count && code == 0; i++)
        code = image_list_add(&options->plan.images, options->images[i], fail);
    return code;
}

int options_make_directories(struct options *options, struct fail *fail)
{
    int error = make_directory(&options->store, fail);
    if (error == 0)
        error = make_directory(&options->cache, fail);
    if (error == 0)
        error = make_below_cache(options, ".mount", &options->mount_point, fail);
    if (error == 0)
        error = make_directory(&options->mount_point, fail);
    if (error == 0)
        error = make_below_cache(options, ".disks", &options->disks, fail);
    if (error == 0)
        error = keep_own(options, fail);
    options->plan.store = options->store;
    options->plan.cache = options->cache;
    options->plan.mount_point = options->mount_point;
    if (error == 0) {
        uint64_t standard = layer_cache_prepare(options->cache);
        if (!options->plan.cache_bytes)
            options->plan.cache_bytes = standard;
    }
    return error;
}
