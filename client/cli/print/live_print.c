#include "client/cli/print/live_print.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/json/json.h"
#include "client/cli/print/trajectory_print.h"
#include "client/json/told.h"
#include "common/base/cleanup.h"
#include "common/base/sanitize.h"

/* ---- what we say, and what is said ------------------------------------------------------------ */

static void end_line(struct live_print *print)
{
    if (print->is_line_open)
        printf("%s\n", paint_of(stdout)->end);
    print->is_line_open = false;
}

static void begin_note(struct live_print *print)
{
    end_line(print);
    printf("%s--", paint_of(stdout)->dim);
}

static void end_note(void) { printf("%s\n", paint_of(stdout)->end); }

static void stop_streaming(struct live_print *print)
{
    end_line(print);
    print->sampling = 0;
    free(take_ptr(&print->said));
}

static void on_phase(struct live_print *print, const json_t *event)
{
    const char *of = told_text(event, "of");
    if (print->is_line_open || told_number(event, "ms") < print->ms)
        return; /* it would stand in the middle of what is said; or it was told before */
    print->ms = told_number(event, "ms");
    begin_note(print);
    sanitize_print(stdout, " %.1f s: %s%s%s", (double)told_number(event, "ms") / 1000, told_text(event, "phase"),
                   *of ? " " : "", of);
    end_note();
}

static void on_times(struct live_print *print, const json_t *event)
{
    const json_t *seconds = json_object_get(event, "seconds"), *value;
    const char *phase;
    if (json_object_size(seconds) == 0 || print->messages > 0 || print->ms > 0)
        return;
    begin_note(print);
    printf(" so far:");
    json_object_foreach((json_t *)seconds, phase, value)
        sanitize_print(stdout, " %s %.1f s", phase, json_number_value(value));
    end_note();
}

/* More of what the model says. */
static void print_sampled(struct live_print *print, const char *text)
{
    for (const char *at = text; *at;) {
        const size_t len = strcspn(at, "\n");
        if (!print->is_line_open)
            printf("  | %s", paint_of(stdout)->sampled);
        print->is_line_open = true;
        sanitize_print(stdout, "%.*s", (int)len, at);
        if (at[len] == '\n')
            end_line(print);
        at += len + (at[len] == '\n');
    }
}

static void on_delta(struct live_print *print, const json_t *event)
{
    const long long sampling = told_number(event, "sampling");
    const char *text = told_text(event, "text");
    if (!print->streams || (print->sampling != 0 && sampling != print->sampling))
        return;
    if (print->sampling == 0)
        printf("\nassistant\n");
    print->sampling = sampling;
    print_sampled(print, text);
    char *said = NULL;
    if (asprintf(&said, "%s%s", print->said ? print->said : "", text) < 0)
        said = NULL;
    free(print->said);
    print->said = said;
}

/* Of a message whose beginning stands on the terminal already, what is left; NULL: it does not. */
static const char *unsaid(struct live_print *print, const json_t *event)
{
    const char *content = told_text(event, "content");
    const size_t len = print->said ? strlen(print->said) : 0;
    if (!json_is_true(json_object_get(event, "sampled")) || len == 0 || strncmp(content, print->said, len) != 0)
        return NULL;
    return content + len;
}

static void on_message(struct live_print *print, const json_t *event)
{
    const struct paint *paint = paint_of(stdout);
    const char *tool = told_text(event, "tool"), *rest = unsaid(print, event);
    const bool is_sampled = json_is_true(json_object_get(event, "sampled"));
    if ((size_t)told_number(event, "index") < print->messages)
        return;
    print->messages = (size_t)told_number(event, "index") + 1;
    if (rest)
        print_sampled(print, rest);
    stop_streaming(print);
    if (rest)
        return;
    sanitize_print(stdout, "\n%s%s%s", told_text(event, "role"), *tool ? " " : "", tool);
    if (*tool && told_number(event, "exit_status"))
        printf("  [exit status %lld]", told_number(event, "exit_status"));
    putchar('\n');
    print_quoted(told_text(event, "content"), is_sampled ? paint->sampled : *tool ? paint->tool : "", paint);
}

static void on_turn(struct live_print *print, const json_t *event)
{
    const size_t turn = (size_t)told_number(event, "turn");
    if (turn < print->turns)
        return;
    print->turns = turn + 1;
    if (strcmp(told_text(event, "role"), "assistant") != 0)
        return;
    begin_note(print);
    sanitize_print(stdout, " turn %zu: %lld tokens in %.2f s, finish %s, %lld in the prompt, %lld of them cached", turn,
                   told_number(event, "tokens"), json_number_value(json_object_get(event, "seconds")),
                   told_text(event, "finish"), told_number(event, "prompt_tokens"),
                   told_number(event, "cached_tokens"));
    end_note();
}

