/*
 * replay.c - the agent that makes the calls of agent.script (or agent.recorded) in a fresh sandbox and
 * samples nothing: for tests, for looking into a task or a rollout, and for showing the service without
 * an engine. A call that is refused is recorded and the next one made. Where a recorded result differs
 * from what the call gives now, a message behind the call's says so.
 */
#include <errno.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "schemas/messages/message.h"
#include "workers/agents/ends.h"
#include "workers/agents/kinds/agents.h"
#include "workers/agents/kinds/tool_calls.h"
#include "workers/agents/conversation/conversation.h"
#include "workers/agents/conversation/prompt.h"
#include "workers/tools/toolbox.h"
#include "common/base/text.h"

enum { SHOWN_BYTES = 200 /* of a line that differs */ };

struct replay {
    struct agent_run *run;
    struct toolbox box;
    size_t made, compared, different, first_different; /* calls; the first is 1 */
    bool is_final;
};

/* ---- against what was recorded ------------------------------------------------------------- */

/*
 * What an agent with a shell was told of its command, in the words of the tool bash; NULL: it is not
 * such a text (or one that says how long it took), or no memory.
 */
static char *in_tool_words(const struct task_call *call)
{
    static const char start[] = "</returncode>\n<output>\n", end[] = "</output>";
    const char *from = call->result ? strstr(call->result, start) : NULL;
    const char *to = from ? strrchr(from, '<') : NULL;
    AUTO_BUFFER text = {0};
    if (strcmp(call->tool, "bash") != 0 || !to || strcmp(to, end) != 0 ||
        strncmp(call->result, "<returncode>", strlen("<returncode>")) != 0)
        return NULL;
    from += strlen(start);
    buffer_append(&text, from, to > from ? (size_t)(to - from) : 0);
    if (call->status != 0 && to > from && to[-1] != '\n')
        buffer_append_str(&text, "\n");
    if (call->status > 255)
        buffer_printf(&text, "killed by signal %lld", (long long)call->status - 256);
    else if (call->status != 0)
        buffer_printf(&text, "exit status: %lld", (long long)call->status);
    else if (text.len == 0)
        buffer_append_str(&text, "(no output)");
    return buffer_take_str(&text);
}

/* The number of the first line that differs (from 1), and where it starts in both. */
static size_t find_difference(const char **a, const char **b)
{
    size_t line = 1;
    for (const char *x = *a, *y = *b; *x && *x == *y; x++, y++)
        if (*x == '\n')
            line++, *a = x + 1, *b = y + 1;
    return line;
}

static struct slice shown_line(const char *text)
{
    struct slice shown = text_cut(text, SHOWN_BYTES);
    const uint8_t *end = memchr(shown.data, '\n', shown.len);
    return end ? slice_of(shown.data, (size_t)(end - shown.data)) : shown;
}

/* was_text: NULL where it is unknown. */
static int say_difference(struct replay *replay, const struct task_call *call, const char *was_text,
                          const struct record_message *now, struct fail *fail)
{
    AUTO_BUFFER words = {0};
    const char *is_text = now->content;
    buffer_printf(&words, "Call %zu (%s) gave something else than was recorded:", replay->made, call->tool);
    if (call->status >= 0 && call->status != now->exit_status)
        buffer_printf(&words, " its status was %lld and is %d;", (long long)call->status, now->exit_status);
    if (was_text && strcmp(was_text, is_text) != 0) {
        const size_t line = find_difference(&was_text, &is_text);
        const struct slice was = shown_line(was_text), is = shown_line(is_text);
        buffer_printf(&words, " line %zu was \"%.*s\" and is \"%.*s\";", line, SLICE_ARG(was), SLICE_ARG(is));
    }
    struct slice said = buffer_peek(&words);
    return !words.failed && record_say(replay->run->record, "user", slice_of(said.data, said.len - 1), NULL, 0)
               ? 0
               : agent_record_full(fail);
}

/* The record's last message is the call's. */
static int compare(struct replay *replay, const struct task_call *call, struct fail *fail)
{
    const struct record *record = replay->run->record;
    const struct record_message *now = &record->messages[record->message_count - 1];
    AUTO_FREE char *translated = in_tool_words(call);
    const bool is_timed = call->result && strncmp(call->result, "<exception>", 11) == 0;
    const char *was = translated ? translated : is_timed ? NULL : call->result;
    if (!was && call->status < 0)
        return 0;
    replay->compared++;
    if ((!was || strcmp(was, now->content) == 0) && (call->status < 0 || call->status == now->exit_status))
        return 0;
    if (replay->different++ == 0)
        replay->first_different = replay->made;
    return say_difference(replay, call, was, now, fail);
}

/* ---- the calls ------------------------------------------------------------------------------ */

static int make_call(struct replay *replay, const struct task_call *call, struct fail *fail)
{
    struct tool_result result;
    const struct tool_format_call made = {(char *)(uintptr_t)call->tool, json_loads(call->arguments, 0, NULL)};
    if (!made.arguments)
        return fail_memory(fail);
    int error = tool_calls_make(&replay->box, replay->run, NULL, &made, &result, fail);
    json_decref(made.arguments);
    if (error < 0)
        return error;
    replay->is_final = result.is_final;
    if (result.is_final) {
        free(replay->run->answer);
        replay->run->answer = take_ptr(&result.answer);
    }
    tool_result_finish(&result);
    return compare(replay, call, fail);
}

static enum outcome end_well(const struct replay *replay)
{
    struct agent_run *run = replay->run;
    const size_t count = run->task->script_count;
    if (replay->compared == 0)
        return agent_end(run, OUTCOME_OK, "%zu of %zu calls made", replay->made, count);
    if (replay->different == 0)
        return agent_end(run, OUTCOME_OK, "%zu of %zu calls made; all %zu recorded results are the same", replay->made,
                         count, replay->compared);
    return agent_end(run, OUTCOME_OK,
                     DIFFERS_MARK "%zu of %zu recorded results, the first of call %zu; %zu of %zu calls made",
                     replay->different, replay->compared, replay->first_different, replay->made, count);
}

static enum outcome make_calls(struct replay *replay)
{
    struct agent_run *run = replay->run;
    const struct task *task = run->task;
    struct fail fail = {0};
    snprintf(run->record->agent, sizeof(run->record->agent), "%s", task->agent_kind);
    int error = prompt_say(run) ? 0 : fail_memory(&fail);
    while (error == 0 && replay->made < task->script_count && !replay->is_final)
        error = make_call(replay, &task->script[replay->made++], &fail);
    if (error < 0)
        return agent_failed(run, BLAME_AGENT, agent_what(run, error), &fail);
    return end_well(replay);
}

static enum outcome replay_run(struct agent_run *run)
{
    struct replay replay = {.run = run};
    enum outcome outcome;
    if (tool_calls_open(&replay.box, run, &outcome) == 0)
        outcome = make_calls(&replay);
    toolbox_close(&replay.box);
    return outcome;
}

const struct agent agent_replay = {
    .name = "replay",
    .doc = "makes the calls of agent.script, or those of a trajectory; samples nothing",
    .needs_sandbox = true,
    .run = replay_run,
};
