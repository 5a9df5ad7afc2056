#include "workers/agents/conversation/conversation.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "workers/agents/conversation/migration.h"
#include "workers/engines/calls.h"
#include "workers/runtime/activity.h"
#include "workers/runtime/fiber.h"
#include "workers/runtime/loop_now.h"
#include "common/base/text.h"

/* A call that outlasts the longest answered one this many times is the engine's fault. */
enum { STALL_FACTOR = 4, STALL_SLACK_S = 1 };

/* ---- who it began with ------------------------------------------------------------------- */

/* What of it is another, for people. */
static const char *what_changed(const struct conversation *conversation)
{
    const struct record *record = conversation->run->record;
    struct engine_about now = {0};
    if (!engine_recall(conversation->run->engine, &now))
        return "it does not say what";
    if (strcmp(now.tokenizer_digest, record->tokenizer_digest) != 0)
        return "its tokenizer is another";
    return strcmp(now.template_digest, record->template_digest) != 0 ? "its chat template is another"
                                                                     : "its name, path or vocabulary is another";
}

/*
 * `error` is what an engine's function returned last. What it told was told by who the engine's facts tell of now
 * (engines/server/identity.h): ids and verdicts of another mean something else, and so do other log-probabilities.
 */
static int refuse_another(const struct conversation *conversation, int error, struct fail *fail)
{
    const struct engine *engine = conversation->run->engine;
    const bool is_told = error == 0 || error == -EINVAL || error == -E2BIG || error == -ENOTSUP;
    if (error == -ESTALE || (is_told && !engine_serves(engine, conversation->identity)))
        return fail_set(fail, -ESTALE, "%s serves another model than the rollout began with: %s",
                        engine_base_url(engine), what_changed(conversation));
    if (is_told && strcmp(engine_logprobs_mode(engine), conversation->run->record->logprobs_mode) != 0)
        return fail_set(
            fail, -ESTALE, "%s gives log-probabilities of another kind (%s) than the rollout began with (%s)",
            engine_base_url(engine), engine_logprobs_mode(engine), conversation->run->record->logprobs_mode);
    return error;
}

/* ---- opening ----------------------------------------------------------------------------- */

static int out_of_memory(struct fail *fail) { return fail_set(fail, -ENOMEM, "out of memory, or the record is full"); }

static int say_messages(struct record *record, const struct task_message *messages, size_t count, struct fail *fail)
{
    for (size_t i = 0; i < count; i++)
        if (!record_say(record, messages[i].role, slice_from_str(messages[i].content), NULL, 0))
            return out_of_memory(fail);
    return 0;
}

static int describe(struct conversation *conversation, struct fail *fail)
{
    struct agent_run *run = conversation->run;
    struct record *record = run->record;
    struct engine_about about;
    int error = engine_describe(run->engine, &about, fail);
    if (error < 0)
        return error;
    conversation->context_tokens = about.context_tokens;
    memcpy(conversation->identity, about.identity, sizeof(conversation->identity));
    memcpy(record->template_digest, about.template_digest, sizeof(record->template_digest));
    memcpy(record->tokenizer_digest, about.tokenizer_digest, sizeof(record->tokenizer_digest));
    snprintf(record->logprobs_mode, sizeof(record->logprobs_mode), "%s", engine_logprobs_mode(run->engine));
    uint64_t limit = run->task->limits.context_tokens;
    if (limit > 0 && limit < conversation->context_tokens)
        conversation->context_tokens = limit;
    return 0;
}

static int record_prompt(struct conversation *conversation, const char *reason, double seconds, struct fail *fail)
{
    struct record_turn turn = {.role = "prompt", .seconds = seconds};
    return record_start_trace(conversation->run->record, reason) &&
                   record_append(conversation->run->record, &turn, conversation->ids.ids, NULL, conversation->ids.count,
                                 false)
               ? 0
               : out_of_memory(fail);
}

static bool has_system(const struct task *task)
{
    return task->message_count > 0 && strcmp(task->messages[0].role, "system") == 0;
}

/* Says them in the record and in the history. */
static int take_messages(struct conversation *conversation, const struct task_message *messages, size_t count,
                         size_t text_from, struct fail *fail)
{
    int error = say_messages(conversation->run->record, messages, count, fail);
    for (size_t i = 0; i < count && error == 0; i++)
        if (!history_add(&conversation->history, messages[i].role, slice_from_str(messages[i].content)))
            error = out_of_memory(fail);
    conversation->history.text_from = text_from;
    return error;
}

