#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "client/cli/command.h"
#include "client/cli/print/list_print.h"
#include "client/cli/connect.h"
#include "client/json/json.h"
#include "client/cli/print/print.h"
#include "common/base/cleanup.h"
#include "common/base/sanitize.h"

enum { ROLLOUTS_PER_GROUP_SHOWN = 1000 };

struct show_options {
    bool tokens, json;
};

/* Colours by what is said: the policy's own in green, tools in yellow, what it was told plain. */
struct paint {
    const char *sampled, *tool, *dim, *end;
};
static const struct paint colours = {"\x1b[32m", "\x1b[33m", "\x1b[2m", "\x1b[0m"};
static const struct paint no_colours = {"", "", "", ""};

/* Each line of the text behind a bar, so that what was said cannot pass for what we say. */
static void print_quoted(const char *text, const char *colour, const struct paint *paint)
{
    for (const char *at = text; *at;) {
        size_t len = strcspn(at, "\n");
        printf("  | %s", colour);
        sanitize_print(stdout, "%.*s", (int)len, at);
        printf("%s\n", paint->end);
        at += len + (at[len] == '\n');
    }
}

/* Of several lines, as a traceback is: quoted below. */
static void print_detail(const char *detail, const struct paint *paint)
{
    bool is_line = !strchr(detail, '\n');
    if (*detail && is_line)
        sanitize_print(stdout, " (%s)", detail);
    putchar('\n');
    if (!is_line)
        print_quoted(detail, "", paint);
}

static void print_tests(const struct sluice_tests *tests)
{
    printf("tests     %llu passed, %llu failed, %llu skipped, %llu came to no result\n",
           (unsigned long long)tests->passed, (unsigned long long)tests->failed, (unsigned long long)tests->skipped,
           (unsigned long long)tests->error);
    for (size_t i = 0; i < tests->list_count; i++) {
        const struct sluice_test *test = &tests->list[i];
        const char *why = test->message ? test->message : "";
        if (strcmp(test->status, "failed") == 0 || strcmp(test->status, "error") == 0)
            sanitize_print(stdout, "          %-6s  %s%s%.*s\n", test->status, test->name, *why ? ": " : "",
                           (int)strcspn(why, "\n"), why);
    }
}

static void print_verdict(const struct sluice_trajectory *t)
{
    for (size_t i = 0; i < t->part_count; i++)
        sanitize_print(stdout, "          %s %.4g, weight %.4g\n", t->parts[i].name, t->parts[i].value,
                       t->parts[i].weight);
    for (size_t i = 0; i < t->metric_count; i++)
        sanitize_print(stdout, "metric    %s %.6g\n", t->metrics[i].name, t->metrics[i].value);
    if (t->tests)
        print_tests(t->tests);
    if (t->eval_sandbox)
        sanitize_print(stdout, "evaluated in the %s's own sandbox\n", t->eval_sandbox);
}

static void print_head(const struct sluice_trajectory *t, const struct paint *paint)
{
    char reward[32];
    print_reward(t, reward, sizeof(reward));
    sanitize_print(stdout, "rollout   %s (task %s, sample %u, attempt %u; number %llu of stream %s)\n", t->rollout,
                   t->task, t->sample, t->attempt, (unsigned long long)t->seq, t->stream);
    sanitize_print(stdout, "outcome   %s%s\n", t->outcome, t->trainable ? "" : ", not to be trained on");
    printf("reward    %s", t->has_reward ? reward : "none");
    if (t->has_reward && t->raw_reward != t->reward)
        printf(", %.4g before shaping", t->raw_reward);
    print_detail(t->detail, paint);
    print_verdict(t);
    if (*t->end)
        sanitize_print(stdout, "end       %s%s\n", t->end, t->truncated ? ", truncated" : "");
    if (t->group_size)
        printf("group     %u of its %u rollouts had ended\n", t->group_ended, t->group_size);
    if (*t->metadata) {
        printf("metadata  ");
        json_line(stdout, t->metadata);
    }
}

static void print_times(const struct sluice_trajectory *t)
{
    const struct {
        const char *what;
        uint64_t ms;
    } times[] = {{"queued", t->wait_ms}, {"init", t->init_ms}, {"run", t->run_ms}, {"eval", t->eval_ms}};
    printf("time      ");
    for (size_t i = 0; i < ROWS(times); i++) {
        char text[32];
        print_duration(times[i].ms, text, sizeof(text));
        printf("%s%s %s", i ? ", " : "", times[i].what, text);
    }
    size_t all, sampled;
    count_tokens(t, &all, &sampled);
    printf("\ntokens    %zu, %zu of them sampled, %zu trace%s\n", all, sampled, t->trace_count,
           t->trace_count == 1 ? "" : "s");
    if (*t->engine)
        sanitize_print(stdout, "engine    %s\n", t->engine);
}

