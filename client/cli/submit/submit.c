#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/cli/command.h"
#include "client/cli/submit/wait_print.h"
#include "client/cli/connect.h"
#include "client/json/json.h"
#include "client/cli/submit/wait.h"
#include "common/base/cleanup.h"
#include "common/base/clock.h"

enum { PATIENT_MS = 60000 }; /* once the broker has answered, a restart of it is waited for */

struct submit_options {
    const char *stream, *out, *group_prefix;
    uint64_t samples, agent, priority, lease_ms, versions_behind, on_stale, patience_ms;
    struct texts image, network_grant, set;
    const char *files;
    bool wait, json, prebuilt;
};

static struct sluice_group *make_groups(const struct tasks_file *tasks, const struct submit_options *options)
{
    struct sluice_group *groups = calloc(tasks->count + 1, sizeof(*groups));
    for (size_t i = 0; groups && i < tasks->count; i++)
        groups[i] = (struct sluice_group){.group = tasks->lines[i].name,
                                          .stream = options->stream,
                                          .task_json = tasks->lines[i].json,
                                          .samples = tasks->lines[i].samples,
                                          .has_priority = true,
                                          .priority = (unsigned)options->priority,
                                          .lease_ms = options->lease_ms};
    return groups;
}

/* Those that a full broker did not take come first again, in their order; returns how many. */
static size_t gather_refused(struct sluice_group *groups, size_t count, uint64_t *retry_after_ms)
{
    size_t left = 0;
    for (size_t i = 0; i < count; i++)
        if (groups[i].result == -EAGAIN || groups[i].result == -ECANCELED) {
            struct sluice_group group = groups[i];
            if (group.result == -EAGAIN && group.retry_after_ms > *retry_after_ms)
                *retry_after_ms = group.retry_after_ms;
            groups[i] = groups[left];
            groups[left++] = group;
        }
    return left;
}

/* The pause that a full broker asked for; with --wait, in which what ends is taken. */
static int pause_for_room(const struct submit_options *options, struct sluice_client *client, uint64_t pause_ms,
                          struct wait *wait)
{
    if (options->lease_ms) /* what is accepted already must not run out meanwhile */
        sluice_renew(client, options->stream, NULL);
    if (options->wait && wait->ended < wait->total)
        return wait_for(wait, (int64_t)pause_ms);
    struct timespec time = {(time_t)(pause_ms / 1000), (long)(pause_ms % 1000) * 1000000};
    nanosleep(&time, NULL);
    return 0;
}

static void say_warning(const struct sluice_client *client, bool *said)
{
    if (!*said && *sluice_warning(client)) {
        cli_say("warning: %s", sluice_warning(client));
        *said = true;
    }
}

/* All of them, waiting while the broker is full, but not for longer than --patience in vain. */
static int submit_all(const struct submit_options *options, struct sluice_client *client, struct sluice_group *groups,
                      size_t count, struct wait *wait)
{
    size_t left = count;
    bool said = false, warned = false;
    int64_t took_ms = clock_ms();
    while (left > 0) {
        size_t before = left;
        uint64_t pause_ms = 0;
        sluice_set_patience(client, 0); /* the waiting is done here */
        int failed = sluice_submit_many(client, groups, left);
        sluice_set_patience(client, cli_patience(options->patience_ms));
        say_warning(client, &warned);
        left = gather_refused(groups, left, &pause_ms);
        if (failed && !(failed == -EAGAIN && left))
            return failed;
        if (left < before)
            took_ms = clock_ms();
        if (left && (uint64_t)(clock_ms() - took_ms) + pause_ms > options->patience_ms)
            return failed;
        if (left && !said)
            cli_say("%s (%zu of %zu groups wait)", sluice_error(client), left, count);
        said = left > 0;
        failed = left ? pause_for_room(options, client, pause_ms, wait) : 0;
        if (failed)
            return failed;
    }
    return 0;
}

