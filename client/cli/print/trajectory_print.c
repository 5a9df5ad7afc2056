#include "client/cli/print/trajectory_print.h"

#include <string.h>

#include "client/json/json.h"
#include "client/cli/print/print.h"
#include "common/base/sanitize.h"
#include "common/cmdline/cmdline.h"

static const struct paint colours = {"\x1b[32m", "\x1b[33m", "\x1b[2m", "\x1b[0m"};
static const struct paint no_colours = {"", "", "", ""};

void print_quoted(const char *text, const char *colour, const struct paint *paint)
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

const struct paint *paint_of(FILE *out) { return has_colour(out) ? &colours : &no_colours; }

void print_said(const struct sluice_trajectory *t)
{
    for (size_t i = 0; i < t->message_count; i++)
        print_message(&t->messages[i], paint_of(stdout));
}

void print_end(const struct sluice_trajectory *t)
{
    print_head(t, paint_of(stdout));
    print_times(t);
}

void print_used(const struct sluice_trajectory *t, bool tokens)
{
    print_sandbox(t->sandbox);
    print_tamper(t->tamper);
    print_traces(t, tokens, paint_of(stdout));
}