static void print_message(const struct sluice_message *message, const struct paint *paint)
{
    bool sampled = strcmp(message->role, "assistant") == 0;
    const char *colour = sampled ? paint->sampled : message->tool ? paint->tool : "";
    sanitize_print(stdout, "\n%s%s%s", message->role, message->tool ? " " : "", message->tool ? message->tool : "");
    if (message->tool && message->exit_status)
        printf("  [exit status %d]", message->exit_status);
    putchar('\n');
    print_quoted(message->content, colour, paint);
}

static void print_sandbox(const struct sluice_sandbox *used)
{
    if (!used)
        return;
    printf("\nsandbox   %u commands (%u timed out), %.2f s of CPU, at most %.1f MiB of memory, "
           "%u processes, %.1f MiB in %llu files\n",
           used->commands, used->timed_out, used->cpu_seconds, (double)used->peak_memory_kib / 1024,
           used->peak_processes, (double)used->peak_disk_bytes / 1048576, (unsigned long long)used->peak_inodes);
    for (size_t i = 0; i < used->breach_count; i++)
        sanitize_print(stdout, "          limit reached: %s, %u times\n", used->breaches[i].limit,
                       used->breaches[i].count);
}

static void print_tamper(const struct sluice_tamper *tamper)
{
    if (!tamper)
        return;
    printf("\ntamper    %llu files that decide what runs when an evaluator runs:\n", (unsigned long long)tamper->count);
    for (size_t i = 0; i < tamper->file_count; i++)
        sanitize_print(stdout, "          %-11s  /%s\n", tamper->files[i].what, tamper->files[i].path);
}

/* Of a turn's time, as the engine told it. */
static void print_part(const char *what, double seconds)
{
    if (seconds >= 0)
        printf(", %s %.2f s", what, seconds);
}

static void print_turn(const struct sluice_turn *turn)
{
    bool sampled = strcmp(turn->role, "assistant") == 0;
    sanitize_print(stdout, "  %6u  %-9s  %6u tokens", turn->offset, turn->role, turn->length);
    if (sampled)
        sanitize_print(stdout, "  %.2f s, finish %s, %u in the prompt, %u of them cached%s%s", turn->seconds,
                       turn->finish, turn->prompt_tokens, turn->cached_tokens, *turn->version ? ", version " : "",
                       turn->version);
    if (*turn->masked)
        sanitize_print(stdout, ", masked as %s", turn->masked);
    print_part("queue", turn->queue_seconds);
    print_part("prefill", turn->prefill_seconds);
    print_part("decode", turn->decode_seconds);
    printf("\n");
}

static void print_ids(const struct sluice_trace *trace, const struct sluice_turn *turn, const struct paint *paint)
{
    for (uint32_t i = turn->offset; i < turn->offset + turn->length; i++) {
        if ((i - turn->offset) % 12 == 0)
            printf("%s          ", i == turn->offset ? "" : "\n");
        if (trace->mask[i])
            printf(" %s%u*%s", paint->sampled, trace->token_ids[i], paint->end);
        else
            printf(" %s%u%s", paint->dim, trace->token_ids[i], paint->end);
    }
    if (turn->length)
        printf("\n");
}

static void print_traces(const struct sluice_trajectory *t, bool tokens, const struct paint *paint)
{
    for (size_t i = 0; i < t->trace_count; i++) {
        const struct sluice_trace *trace = &t->traces[i];
        sanitize_print(stdout, "\ntrace %zu: %zu tokens%s%s%s%s\n", i, trace->token_count, *trace->label ? ", " : "",
                       trace->label, *trace->reason ? "; " : "", trace->reason);
        for (size_t k = 0; k < trace->turn_count; k++) {
            print_turn(&trace->turns[k]);
            if (tokens)
                print_ids(trace, &trace->turns[k], paint);
        }
    }
    if (tokens && t->trace_count)
        printf("\n(* sampled by the policy)\n");
}

static void print_whole(const struct sluice_trajectory *t, bool tokens)
{
    const struct paint *paint = has_colour(stdout) ? &colours : &no_colours;
    print_head(t, paint);
    print_times(t);
    for (size_t i = 0; i < t->message_count; i++)
        print_message(&t->messages[i], paint);
    print_sandbox(t->sandbox);
    print_tamper(t->tamper);
    print_traces(t, tokens, paint);
}

