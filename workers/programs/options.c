#include "workers/programs/options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/cleanup.h"
#include "common/base/log.h"
#include "common/base/url.h"
#include "common/cmdline/cmdline.h"
#include "workers/files/dirtree.h"
#include "workers/handlers/processes/process.h"
#include "workers/layers/cache.h"
#include "workers/sandbox/container/masked_paths.h"
#include "workers/sandbox/proto/tier.h"
#include "workers/tools/search/search_service.h"

enum { PORT_MAX = 32767, HOST_MAX = 120 };

/* ---- the command line ------------------------------------------------------------------- */

static const struct option rows[] = {
#define OPTION(...) OPTION_ROW(struct worker_options, __VA_ARGS__)
#include "workers/service/options.def"
#undef OPTION
};

static const struct cmdline_status statuses[] = {
    {EXIT_SUCCESS, "it was drained. --doctor, --engine-check: all is well"},
    {END_NOT_WELL, "--doctor: sandboxes work, but of a weaker tier or near a low limit. "
                   "--engine-check: a check failed"},
    {CMDLINE_WRONG, "the command line is wrong. --doctor: there can be no sandbox. --engine-check: "
                    "there is no engine "
                    "that can be exact"},
    {END_NO_DIRECTORY, "it cannot make its directories"},
    {END_NO_SPAWNER, "the spawner of sandboxes does not start, or died"},
    {END_NO_SOCKET, "it cannot open its sockets"},
};

static void print_tiers(FILE *out)
{
    fputs("\ntiers of sandbox, best first\n", out);
    tier_print_help(out);
}

static const struct cmdline line = {
    .program = "sluice-worker",
    .arguments = "init|run|eval",
    .arguments_max = 1,
    .brief = "Does the jobs of one stage",
    .doc = "It takes them from the broker, one for each slot, sends each result until it is "
           "acknowledged, and outlives\n"
           "the broker. Any number, on any node. It prints `worker ready stage=STAGE id=ID "
           "lane=ENDPOINT` once it can be\n"
           "given jobs.\n"
           "\n"
           "SIGTERM and SIGINT drain it, as `sluice drain` does: it takes no new job, gives what "
           "runs its grace to end\n"
           "and the rest back, and ends; a second signal: at once. "
           "SLUICE_LOG=debug|info|warn|error sets what it says on\n"
           "stderr.\n",
    .example = "sluice-worker run --broker tcp://10.0.0.1:5750 --key node7.key --slots 64 \\\n"
               "    --store /shared/sluice/store --cache /var/tmp/sluice --cache-max 64GiB\n",
    .tables = {{.rows = rows, .count = ROWS(rows)}},
    .statuses = statuses,
    .status_count = ROWS(statuses),
    .more = print_tiers,
};

/* ---- what it is told, checked and read -------------------------------------------------- */

static int read_ports(struct worker_plan *plan, struct fail *fail)
{
    const char *text = plan->given.lane_ports;
    unsigned first, last;
    char tail;
    int read = sscanf(text, "%5u-%5u%c", &first, &last, &tail);
    if (read == 1 && !strchr(text, '-'))
        last = first;
    else if (read != 2)
        return fail_set(fail, -EINVAL, "--lane-ports wants A-B, not '%.100s'", text);
    if (first < 1 || first > last || last > PORT_MAX)
        return fail_set(fail, -EINVAL, "--lane-ports wants ports that rise, from 1 to %d, not '%.100s'", PORT_MAX,
                        text);
    plan->port_first = first;
    plan->port_last = last;
    return 0;
}

static int check_words(const struct worker_options *given, struct fail *fail)
{
    const char *host = given->advertise;
    enum tier tier;
    struct url url;
    if (host && (strlen(host) < 1 || strlen(host) > HOST_MAX || strpbrk(host, " /\t\n")))
        return fail_set(fail, -EINVAL, "--advertise wants a host, not '%.*s'", HOST_MAX, host);
    if (strcmp(given->sandbox, "auto") != 0 && !tier_parse(given->sandbox, &tier))
        return fail_set(fail, -EINVAL, "--sandbox wants auto or a tier, not '%.100s'", given->sandbox);
    const struct slice engine = slice_from_str(given->engine_check ? given->engine_check : "");
    if (given->engine_check && url_parse(engine, &url, fail) < 0)
        return fail_wrap(fail, "--engine-check %.*s", SLICE_ARG(url_shown(engine)));
    if (given->json && !given->doctor && !given->engine_check)
        return fail_set(fail, -EINVAL, "--json goes with --doctor and --engine-check");
    return 0;
}

