#include "client/cli/up/up.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "client/cli/connect.h"
#include "client/cli/commands/keys.h"
#include "client/cli/up/run.h"
#include "client/cli/programs/siblings.h"
#include "common/base/log.h"
#include "common/base/url.h"

#define NO_BREAKER "1000000" /* faults: as good as never */

static const char any_address[] = "0.0.0.0";

enum {
    IPC_DIRECTORY_MAX = 64
}; /* beside it a lane's socket is named after its worker, and a Unix socket's path has 107 */

/* A directory and its parents, so that a bad one is one sentence and not one from each child. */
static bool make_directory(const char *option, const char *path, mode_t mode)
{
    char part[4096];
    if (snprintf(part, sizeof(part), "%s", path) >= (int)sizeof(part)) {
        cli_say("--%s is too long", option);
        return false;
    }
    for (char *at = part + 1; *at; at++)
        if (*at == '/') {
            *at = '\0';
            mkdir(part, 0755); /* the last one tells */
            *at = '/';
        }
    if (mkdir(part, mode) == 0 || errno == EEXIST)
        return true;
    cli_say("cannot make %s: %s", path, strerror(errno));
    return false;
}

static void plan_addresses(struct up *up)
{
    const struct up_options *options = up->options;
    const char *address = options->bind;
    if (strncmp(address, "tcp://", 6) == 0)
        address += 6;
    bool is_any = strcmp(address, any_address) == 0 || strcmp(address, "*") == 0;
    snprintf(up->bind, sizeof(up->bind), "tcp://%s", address);
    snprintf(up->url, sizeof(up->url), "tcp://%s:%u", is_any ? "127.0.0.1" : address, (unsigned)options->front);
    snprintf(up->front, sizeof(up->front), "%u", (unsigned)options->front);
    snprintf(up->sink, sizeof(up->sink), "%u", (unsigned)options->front + 1);
    snprintf(up->feed, sizeof(up->feed), "%u", (unsigned)options->front + 2);
    if (options->ipc)
        snprintf(up->url, sizeof(up->url), "ipc://%s/front", options->ipc);
    duration_format(options->grace_ms, up->grace, sizeof(up->grace));
    snprintf(up->tries, sizeof(up->tries), "%llu", (unsigned long long)options->tries);
}

/* As sluice-worker chooses it. */
static void plan_store(struct up *up)
{
    const char *given = getenv("SLUICE_STORE");
    if (given)
        snprintf(up->store_path, sizeof(up->store_path), "%s", given);
    else
        snprintf(up->store_path, sizeof(up->store_path), "%s/store", up->options->data);
}

static void add_option(struct child *child, const char *name, const char *value)
{
    if (!value)
        return;
    child_add(child, name);
    child_add(child, value);
}

static void plan_broker(struct up *up)
{
    struct child *broker = &up->children[up->child_count++];
    const char *const ports[] = {"--bind", up->bind, "--front", up->front, "--sink", up->sink, "--feed", up->feed};
    *broker = (struct child){.title = "broker", .out = -1};
    child_add(broker, up->broker_path);
    for (size_t i = 0; i < ROWS(ports) && !up->options->ipc; i++)
        child_add(broker, ports[i]);
    add_option(broker, "--ipc", up->options->ipc);
    add_option(broker, "--data", up->options->data);
    add_option(broker, "--keys", up->options->keys);
    if (up->allow_plaintext)
        child_add(broker, "--allow-plaintext");
    add_option(broker, "--store", up->store_path);
    if (up->options->tries) {
        add_option(broker, "--infra-budget", up->tries);
        add_option(broker, "--breaker-faults", NO_BREAKER);
    }
}

static void plan_stages(struct up *up)
{
    const struct up_options *o = up->options;
    const struct up_stage stages[] = {
        {.name = "init", .workers = o->init, .slots = o->init_slots ? o->init_slots : o->slots},
        {.name = "run", .workers = o->run, .slots = o->run_slots ? o->run_slots : o->slots},
        {.name = "eval", .workers = o->eval, .slots = o->eval_slots ? o->eval_slots : o->slots},
    };
    memcpy(up->stages, stages, sizeof(stages));
    for (size_t i = 0; i < ROWS(stages); i++)
        snprintf(up->stages[i].slots_text, sizeof(up->stages[i].slots_text), "%llu",
                 (unsigned long long)stages[i].slots);
}

static void plan_texts(struct up *up)
{
    snprintf(up->model_context, sizeof(up->model_context), "%llu", (unsigned long long)up->options->model_context);
    snprintf(up->hook_timeout, sizeof(up->hook_timeout), "%llums", (unsigned long long)up->options->hook_ms);
}