/* Rollouts of the group that have ended, or have not; *listed: how many. */
static int show_part(struct sluice_client *client, const char *group, bool ended, bool json, size_t *listed)
{
    const char *text;
    int failed = sluice_list(
        client, &(struct sluice_filter){.group = group, .ended = ended, .limit = ROLLOUTS_PER_GROUP_SHOWN}, &text);
    if (failed)
        return failed;
    json_t *answer = json_loads(text, 0, NULL);
    const json_t *rollouts = json_object_get(answer, "rollouts");
    if (json)
        list_print_json(rollouts, stdout);
    else if (json_array_size(rollouts))
        list_print_rollouts(rollouts, ended, stdout);
    *listed += json_array_size(rollouts);
    json_decref(answer);
    return 0;
}

static int show_group(struct sluice_client *client, const char *group, bool json)
{
    size_t listed = 0;
    int failed = show_part(client, group, true, json, &listed);
    if (!failed)
        failed = show_part(client, group, false, json, &listed);
    if (failed)
        return cli_failed(client);
    if (!listed && !json)
        sanitize_print(stdout, "every rollout of %s has ended and was acknowledged: none is kept\n", group);
    return EXITS_OK;
}

static char *json_of_state(const char *name, const char *state)
{
    json_t *object = json_pack("{s: s, s: s}", "rollout", name, "state", state);
    char *line = json_dumps(object, JSON_COMPACT);
    json_decref(object);
    return line;
}

/* One that has not ended, as `list --json` has it; where it ended meanwhile, as it was. */
static int show_live_json(struct sluice_client *client, const char *name, const char *state)
{
    const char *text;
    AUTO_FREE char *group = strndup(name, strcspn(name, "/")), *line = NULL;
    AUTO_FREE char *was = json_of_state(name, state);
    if (!group || !was)
        return cli_failed(client);
    const int failed = sluice_list(client, &(struct sluice_filter){.group = group, .limit = ROLLOUTS_PER_GROUP_SHOWN},
                                   &text);
    if (failed)
        return cli_failed(client);
    json_t *answer = json_loads(text, 0, NULL);
    const json_t *rollout;
    size_t i;
    json_array_foreach(json_object_get(answer, "rollouts"), i, rollout)
    {
        const char *is = json_string_value(json_object_get(rollout, "rollout"));
        if (is && !line && strcmp(is, name) == 0)
            line = json_dumps(rollout, JSON_COMPACT);
    }
    json_decref(answer);
    json_line(stdout, line ? line : was);
    return EXITS_OK;
}

static int run_show(const struct invocation *in)
{
    const struct show_options *options = in->options;
    const struct sluice_trajectory *trajectory;
    const char *state;
    const char *name = in->arguments[0];
    if (!(strchr(name, '/') ? cli_is_rollout(in->command, name) : cli_is_name(in->command, "GROUP", name)))
        return EXITS_USAGE;
    AUTO_CLIENT *client = cli_connect(in);
    if (!client)
        return EXITS_FAILED;
    if (!strchr(in->arguments[0], '/'))
        return show_group(client, in->arguments[0], options->json);
    int failed = sluice_get(client, in->arguments[0], &trajectory, &state);
    if (failed)
        return cli_failed(client);
    if (trajectory && options->json) {
        json_trajectory(stdout, trajectory);
    } else if (trajectory) {
        print_whole(trajectory, options->tokens);
    } else if (options->json) {
        return show_live_json(client, in->arguments[0], state);
    } else {
        sanitize_print(stdout, "%s has not ended: %s\n", in->arguments[0], state);
    }
    return EXITS_OK;
}

static const struct option options[] = {
    {"tokens", OPTION_FLAG, offsetof(struct show_options, tokens), NULL,
     "Show every token id too, with those that the policy sampled marked."},
    {"json", OPTION_FLAG, offsetof(struct show_options, json), NULL,
     "Print one JSON object: the trajectory, or what `list --json` prints."},
};

const struct command command_show = {
    COMMAND_LINE("show"),
    .line.arguments = "ROLLOUT | GROUP",
    .line.brief = "Shows one rollout as a person reads it, or all of a group in a table",
    .line.doc = "What was said by whom, tool calls with their output and exit status, the turns "
                "with their\n"
                "tokens and seconds, outcome and reward, and the time each stage took. For a "
                "rollout that has\n"
                "not ended: where it is, at which turn, and why it does not get on. A rollout is GROUP/NUMBER,\n"
                "from 0.\n",
    .line.example = "sluice show tasks-add-1f0c9b2a77/0\n"
                    "sluice show tasks-add-1f0c9b2a77/0 --tokens | less -R\n",
    .line.tables[0] = {.rows = options, .count = ROWS(options)},
    .options_size = sizeof(struct show_options),
    .line.arguments_min = 1,
    .line.arguments_max = 1,
    .run = run_show,
};