/* What one more trace would be beyond, if anything. */
static int check_room(const struct conversation *conversation, const char *reason, size_t count, struct fail *fail)
{
    const struct record *record = conversation->run->record;
    const uint64_t most = conversation->run->task->max_traces;
    size_t tokens = count;
    for (size_t i = 0; i < record->trace_count; i++)
        tokens += record->traces[i].token_count;
    if (record->trace_count >= most)
        return fail_set(fail, -E2BIG, "agent.max_traces is %llu, and another would start: %s", (unsigned long long)most,
                        reason);
    return tokens < RECORD_TOKENS_MAX
               ? 0
               : fail_set(fail, -E2BIG, "the traces would hold more than %d tokens together", RECORD_TOKENS_MAX);
}

static int open_with(struct conversation *conversation, const struct task_message *messages, size_t count,
                     size_t text_from, struct fail *fail)
{
    int error = take_messages(conversation, messages, count, text_from, fail);
    if (error == 0)
        error = describe(conversation, fail);
    if (error == 0)
        error = refuse_another(
            conversation,
            engine_render(conversation->run->engine, messages, count, text_from, &conversation->ids, fail), fail);
    const char *reason = conversation->run->reason;
    if (error == 0 && reason)
        error = check_room(conversation, reason, conversation->ids.count, fail);
    return error < 0 ? error : record_prompt(conversation, reason ? reason : "", 0, fail);
}

int conversation_open_messages(struct conversation *conversation, struct agent_run *run,
                               const struct task_message *messages, size_t count, size_t text_from, struct fail *fail)
{
    *conversation = (struct conversation){.run = run, .call_start_ms = loop_now_ms()};
    engine_stay(&conversation->stay, run->engine, 0);
    int error = open_with(conversation, messages, count, text_from, fail);
    if (error == 0)
        conversation->call_start_ms = 0;
    engine_stay(&conversation->stay, run->engine, conversation->ids.count);
    return error;
}

/* An agent's own words say /workspace where they mean the working directory. */
static void append_own(struct buffer *words, const char *system, const char *workdir)
{
    static const char usual[] = "/workspace";
    for (const char *at; (at = strstr(system, usual)); system = at + sizeof(usual) - 1) {
        buffer_append(words, system, (size_t)(at - system));
        buffer_append_str(words, workdir);
    }
    buffer_append_str(words, system);
}

/* The system message as it is sent: its own words or `system`, then `block`; "" when all are none. */
static char *system_words(const struct agent_run *run, const char *system, const char *block)
{
    AUTO_BUFFER words = {0};
    if (has_system(run->task))
        buffer_append_str(&words, system = run->task->messages[0].content);
    else
        append_own(&words, system ? system : "", run->sandbox ? sandbox_workdir(run->sandbox) : "/workspace");
    buffer_append_str(&words, system && *system && block ? "\n\n" : "");
    buffer_append_str(&words, block ? block : "");
    return buffer_take_str(&words);
}

int conversation_open_with(struct conversation *conversation, struct agent_run *run, const char *system,
                           const char *block, struct fail *fail)
{
    *conversation = (struct conversation){.run = run, .call_start_ms = loop_now_ms()};
    const struct task *task = run->task;
    snprintf(run->record->agent, sizeof(run->record->agent), "%s", task->agent_kind);
    const size_t own = has_system(task), rest = task->message_count - own;
    const size_t added = own || system || block;
    AUTO_FREE struct task_message *messages = calloc(rest + 1, sizeof(*messages));
    AUTO_FREE char *words = system_words(run, system, block);
    if (!messages || !words)
        return out_of_memory(fail);
    messages[0] = (struct task_message){(char *)"system", words};
    if (rest > 0)
        memcpy(messages + added, task->messages + own, rest * sizeof(*messages));
    return conversation_open_messages(conversation, run, messages, rest + added, rest + added, fail);
}

int conversation_open(struct conversation *conversation, struct agent_run *run, const char *system, struct fail *fail)
{
    return conversation_open_with(conversation, run, system, NULL, fail);
}

void conversation_close(struct conversation *conversation)
{
    engine_stay(&conversation->stay, NULL, 0);
    tokens_finish(&conversation->ids);
    history_finish(&conversation->history);
}