static void say_accepted(const struct sluice_group *groups, size_t count, const char *stream)
{
    uint64_t rollouts = 0;
    size_t taken = 0, known = 0;
    for (size_t i = 0; i < count; i++) {
        taken += groups[i].result == 0;
        known += groups[i].result == 0 && groups[i].known;
        rollouts += groups[i].result == 0 ? groups[i].accepted : 0;
    }
    printf("%zu of %zu groups accepted (%llu rollouts) for stream %s", taken, count, (unsigned long long)rollouts,
           stream);
    if (known)
        printf("; %zu of them the broker had already", known);
    printf("\n");
    fflush(stdout);
}

/* One line a group. */
static void print_json(const struct tasks_file *tasks, const char *stream)
{
    for (size_t i = 0; i < tasks->count; i++) {
        putchar('{');
        tasks_line_json(stdout, &tasks->lines[i], stream);
        printf("}\n");
    }
    fflush(stdout);
}

/* Groups that were there before may have ended before this began to listen. */
static int ask_for_known(struct wait *wait, const struct sluice_group *groups, size_t count)
{
    int failed = 0;
    for (size_t i = 0; i < count && !failed; i++)
        if (groups[i].known)
            failed = wait_ask(wait, wait_find(wait, groups[i].group), true);
    return failed;
}

/* Is a broker there? And from where in the stream to wait, taken before anything is submitted. */
static int begin(const struct submit_options *options, struct sluice_client *client, const struct tasks_file *tasks,
                 struct wait *wait)
{
    const char *json;
    int failed = sluice_status(client, &json);
    if (failed)
        return failed;
    sluice_set_timeout(client, PATIENT_MS);
    return options->wait ? wait_open(wait, client, options->stream, tasks) : 0;
}

static int end(const struct submit_options *options, struct wait *wait, const struct sluice_group *groups,
               const struct tasks_file *tasks)
{
    int failed = ask_for_known(wait, groups, tasks->count);
    if (!failed)
        failed = wait_all(wait);
    if (options->json)
        wait_print_json(wait, tasks, stdout);
    if (failed)
        return cli_failed(wait->client);
    if (!options->json)
        wait_print(wait, tasks, stdout);
    return wait->trainable == wait->ended ? EXITS_OK : EXITS_UNTRAINABLE;
}

static bool open_out(const struct submit_options *options, FILE **out)
{
    if (!options->out || (*out = fopen(options->out, "w")))
        return true;
    cli_say("cannot write %s: %s", options->out, strerror(errno));
    return false;
}

/* *out is written anew only once a broker has answered: what an earlier command left there stays. */
static int submit(const struct submit_options *options, struct sluice_client *client, const struct tasks_file *tasks,
                  FILE **out)
{
    AUTO_WAIT wait = {.quiet = options->json};
    AUTO_FREE struct sluice_group *groups = make_groups(tasks, options);
    if (!groups) {
        cli_say("out of memory");
        return EXITS_FAILED;
    }
    int failed = begin(options, client, tasks, &wait);
    if (failed)
        return cli_failed(client);
    if (!open_out(options, out))
        return EXITS_FAILED;
    wait.out = *out;
    failed = submit_all(options, client, groups, tasks->count, &wait);
    int status = failed ? cli_failed(client) : EXITS_OK;
    if (options->json && !failed && !options->wait)
        print_json(tasks, options->stream);
    else if (!options->json || failed)
        say_accepted(groups, tasks->count, options->stream);
    return failed || !options->wait ? status : end(options, &wait, groups, tasks);
}

static const char *const stale_words[] = {"stop", "refresh", "mark"};
static const char *const agent_words[] = {"oracle", "none"};

static bool add_list(struct python_call *call, const char *option, const struct texts *list)
{
    for (size_t i = 0; i < list->count; i++)
        if (!python_add(call, option) || !python_add(call, list->items[i]))
            return false;
    return true;
}