static bool has_handlers(const struct up_stage *stage) { return strcmp(stage->name, "init") != 0; }
static bool has_harnesses(const struct up_stage *stage) { return strcmp(stage->name, "run") == 0; }

/* What only run workers have. */
static void plan_run_worker(const struct up *up, const struct up_stage *stage, struct child *worker)
{
    const struct up_options *options = up->options;
    if (strcmp(stage->name, "run") != 0)
        return;
    for (size_t k = 0; k < options->model_dirs.count; k++)
        add_option(worker, "--model-dir", options->model_dirs.items[k]);
    for (size_t k = 0; k < options->hooks.count; k++)
        add_option(worker, "--hook", options->hooks.items[k]);
    add_option(worker, "--sessions", options->sessions);
    add_option(worker, "--model-context", options->model_context ? up->model_context : NULL);
    add_option(worker, "--hook-timeout", options->hooks.count ? up->hook_timeout : NULL);
}

/* Each worker listens at a port of its own. */
static int check_sessions(const struct invocation *in, const struct up_options *options)
{
    const char *colon = options->sessions ? strrchr(options->sessions, ':') : NULL;
    const char *port = colon ? colon + 1 : options->sessions;
    return !port || options->run <= 1 || strcmp(port, "0") == 0
               ? EXITS_OK
               : cli_usage(in->command,
                           "--sessions wants port 0 where there are several run workers, so that each takes "
                           "one that is free");
}

static void plan_workers(struct up *up, const struct up_stage *stage)
{
    const char *const arguments[] = {up->worker_path, stage->name,       "--broker", up->url,
                                     "--data",        up->options->data, "--grace",  up->grace};
    for (uint64_t i = 1; i <= stage->workers; i++) {
        struct child *worker = &up->children[up->child_count++];
        *worker = (struct child){.out = -1};
        snprintf(worker->title, sizeof(worker->title), "%s worker %u", stage->name, (unsigned)i);
        for (size_t k = 0; k < ROWS(arguments); k++)
            child_add(worker, arguments[k]);
        add_option(worker, "--key", up->options->keys ? up->worker_key : NULL);
        if (up->allow_plaintext)
            child_add(worker, "--allow-plaintext");
        for (size_t k = 0; k < up->options->grants.count; k++)
            add_option(worker, "--grant", up->options->grants.items[k]);
        for (size_t k = 0; k < up->options->images.count; k++)
            add_option(worker, "--images", up->options->images.items[k]);
        for (size_t k = 0; k < up->options->image_names.count; k++)
            add_option(worker, "--image-name", up->options->image_names.items[k]);
        for (size_t k = 0; k < up->options->task_dirs.count; k++)
            add_option(worker, "--task-dir", up->options->task_dirs.items[k]);
        for (size_t k = 0; has_handlers(stage) && k < up->options->handlers.count; k++)
            add_option(worker, "--handler", up->options->handlers.items[k]);
        for (size_t k = 0; has_harnesses(stage) && k < up->options->harnesses.count; k++)
            add_option(worker, "--harness", up->options->harnesses.items[k]);
        plan_run_worker(up, stage, worker);
        add_option(worker, "--search", up->options->search);
        add_option(worker, "--search-key", up->options->search ? up->options->search_key : NULL);
        add_option(worker, "--sandbox", up->options->sandbox);
        add_option(worker, "--slots", stage->slots ? stage->slots_text : NULL);
    }
}

/* Its callers bring tokens where keys are asked for. */
static void plan_gateway(struct up *up)
{
    struct child *gateway = &up->children[up->child_count];
    up->worker_count = up->child_count - 1;
    if (!up->options->gateway)
        return;
    up->child_count++;
    *gateway = (struct child){.title = "gateway", .out = -1};
    child_add(gateway, up->gateway_path);
    add_option(gateway, "--listen", up->options->gateway);
    add_option(gateway, "--broker", up->url);
    add_option(gateway, "--key", up->options->keys ? up->admin_key : NULL);
    if (up->allow_plaintext)
        child_add(gateway, "--allow-plaintext");
}

static bool find_programs(struct up *up)
{
    struct fail fail;
    if (!sibling_find("sluice-broker", "broker", up->broker_path, sizeof(up->broker_path), &fail) &&
        !sibling_find("sluice-worker", "workers", up->worker_path, sizeof(up->worker_path), &fail) &&
        (!up->options->gateway ||
         !sibling_find("sluice-gateway", "client", up->gateway_path, sizeof(up->gateway_path), &fail)))
        return true;
    cli_say("%s", fail.text);
    return false;
}