static void on_trace(struct live_print *print, const json_t *event)
{
    const size_t trace = (size_t)told_number(event, "trace");
    const char *reason = told_text(event, "reason");
    if (trace < print->traces)
        return;
    print->traces = trace + 1;
    if (!*reason)
        return;
    begin_note(print);
    sanitize_print(stdout, " trace %zu starts: %s", trace, reason);
    end_note();
}

static void on_state(struct live_print *print, const json_t *event)
{
    const char *worker = told_text(event, "worker"), *why = told_text(event, "why");
    begin_note(print);
    sanitize_print(stdout, " %s %s, attempt %lld%s%s%s%s", told_text(event, "stage"), told_text(event, "state"),
                   told_number(event, "attempt"), *worker ? ", worker " : "", worker, *why ? "; " : "", why);
    end_note();
}

static void on_end(struct live_print *print, const json_t *event)
{
    const char *detail = told_text(event, "detail");
    stop_streaming(print);
    begin_note(print);
    sanitize_print(stdout, " %.1f s: %s ended: %s%s%.*s%s", (double)told_number(event, "ms") / 1000, print->stage,
                   told_text(event, "outcome"), *detail ? " (" : "", (int)strcspn(detail, "\n"), detail,
                   *detail ? ")" : "");
    end_note();
}

static void on_dropped(struct live_print *print, const json_t *event)
{
    begin_note(print);
    printf(" %lld events were dropped", told_number(event, "count"));
    end_note();
}

static void on_left_out(struct live_print *print, const json_t *event)
{
    if (print->messages > 0)
        return;
    begin_note(print);
    printf(" %lld messages and %lld turns before are not told", told_number(event, "messages"),
           told_number(event, "turns"));
    end_note();
}

static void on_taken_back(struct live_print *print, const json_t *event)
{
    if (print->sampling != told_number(event, "sampling"))
        return;
    stop_streaming(print);
    begin_note(print);
    printf(" the engine broke off: that is sampled again");
    end_note();
}

static const struct {
    const char *event;
    void (*print)(struct live_print *print, const json_t *event);
} printers[] = {
    {"phase", on_phase},       {"times", on_times},     {"delta", on_delta},           {"message", on_message},
    {"turn", on_turn},         {"trace", on_trace},     {"state", on_state},           {"end", on_end},
    {"left-out", on_left_out}, {"dropped", on_dropped}, {"taken-back", on_taken_back},
};

/* ---- batches ------------------------------------------------------------------------------------ */

static void print_event(struct live_print *print, const json_t *event)
{
    for (size_t i = 0; i < sizeof(printers) / sizeof(*printers); i++)
        if (strcmp(told_text(event, "event"), printers[i].event) == 0)
            printers[i].print(print, event);
}

/* The event's own fields behind those of its batch. */
static void print_json(const json_t *batch, const json_t *event, size_t at)
{
    json_t *line = json_object();
    static const char *const names[] = {"rollout", "stage", "attempt"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (json_object_get(batch, names[i]))
            json_object_set(line, names[i], json_object_get(batch, names[i]));
    if (json_object_get(batch, "number"))
        json_object_set_new(line, "number", json_integer(told_number(batch, "number") + (json_int_t)at));
    json_object_update(line, (json_t *)event);
    AUTO_FREE char *text = json_dumps(line, JSON_COMPACT);
    json_decref(line);
    if (text)
        json_line(stdout, text);
}

/* Another part begins: what is heard of it is new. */
static void change_part(struct live_print *print, const json_t *batch)
{
    const char *stage = told_text(batch, "stage");
    if (!*stage || (strcmp(stage, print->stage) == 0 && told_number(batch, "attempt") == print->attempt))
        return;
    stop_streaming(print);
    snprintf(print->stage, sizeof(print->stage), "%s", stage);
    print->attempt = told_number(batch, "attempt");
    print->messages = print->turns = print->traces = 0;
    print->ms = 0;
}

bool live_print_batch(struct live_print *print, const char *text)
{
    json_t *batch = json_loads(text, 0, NULL);
    const json_t *events = json_object_get(batch, "events"), *event;
    size_t i;
    if (!batch)
        return false;
    change_part(print, batch);
    json_array_foreach(events, i, event)
    {
        const bool is_ended = strcmp(told_text(event, "event"), "ended") == 0;
        print->is_ended |= is_ended;
        if (print->json && !is_ended)
            print_json(batch, event, i);
        else if (!print->json)
            print_event(print, event);
    }
    fflush(stdout);
    json_decref(batch);
    return true;
}

void live_print_finish(struct live_print *print) { stop_streaming(print); }