static int read_lists(struct worker_plan *plan, struct fail *fail)
{
    const struct worker_options *given = &plan->given;
    int error = 0;
    for (size_t i = 0; i < given->grant.count && error == 0; i++)
        error = grants_add(&plan->grants, given->grant.items[i], fail);
    for (size_t i = 0; i < given->tokenizer.count && error == 0; i++)
        error = tokenizers_add(&plan->tokenizers, given->tokenizer.items[i], fail);
    for (size_t i = 0; i < given->model_dir.count && error == 0; i++)
        error = model_dirs_add(&plan->model_dirs, given->model_dir.items[i], given->model_context, fail);
    return error;
}

static int check_stage(const struct worker_plan *plan, struct fail *fail)
{
    if (plan->given.harness.count > 0 && plan->stage != STAGE_RUN)
        return fail_set(fail, -EINVAL, "--harness goes with run");
    const struct texts *given = &plan->given.handler, *hooks = &plan->given.hook;
    struct handler_spec spec;
    if (given->count > 0 && plan->stage == STAGE_INIT)
        return fail_set(fail, -EINVAL, "--handler goes with run and eval");
    if (hooks->count > 0 && plan->stage != STAGE_RUN)
        return fail_set(fail, -EINVAL, "--hook goes with run");
    for (size_t i = 0; i < hooks->count; i++)
        if (handler_spec_parse(hooks->items[i], &spec, fail) < 0)
            return fail->code;
    for (size_t i = 0; i < given->count; i++)
        if (handler_spec_parse(given->items[i], &spec, fail) < 0)
            return fail->code;
    return 0;
}

static int check_sessions(const struct worker_plan *plan, struct fail *fail)
{
    const struct worker_options *given = &plan->given;
    if (given->sessions && plan->stage != STAGE_RUN)
        return fail_set(fail, -EINVAL, "--sessions goes with run");
    return !given->sessions_url || given->sessions ? 0 : fail_set(fail, -EINVAL, "--sessions-url goes with --sessions");
}

static int read_key(struct options *ret, struct fail *fail)
{
    const char *path = ret->plan.given.key;
    if (!path || !path[0])
        return 0;
    int code = key_read_own(path, &ret->key, fail);
    if (code == 0 && ret->key.role != ROLE_WORKER)
        code = fail_set(fail, -EINVAL, "%s is the key of %s, whose role is %s: name a worker's key", path,
                        ret->key.name, key_role_name(ret->key.role));
    ret->plan.key = &ret->key;
    return code;
}

/* The first line of the file, or the environment's; neither is ever said. */
static int read_search(struct options *ret, struct fail *fail)
{
    const char *path = ret->plan.given.search_key, *from_env = getenv("SLUICE_SEARCH_KEY");
    char key[SEARCH_KEY_MAX + 2] = "";
    if (!ret->plan.given.search)
        return path ? fail_set(fail, -EINVAL, "--search-key goes with --search") : 0;
    AUTO_FCLOSE FILE *file = path ? fopen(path, "re") : NULL;
    if (path && (!file || !fgets(key, sizeof(key), file)))
        return fail_set(fail, -EINVAL, "--search-key %s: it cannot be read or is empty", path);
    key[strcspn(key, "\r\n")] = '\0';
    if (path || (from_env && *from_env))
        ret->search_key = strdup(path ? key : from_env);
    explicit_bzero(key, sizeof(key));
    ret->plan.search_key = ret->search_key;
    return search_check(ret->plan.given.search, ret->search_key, fail);
}

/* Whether it does the jobs of a stage: not for --doctor and --engine-check. */
static bool has_stage(const struct options *options)
{
    return !options->plan.given.doctor && !options->plan.given.engine_check;
}

static int read_stage(const struct cmdline_values *values, struct options *ret, struct fail *fail)
{
    static const uint64_t slots[STAGE_COUNT] = {[STAGE_INIT] = 4, [STAGE_RUN] = 32, [STAGE_EVAL] = 4};
    const char *word = values->argument_count ? values->arguments[0] : "";
    if (!values->argument_count && !has_stage(ret))
        return 0;
    if (!stage_parse(slice_from_str(word), &ret->plan.stage))
        return has_stage(ret) ? fail_set(fail, -EINVAL, "say which stage to work on: init, run or eval")
                              : fail_set(fail, -EINVAL, "'%.100s' is one argument too many", word);
    if (ret->plan.given.slots == 0)
        ret->plan.given.slots = slots[ret->plan.stage];
    return 0;
}