/* ---- a turn ------------------------------------------------------------------------------ */

/* The last trace must be the prompt, id for id; should it ever not be, a new one starts. */
static int keep_in_step(struct conversation *conversation, struct fail *fail)
{
    const struct record *record = conversation->run->record;
    const struct record_trace *trace = &record->traces[record->trace_count - 1];
    if (trace->token_count == conversation->ids.count &&
        memcmp(trace->token_ids, conversation->ids.ids, conversation->ids.count * sizeof(*trace->token_ids)) == 0)
        return 0;
    return record_prompt(conversation, "prompt: it did not extend the record", 0, fail);
}

static struct record_sampling sampling_of(const struct conversation *conversation)
{
    const struct task_sampling *asked = &conversation->run->task->sampling;
    return (struct record_sampling){.temperature = asked->temperature,
                                    .top_p = asked->top_p,
                                    .min_p = asked->min_p,
                                    .top_k = (uint32_t)asked->top_k,
                                    .max_tokens = (uint32_t)conversation->asked_tokens,
                                    .seed = asked->seed < 0 ? -1 : asked->seed + (int64_t)conversation->run->sample};
}

static int record_generation(struct conversation *conversation, const struct generation *generation, struct fail *fail)
{
    struct agent_run *run = conversation->run;
    struct record_sampling sampling = sampling_of(conversation);
    struct record_turn turn = {.role = "assistant",
                               .sampling = &sampling,
                               .versions = generation->spans,
                               .version_count = generation->span_count,
                               .prompt_tokens = generation->prompt_tokens,
                               .cached_tokens = generation->cached_tokens,
                               .seconds = generation->seconds,
                               .queue_seconds = generation->queue_seconds,
                               .prefill_seconds = generation->prefill_seconds,
                               .decode_seconds = generation->decode_seconds};
    snprintf(turn.finish, sizeof(turn.finish), "%s", generation->finish);
    snprintf(turn.engine, sizeof(turn.engine), "%s", engine_base_url(run->engine));
    snprintf(turn.version, sizeof(turn.version), "%s", generation->version);
    const struct tokens *sampled = &generation->sampled;
    return record_append(run->record, &turn, sampled->ids, generation->logprobs, sampled->count, true) &&
                   record_say_sampled(run->record, slice_from_str(generation->text)) &&
                   history_add(&conversation->history, "assistant", slice_from_str(generation->text)) &&
                   tokens_append(&conversation->ids, sampled->ids, sampled->count)
               ? 0
               : out_of_memory(fail);
}

static int generate(struct conversation *conversation, struct generation *ret, struct fail *fail)
{
    struct agent_run *run = conversation->run;
    uint64_t count = conversation->ids.count, max_tokens = run->task->sampling.max_tokens;
    if (count >= conversation->context_tokens)
        return fail_set(fail, -E2BIG, "a prompt of %llu tokens leaves no room in %llu", (unsigned long long)count,
                        (unsigned long long)conversation->context_tokens);
    uint64_t room = conversation->context_tokens - count;
    if (conversation->turn_tokens > 0 && conversation->turn_tokens < max_tokens)
        max_tokens = conversation->turn_tokens;
    const uint64_t limit = run->task->limits.sampled_tokens;
    const uint64_t left = limit > conversation->sampled ? limit - conversation->sampled : 1;
    if (limit > 0 && left < room)
        room = left;
    conversation->asked_tokens = max_tokens < room ? max_tokens : room;
    int error = refuse_another(conversation, 0, fail); /* it is known already, sometimes */
    if (error == 0)
        error = staleness_check(&run->age, run->task, engine_policy_number(run->engine), fail);
    if (error == 0)
        error = refuse_another(conversation,
                               engine_generate(run->engine, &conversation->ids, &run->task->sampling,
                                               conversation->asked_tokens, run->sample, ret, fail),
                               fail);
    if (error == 0) /* it may have waited for a new version */
        error = staleness_check(&run->age, run->task, ret->policy_number, fail);
    return error;
}