static bool import_tasks(const struct submit_options *options, const char *path, struct tasks_file *tasks)
{
    struct python_call importer = {.module = "sluice.importers", .arguments = {"harbor"}, .count = 1};
    return add_list(&importer, "--image", &options->image) &&
           add_list(&importer, "--network-grant", &options->network_grant) &&
           add_list(&importer, "--set", &options->set) && python_add(&importer, "--files") &&
           python_add(&importer, options->files) && (!options->prebuilt || python_add(&importer, "--prebuilt")) &&
           tasks_import(tasks, path, &importer, (unsigned)options->samples);
}

static bool read_tasks(const struct submit_options *options, const char *path, struct tasks_file *tasks)
{
    if (!(tasks_are_folders(path) ? import_tasks(options, path, tasks)
                                  : tasks_read(tasks, path, (unsigned)options->samples)))
        return false;
    const size_t lines = tasks->bad + tasks->count;
    const char *on_stale = options->on_stale == OPTION_NOT_GIVEN ? NULL : stale_words[options->on_stale];
    if ((options->versions_behind != OPTION_NOT_GIVEN && !tasks->bad &&
         !tasks_set_age(tasks, options->versions_behind, on_stale)) ||
        (options->agent != OPTION_NOT_GIVEN && !tasks->bad && !tasks_set_agent(tasks, agent_words[options->agent]))) {
        cli_say("out of memory");
        return false;
    }
    if (tasks->bad)
        cli_say("%zu of %zu lines are not tasks; nothing was submitted", tasks->bad, lines);
    else if (!tasks->count)
        cli_say("there is no task in %s", path);
    else if (tasks_name_groups(tasks, options->group_prefix, options->stream))
        return true;
    else
        cli_say("out of memory");
    return false;
}

static int run_submit(const struct invocation *in)
{
    const struct submit_options *options = in->options;
    if (options->out && !options->wait)
        return cli_usage(in->command, "--out writes what --wait waits for: add --wait");
    if (!cli_is_name(in->command, "--stream", options->stream))
        return EXITS_USAGE;
    if (options->on_stale != OPTION_NOT_GIVEN && options->versions_behind == OPTION_NOT_GIVEN)
        return cli_usage(in->command, "--on-stale says what --versions-behind leads to: add that");
    struct tasks_file tasks = {0};
    AUTO_FCLOSE FILE *out = NULL;
    AUTO_CLIENT *client = NULL;
    int status = EXITS_FAILED;
    if (read_tasks(options, in->arguments[0], &tasks) && (client = cli_connect(in)))
        status = submit(options, client, &tasks, &out);
    tasks_finish(&tasks);
    if (out && (ferror(out) || fclose(take_ptr(&out)) != 0)) {
        cli_say("cannot write %s: %s", options->out, strerror(errno));
        status = EXITS_FAILED;
    }
    return status;
}