/* What was given to others than this program. */
static void take_environment(struct worker_options *given)
{
    given->broker = given->broker ? given->broker : getenv("SLUICE_BROKER");
    given->broker = given->broker ? given->broker : "tcp://127.0.0.1:5750";
    given->store = given->store ? given->store : getenv("SLUICE_STORE");
    given->key = given->key ? given->key : getenv("SLUICE_KEY");
}

/* A directory given, or one under --data. */
static char *choose_directory(const char *given, const char *data, const char *name)
{
    return given ? strdup(given) : dirtree_join(data, name);
}

static int read_all(const struct cmdline_values *values, struct options *ret, struct fail *fail)
{
    struct worker_options *given = &ret->plan.given;
    int error;
    take_environment(given);
    if ((error = check_words(given, fail)) || (error = read_ports(&ret->plan, fail)) ||
        (error = read_lists(&ret->plan, fail)) || (error = read_stage(values, ret, fail)) ||
        (error = check_stage(&ret->plan, fail)) || (error = check_sessions(&ret->plan, fail)) ||
        (error = read_key(ret, fail)) || (error = read_search(ret, fail)))
        return error;
    ret->store = choose_directory(given->store, given->data, "store");
    ret->cache = choose_directory(given->cache, given->data, "cache");
    return ret->store && ret->cache ? 0 : fail_memory(fail);
}

int options_begin(int argc, char **argv, struct options *ret)
{
    struct fail fail;
    *ret = (struct options){0};
    struct cmdline_values values = {.into = {&ret->plan.given}};
    int status = cmdline_begin(&line, argc, argv, &values);
    if (status < 0 && read_all(&values, ret, &fail) < 0)
        status = cmdline_wrong(&line, "%s", fail.text);
    cmdline_finish(&values);
    return status;
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
    model_dirs_finish(&options->plan.model_dirs);
    image_names_finish(&options->plan.image_names);
    task_dirs_finish(&options->plan.task_dirs);
    harness_dirs_finish(&options->plan.harness_dirs);
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
    *ret = dirtree_join(options->cache, name);
    return *ret ? 0 : fail_memory(fail);
}

/* A certificate directory (`sluice keys init`) that its own key lies in has everybody's. NULL: there is none, or no
 * memory. */
static char *find_keys(const char *key_path)
{
    struct stat it;
    AUTO_FREE char *trusted = NULL;
    const char *slash = key_path ? strrchr(key_path, '/') : NULL;
    if (!key_path ||
        asprintf(&trusted, "%.*s/trusted", slash ? (int)(slash - key_path) : 1, slash ? key_path : ".") < 0) {
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
    const struct worker_options *given = &options->plan.given;
    AUTO_FREE char *sockets = find_sockets(options->plan.given.broker);
    AUTO_FREE char *keys = find_keys(given->key);
    const char *const own[] = {options->store,    options->cache, given->data, given->key,
                               given->search_key, keys,           sockets};
    int code = image_list_use_cache(&options->plan.images, options->cache, fail);
    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]) && code == 0; i++) {
        if (!own[i] || !own[i][0])
            continue;
        code = image_list_keep(&options->plan.images, own[i], fail);
        if (code == 0)
            code = masked_paths_keep(own[i], fail);
    }
    for (size_t i = 0; i < given->images.count && code == 0; i++)
        code = image_list_add(&options->plan.images, given->images.items[i], fail);
    options->plan.image_names.list = &options->plan.images;
    for (size_t i = 0; i < given->image_name.count && code == 0; i++)
        code = image_names_add(&options->plan.image_names, given->image_name.items[i], fail);
    options->plan.task_dirs.own = &options->plan.images;
    for (size_t i = 0; i < given->task_dir.count && code == 0; i++)
        code = task_dirs_add(&options->plan.task_dirs, given->task_dir.items[i], fail);
    for (size_t i = 0; i < given->harness.count && code == 0; i++)
        code = harness_dirs_add(&options->plan.harness_dirs, &options->plan.images, given->harness.items[i], fail);
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
        const uint64_t standard = layer_cache_prepare(options->cache), given = options->plan.given.cache_max_bytes;
        options->plan.cache_bytes = given ? given : standard;
    }
    return error;
}