/* The workers and the registering of engines need keys too; they are made the first time. */
static bool find_keys(struct up *up)
{
    return keys_ensure(up->options->keys, ROLE_WORKER, "up-worker", up->worker_key, sizeof(up->worker_key)) &&
           keys_ensure(up->options->keys, ROLE_ADMIN, "up-admin", up->admin_key, sizeof(up->admin_key));
}

static int check_urls(const struct invocation *in, const char *option, const struct texts *urls)
{
    for (size_t i = 0; i < urls->count; i++) {
        struct slice text = slice_from_str(urls->items[i]);
        struct url url;
        struct fail why;
        if (url_parse(text, &url, &why) < 0)
            return cli_usage(in->command, "--%s %.*s: that is not a base URL: %s", option, SLICE_ARG(url_shown(text)),
                             why.text);
    }
    return EXITS_OK;
}

static bool is_same_engine(const char *one, const char *other)
{
    struct url a, b;
    struct fail why;
    return url_parse(slice_from_str(one), &a, &why) == 0 && url_parse(slice_from_str(other), &b, &why) == 0 &&
           strcmp(a.base, b.base) == 0;
}

/* An engine is of one policy: the registering that came last would take it from the other. */
static int check_apart(const struct invocation *in, const char *option, const struct texts *urls, const char *other,
                       const struct texts *others, const char *advice)
{
    for (size_t i = 0; i < urls->count; i++)
        for (size_t k = 0; k < others->count; k++)
            if (is_same_engine(urls->items[i], others->items[k]))
                return cli_usage(
                    in->command,
                    "--%s %.*s is --%s's, and an engine is of one policy: leave --%s out, and let tasks say %s", option,
                    SLICE_ARG(url_shown(slice_from_str(urls->items[i]))), other, option, advice);
    return EXITS_OK;
}

static int check_engines(const struct invocation *in, const struct up_options *options)
{
    int status = check_urls(in, "engine", &options->engines);
    if (status == EXITS_OK)
        status = check_urls(in, "judge", &options->judges);
    if (status == EXITS_OK)
        status = check_urls(in, "teacher", &options->teachers);
    if (status == EXITS_OK)
        status = check_apart(in, "judge", &options->judges, "engine", &options->engines,
                             "eval.judge.policy \"default\" and eval.judge.self \"allow\"");
    if (status == EXITS_OK)
        status = check_apart(in, "teacher", &options->teachers, "engine", &options->engines,
                             "score.engine \"default\"");
    if (status == EXITS_OK)
        status = check_apart(in, "teacher", &options->teachers, "judge", &options->judges, "score.engine \"judge\"");
    return status;
}

static int check_use(const struct invocation *in)
{
    const struct up_options *options = in->options;
    if (in->broker)
        return cli_usage(in->command, "up starts a broker: say --bind and --front, not --broker");
    if (in->key)
        return cli_usage(in->command, "up has keys of its own: say --keys DIR, not --key");
    if (options->ipc && options->ipc[0] != '/')
        return cli_usage(in->command, "--ipc wants a whole path, not '%s': workers and clients find its sockets by it",
                         options->ipc);
    if (options->ipc && strlen(options->ipc) > IPC_DIRECTORY_MAX)
        return cli_usage(in->command, "--ipc: a socket's path must be shorter: at most %d characters, not %zu",
                         IPC_DIRECTORY_MAX, strlen(options->ipc));
    const int status = check_sessions(in, options);
    return status == EXITS_OK ? check_engines(in, options) : status;
}

static int run_up(const struct invocation *in)
{
    struct up_options *options = in->options;
    struct up up = {.options = options, .signal_fd = -1, .parent_fd = -1, .allow_plaintext = in->allow_plaintext};
    int status = check_use(in);
    if (status != EXITS_OK)
        return status;
    if (options->log_format == LOG_JSON)
        setenv("SLUICE_LOG_FORMAT", "json", 1);     /* of all children */
    unsetenv("SLUICE_KEY");                         /* of whoever calls this, perhaps for another broker */
    const mode_t data_mode = 0750, ipc_mode = 0700; /* rollouts are nobody else's to read, nor the sockets to use */
    if (!make_directory("data", options->data, data_mode) ||
        (options->ipc && !make_directory("ipc", options->ipc, ipc_mode)) || !find_programs(&up) ||
        (options->keys && !find_keys(&up)))
        return EXITS_FAILED;
    up.children = calloc(2 + options->init + options->run + options->eval, sizeof(*up.children));
    if (!up.children) {
        cli_say("out of memory");
        return EXITS_FAILED;
    }
    plan_addresses(&up);
    plan_store(&up);
    plan_broker(&up);
    plan_stages(&up);
    plan_texts(&up);
    for (size_t i = 0; i < ROWS(up.stages); i++)
        plan_workers(&up, &up.stages[i]);
    plan_gateway(&up);
    status = up_run(&up);
    free(up.children);
    return status;
}