int conversation_sample(struct conversation *conversation, struct fail *fail)
{
    struct agent_run *run = conversation->run;
    int error = keep_in_step(conversation, fail);
    if (error < 0)
        return error;
    struct generation generation = {0};
    activity_turn(conversation->turns + 1);
    conversation->call_start_ms = loop_now_ms();
    conversation_migrate(conversation);
    error = generate(conversation, &generation, fail);
    if (error == 0)
        error = record_generation(conversation, &generation, fail);
    if (error == 0) {
        conversation->call_start_ms = 0;
        conversation->turns++;
        staleness_take(&run->age, generation.policy_number);
        conversation->sampled += generation.sampled.count;
        conversation->is_cut = strcmp(generation.finish, "length") == 0;
        if (generation.seconds > conversation->longest_call_s)
            conversation->longest_call_s = generation.seconds;
        free(run->answer);
        run->answer = take_ptr(&generation.text);
    }
    generation_finish(&generation);
    engine_stay(&conversation->stay, run->engine, conversation->ids.count);
    return error;
}

/* ---- what is said to a reply --------------------------------------------------------------- */

static int start_trace(struct conversation *conversation, const char *reason, double seconds, struct fail *fail)
{
    struct tokens ids = {0};
    const struct history *history = &conversation->history;
    char words[sizeof(((struct record_trace *)0)->reason)];
    const struct slice fits = text_cut(reason, sizeof(words) - 1);
    snprintf(words, sizeof(words), "%.*s", SLICE_ARG(fits));
    int error = refuse_another(
        conversation,
        engine_render(conversation->run->engine, history->messages, history->count, history->text_from, &ids, fail),
        fail);
    if (error == 0)
        error = check_room(conversation, words, ids.count, fail);
    if (error < 0) {
        tokens_finish(&ids);
        return error;
    }
    tokens_finish(&conversation->ids);
    conversation->ids = ids;
    return record_prompt(conversation, words, seconds, fail);
}

int conversation_fork(struct conversation *conversation, const struct task_message *messages, size_t count,
                      const char *reason, struct fail *fail)
{
    history_finish(&conversation->history);
    int error = take_messages(conversation, messages, count, 0, fail);
    conversation->call_start_ms = loop_now_ms();
    if (error == 0)
        error = start_trace(conversation, reason, 0, fail);
    if (error < 0)
        return error;
    conversation->call_start_ms = 0;
    conversation->is_cut = false;
    return 0;
}

static int extend_trace(struct conversation *conversation, enum tell_role role, const struct tokens *bridge,
                        double seconds, struct fail *fail)
{
    struct record_turn turn = {.seconds = seconds};
    snprintf(turn.role, sizeof(turn.role), "%s", tell_role_word(role));
    return record_append(conversation->run->record, &turn, bridge->ids, NULL, bridge->count, false) &&
                   tokens_append(&conversation->ids, bridge->ids, bridge->count)
               ? 0
               : out_of_memory(fail);
}

static int go_on(struct conversation *conversation, const struct telling *telling, double seconds, struct fail *fail)
{
    struct agent_run *run = conversation->run;
    struct tokens bridge = {0};
    int error = conversation->is_cut
                    ? fail_set(fail, -ENOTSUP, "cut: the reply before ended by its length")
                    : refuse_another(conversation, engine_bridge(run->engine, telling, &bridge, fail), fail);
    if (error == -ENOTSUP) {
        const struct fail why = *fail;
        error = start_trace(conversation, why.text, seconds, fail);
    } else if (error == 0) {
        error = extend_trace(conversation, telling->role, &bridge, seconds, fail);
    }
    tokens_finish(&bridge);
    return error;
}

int conversation_bridge(struct conversation *conversation, enum tell_role role, const struct slice *contents,
                        size_t count, double seconds, struct fail *fail)
{
    AUTO_FREE const char **replies = NULL;
    struct telling telling = {
        .role = role, .last = conversation->ids.ids[conversation->ids.count - 1], .contents = contents, .count = count};
    if (!history_replies(&conversation->history, tell_role_word(role), &replies, &telling.reply_count))
        return out_of_memory(fail);
    telling.replies = replies;
    for (size_t i = 0; i < count; i++)
        if (!history_add(&conversation->history, tell_role_word(role), contents[i]))
            return out_of_memory(fail);
    conversation->call_start_ms = loop_now_ms();
    int error = go_on(conversation, &telling, seconds, fail);
    if (error == 0)
        conversation->call_start_ms = 0;
    return error;
}