static const struct option options[] = {
    {"stream", OPTION_TEXT, offsetof(struct submit_options, stream), "NAME", "The stream for the trajectories.",
     .required = true},
    {"samples", OPTION_NUMBER, offsetof(struct submit_options, samples), "N", "Rollouts per task.",
     .standard = "what the task says, else 1", .min = 1, .max = 1024},
    {"agent", OPTION_WORD, offsetof(struct submit_options, agent), "oracle|none",
     "Replace each task's agent: oracle does what the task's solution says, none does nothing.",
     .standard = "the task's own", .preset = OPTION_NOT_GIVEN},
    {"wait", OPTION_FLAG, offsetof(struct submit_options, wait), NULL,
     "Wait until all rollouts have ended, then show rewards and outcomes."},
    {"out", OPTION_TEXT, offsetof(struct submit_options, out), "FILE",
     "With --wait: write the trajectories to FILE, one JSON object a line."},
    {"priority", OPTION_NUMBER, offsetof(struct submit_options, priority), "N",
     "Priority within the stream; higher ones run first.", .preset = 5, .min = 0, .max = 9},
    {"lease", OPTION_DURATION, offsetof(struct submit_options, lease_ms), "TIME",
     "Cancel what has not ended when no request has named the stream for this long.", .standard = "never", .min = 1000,
     .max = 604800000},
    {"versions-behind", OPTION_NUMBER, offsetof(struct submit_options, versions_behind), "N",
     "Maximum policy versions between a rollout's first turn and the start of any later one.",
     .standard = "what the task says, else any number", .preset = OPTION_NOT_GIVEN, .min = 0, .max = 1000000},
    {"on-stale", OPTION_WORD, offsetof(struct submit_options, on_stale), "stop|refresh|mark",
     "With --versions-behind: what happens to a rollout beyond it: stop, refresh (it starts over) or mark.",
     .standard = "what the task says, else stop", .preset = OPTION_NOT_GIVEN},
    {"patience", OPTION_DURATION, offsetof(struct submit_options, patience_ms), "TIME",
     "Give up when a full broker has accepted no group, or a broker that had answered has been away, for this long. At "
     "the start the command waits 4s for the broker.",
     .preset = PATIENCE_PRESET_MS, .min = 0, .max = DURATION_FOREVER},
    {"group-prefix", OPTION_TEXT, offsetof(struct submit_options, group_prefix), "TEXT", "Prefix of group ids.",
     .standard = "the file's name"},
    {"image", OPTION_LIST, offsetof(struct submit_options, image), "[NAME=]PATH",
     "For a directory: the image that its tasks call NAME, or without NAME the image of every task.",
     .standard = "what the task says"},
    {"prebuilt", OPTION_FLAG, offsetof(struct submit_options, prebuilt), NULL,
     "For a directory: images exist already, so do not execute Dockerfiles."},
    {"network-grant", OPTION_LIST, offsetof(struct submit_options, network_grant), "[HOST=]NAME",
     "For a directory: the grant to use for a public network, or for HOST.", .standard = "no network"},
    {"files", OPTION_TEXT, offsetof(struct submit_options, files), "auto|inline|source",
     "For a directory: where tasks take files from: inline, the task itself; source, the file in place.",
     .text = "auto"},
    {"set", OPTION_LIST, offsetof(struct submit_options, set), "FIELD=VALUE",
     "For a directory: set a field of each task, such as agent.max_turns=50.", .standard = "nothing"},
    {"json", OPTION_FLAG, offsetof(struct submit_options, json), NULL,
     "Print one JSON object per group instead of text; with --wait when all have ended, with outcomes and rewards."},
};

const struct command command_submit = {
    COMMAND_LINE("submit"),
    .line.arguments = "TASKS",
    .line.brief = "Submits tasks: a file of one JSON object a line, or a directory of Harbor's",
    .line.doc = "Every line is checked first. If any line is invalid, every invalid line is reported as\n"
                "FILE:LINE: FIELD: REASON (FILE:LINE: REASON where no field is at fault), nothing is "
                "submitted, and the exit\n"
                "status is 1. '-' is stdin. A directory holds tasks in Harbor's format (docs/tasks/harbor.md).\n"
                "\n"
                "A task becomes a group of N rollouts, named after the file, the task's id and a hash of "
                "its\n"
                "content. So repeating the command submits nothing twice: with --wait it resumes waiting\n"
                "where an interrupted one left off. Stream, samples and --versions-behind count as "
                "content; --priority and\n"
                "--lease do not, and change nothing for a group that the broker has. While the broker is "
                "full the command waits and\n"
                "retries; what can never fit is refused at once.\n"
                "\n"
                "With --lease the rollouts are cancelled when their trainer is gone. This command renews "
                "the\n"
                "lease while it waits; after that, reading the stream with the owner's key renews it "
                "('sluice watch'\n"
                "included); an admin's reads do not.\n"
                "\n"
                "Exit status with --wait: 0 all rollouts are trainable; 3 some ended by a fault of the "
                "task or\n"
                "of the service, and have no reward to learn from.\n",
    .line.example = "sluice submit tasks.jsonl --stream train --samples 8\n"
                    "sluice submit tasks.jsonl --stream train --samples 8 --wait --out trajectories.jsonl\n",
    .line.tables[0] = {.rows = options, .count = ROWS(options)},
    .options_size = sizeof(struct submit_options),
    .line.arguments_min = 1,
    .line.arguments_max = 1,
    .run = run_submit,
};