static const struct option options[] = {
    {"engine", OPTION_LIST, offsetof(struct up_options, engines), "URL",
     "An LLM inference server to register (docs/engines.md).", .old_name = "llm"},
    {"judge", OPTION_LIST, offsetof(struct up_options, judges), "URL",
     "An inference server to register as a judge, for the policy judge (docs/tasks/judges.md)."},
    {"teacher", OPTION_LIST, offsetof(struct up_options, teachers), "URL",
     "An inference server to register as a teacher, for the policy teacher (docs/trainers/distillation.md)."},
    {"data", OPTION_TEXT, offsetof(struct up_options, data), "DIR", "The directory of ledger, store and cache.",
     .text = "sluice-data"},
    {"init", OPTION_NUMBER, offsetof(struct up_options, init), "N", "Worker processes of stage init.", .preset = 1,
     .min = 0, .max = 256},
    {"run", OPTION_NUMBER, offsetof(struct up_options, run), "N", "Worker processes of stage run.", .preset = 1,
     .min = 0, .max = 256},
    {"eval", OPTION_NUMBER, offsetof(struct up_options, eval), "N", "Worker processes of stage eval.", .preset = 1,
     .min = 0, .max = 256},
    {"slots", OPTION_NUMBER, offsetof(struct up_options, slots), "N", "Maximum jobs of each worker at a time.",
     .standard = "its stage's own", .min = 1, .max = 32768},
    {"init-slots", OPTION_NUMBER, offsetof(struct up_options, init_slots), "N", "The same for stage init alone.",
     .min = 1, .max = 32768},
    {"run-slots", OPTION_NUMBER, offsetof(struct up_options, run_slots), "N", "The same for stage run alone.", .min = 1,
     .max = 32768},
    {"eval-slots", OPTION_NUMBER, offsetof(struct up_options, eval_slots), "N", "The same for stage eval alone.",
     .min = 1, .max = 32768},
    {"grace", OPTION_DURATION, offsetof(struct up_options, grace_ms), "TIME",
     "How long running jobs may take to end when stopping; after that they wait for the next start.", .preset = 2000,
     .min = 0, .max = 86400000},
    {"tries", OPTION_NUMBER, offsetof(struct up_options, tries), "N",
     "Maximum tries of a job for which the service is to blame. With it no engine or image is suspended, so that "
     "faults "
     "show at once.",
     .standard = "8, and they are suspended", .min = 1, .max = 1000},
    {"bind", OPTION_TEXT, offsetof(struct up_options, bind), "ADDRESS",
     "The address for clients and workers of other nodes. One beyond this machine requires --keys.",
     .text = "127.0.0.1"},
    {"front", OPTION_NUMBER, offsetof(struct up_options, front), "PORT",
     "The port for clients; the next two are the workers' and the feed's.", .preset = 5750, .min = 1, .max = 32765},
    {"ipc", OPTION_TEXT, offsetof(struct up_options, ipc), "DIR",
     "Use Unix sockets in DIR instead of ports; DIR is created for you alone. Clients use ipc://DIR/front."},
    {"with-parent", OPTION_FLAG, offsetof(struct up_options, with_parent), NULL,
     "Stop, as at Ctrl-C, when the process that started this one ends."},
    {"keys", OPTION_TEXT, offsetof(struct up_options, keys), "DIR",
     "Require keys: a directory of `sluice keys init`, in which up-worker and up-admin are created for internal use."},
    {"sandbox", OPTION_TEXT, offsetof(struct up_options, sandbox), "TIER",
     "How sandboxes are made: a tier that sluice doctor names.", .standard = "the best that this machine allows"},
    {"handler", OPTION_LIST, offsetof(struct up_options, handlers), "NAME=COMMAND",
     "A handler of the run and eval workers, whose agents, tools and evaluators tasks may name: "
     "mine='python3 -m sluice.handlers mine.py'."},
    {"harness", OPTION_LIST, offsetof(struct up_options, harnesses), "NAME=DIR",
     "A harness of the run workers, seen read-only at /opt/harness/NAME by its rollouts: a directory with its program "
     "in "
     "bin/ (docs/harnesses.md).",
     .standard = "those that `sluice harness install` installed for this user"},
    {"hook", OPTION_LIST, offsetof(struct up_options, hooks), "NAME=COMMAND",
     "A handler of the run workers that every turn between a harness and its model passes (docs/handlers.md)."},
    {"hook-timeout", OPTION_DURATION, offsetof(struct up_options, hook_ms), "TIME",
     "How long a hook may take to answer; then the rollout is tried again.", .preset = 60000, .min = 100,
     .max = 86400000},
    {"model-dir", OPTION_LIST, offsetof(struct up_options, model_dirs), "[URL=]DIR",
     "A model's directory for engines that offer POST /generate alone, or for the one at URL (docs/engines.md).",
     .standard = "none: such engines are refused"},
    {"model-context", OPTION_NUMBER, offsetof(struct up_options, model_context), "N",
     "Tokens of prompt and reply together that such engines take.", .min = 2, .max = 1 << 26,
     .standard = "what the directory says"},
    {"sessions", OPTION_TEXT, offsetof(struct up_options, sessions), "HOST:PORT",
     "Where the run workers take sessions, loops of anyone's that run elsewhere: PORT alone is of 127.0.0.1, 0 any "
     "port (docs/sessions.md, which says who may reach it).",
     .standard = "none is taken"},
    {"grant", OPTION_LIST, offsetof(struct up_options, grants), "NAME=TO",
     "An endpoint that tasks may reach by NAME: unix:/path/of/a/socket or tcp:HOST:PORT."},
    {"images", OPTION_LIST, offsetof(struct up_options, images), "DIR",
     "A directory of images that tasks may name, or one image.", .standard = "host, and what is prepared in the cache"},
    {"image-name", OPTION_LIST, offsetof(struct up_options, image_names), "NAME=PATH",
     "The image at PATH is what Dockerfiles of tasks call NAME.", .standard = "images of that name in --images"},
    {"task-dir", OPTION_LIST, offsetof(struct up_options, task_dirs), "DIR",
     "A directory from which tasks may take files, by files[].source.", .standard = "none"},
    {"search", OPTION_TEXT, offsetof(struct up_options, search), "FORM=URL",
     "The web search behind the tool search: tavily=https://api.tavily.com or searxng=URL."},
    {"search-key", OPTION_TEXT, offsetof(struct up_options, search_key), "FILE",
     "A file with the key of the web search.", .standard = "$SLUICE_SEARCH_KEY"},
    {"gateway", OPTION_TEXT, offsetof(struct up_options, gateway), "ADDRESS",
     "Speak HTTP there, too: the page, the REST API, metrics (docs/gateway.md). HOST:PORT, PORT of 127.0.0.1, or "
     "unix:PATH.",
     .standard = "none"},
    {"log-format", OPTION_WORD, offsetof(struct up_options, log_format), LOG_FORMAT_WORDS,
     "How the broker and the workers write their log lines: text, or json, one object a line (docs/logs.md).",
     .preset = LOG_TEXT},
    {"ready-file", OPTION_TEXT, offsetof(struct up_options, ready_file), "FILE",
     "Write the broker's URL to FILE once everything is up."},
};