int conversation_marks_tools(struct conversation *conversation, const char *mark, bool *ret, struct fail *fail)
{
    conversation->call_start_ms = loop_now_ms();
    int error = refuse_another(conversation, engine_marks_tools(conversation->run->engine, mark, ret, fail), fail);
    if (error == 0)
        conversation->call_start_ms = 0;
    return error;
}

int conversation_tell(struct conversation *conversation, struct slice content, const char *tool, int exit_status,
                      double seconds, struct fail *fail)
{
    if (!record_say(conversation->run->record, tool ? "tool" : "user", content, tool, exit_status))
        return out_of_memory(fail);
    return conversation_bridge(conversation, TELL_USER, &content, 1, seconds, fail);
}

/* ---- the end ----------------------------------------------------------------------------- */

enum outcome agent_end(struct agent_run *run, enum outcome outcome, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(run->detail, sizeof(run->detail), format, args);
    va_end(args);
    strcpy(run->end, outcome == OUTCOME_OK ? "done" : "");
    return outcome;
}

/* `format` has one %s, for `what`. */
static enum outcome end_as(struct agent_run *run, enum outcome outcome, const char *end, const char *format,
                           const char *what)
{
    agent_end(run, outcome, format, what);
    snprintf(run->end, sizeof(run->end), "%s", end);
    return outcome;
}

enum blame_what agent_what(const struct agent_run *run, int error)
{
    const enum blame_what what = blame_what(error, run->sandbox);
    return what == BLAME_TIME && !fiber_is_late() ? BLAME_SYSTEM : what;
}

enum outcome agent_failed(struct agent_run *run, enum blame_who who, enum blame_what what, const struct fail *fail)
{
    const struct blame blame = blame_get(who, what);
    run->fault = blame.fault;
    switch (what) {
    case BLAME_CANCEL: return agent_end(run, blame.outcome, "cancelled");
    case BLAME_LIMIT:
        return end_as(run, blame.outcome, "limit", "%s: the sandbox used more than its limit",
                      sandbox_breach(run->sandbox));
    case BLAME_TIME: return end_as(run, blame.outcome, "time", "time: limits.run_s is used up%s", "");
    case BLAME_CONTEXT: return end_as(run, blame.outcome, "context", "context: %s", fail->text);
    case BLAME_STALE: return end_as(run, staleness_outcome(run->task), "stale", STALE_MARK "%s", fail->text);
    default: return agent_end(run, blame.outcome, "%s", fail->text);
    }
}

enum outcome agent_open_failed(struct agent_run *run, int error, const struct fail *fail)
{
    const enum outcome outcome = agent_failed(run, BLAME_NOBODY, agent_what(run, error), fail);
    if (outcome != OUTCOME_CANCELLED && run->open_fault != FAULT_NONE)
        run->fault = run->open_fault;
    return outcome;
}

/*
 * Out of time: the agent's own doing, unless the engine has been silent for much longer than
 * it ever was in this rollout. A dead engine must not look like a slow agent.
 */
static bool is_stalled(const struct conversation *conversation, struct fail *ret)
{
    double silent_s = conversation->call_start_ms > 0 ? (double)(loop_now_ms() - conversation->call_start_ms) / 1000
                                                      : 0;
    if (silent_s <= 0 ||
        (conversation->turns > 0 && silent_s <= STALL_FACTOR * conversation->longest_call_s + STALL_SLACK_S))
        return false;
    fail_set(ret, -ETIMEDOUT, "the engine gave no answer for the last %.1f s of the rollout's time", silent_s);
    return true;
}

enum outcome conversation_end(const struct conversation *conversation, int error, const struct fail *fail)
{
    struct agent_run *run = conversation->run;
    struct fail stalled;
    if (error == 0)
        return agent_end(run, OUTCOME_OK, "ended after %zu turns", conversation->turns);
    enum blame_what what = agent_what(run, error);
    if (what == BLAME_TIME && is_stalled(conversation, &stalled))
        return agent_failed(run, BLAME_AGENT, BLAME_ENGINE, &stalled);
    if (what == BLAME_SYSTEM && conversation->call_start_ms > 0 && error != -ENOMEM)
        what = BLAME_ENGINE;
    const bool is_first = what == BLAME_CONTEXT && conversation->turns == 0;
    return agent_failed(run, is_first ? BLAME_TASK : BLAME_AGENT, what, fail);
}