const struct command command_up = {
    COMMAND_LINE("up"),
    .line.arguments = "",
    .line.brief = "Runs a broker and its workers on this machine until Ctrl-C",
    .line.doc = "Starts them, registers the engines, and prints 'up front=URL' once all are ready. A "
                "process\n"
                "that dies is started again, after a pause that doubles while it keeps dying. Ctrl-C or\n"
                "SIGTERM drains the workers, then stops the broker; a second one stops everything at once. "
                "What\n"
                "was accepted and has not ended resumes at the next start with the same --data.\n"
                "\n"
                "Two things are not started again: a worker that was drained (sluice drain), and a broker "
                "that\n"
                "ended because its disk is full or its ledger damaged. After the latter everything stops, "
                "with\n"
                "the broker's exit status: 75 try again when there is room, 76 see docs/operations.md.\n"
                "\n"
                "When something cannot start (a port in use, a directory that cannot be written), it says "
                "what,\n"
                "stops everything and exits 1.\n",
    .line.example = "sluice up --engine http://127.0.0.1:8080\n"
                    "sluice up --engine http://a:8000 --engine http://b:8000 --run 4 --keys keys --bind 10.0.0.1\n",
    .line.tables[0] = {.rows = options, .count = ROWS(options)},
    .options_size = sizeof(struct up_options),
    .run = run_up,
};
