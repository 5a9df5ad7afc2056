#include "workers/agents/conversation/conversation.h"

#include <errno.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "workers/agents/conversation/prompt.h"
#include "workers/agents/ends.h"
#include "common/loop/loop_now.h"
#include "common/base/text.h"

/* ---- opening ----------------------------------------------------------------------------- */

static int record_prompt(struct conversation *conversation, const char *reason, double seconds, struct fail *fail)
{
    struct record_turn turn = {.role = "prompt", .seconds = seconds};
    return record_start_trace(conversation->model.run->record, reason) &&
                   record_append(conversation->model.run->record, &turn, conversation->ids.ids, NULL,
                                 conversation->ids.count, false)
               ? 0
               : agent_record_full(fail);
}

static bool has_system(const struct task *task)
{
    return task->message_count > 0 && strcmp(task->messages[0].role, "system") == 0;
}

/* Says them in the record and in the history. */
static int take_messages(struct conversation *conversation, const struct task_message *messages, size_t count,
                         size_t text_from, struct fail *fail)
{
    int error = prompt_say_messages(conversation->model.run->record, messages, count) ? 0 : agent_record_full(fail);
    for (size_t i = 0; i < count && error == 0; i++)
        if (!history_add(&conversation->history, messages[i].role, slice_from_str(messages[i].content)))
            error = agent_record_full(fail);
    conversation->history.text_from = text_from;
    return error;
}

/* As model_check_room, behind the traces of the record. */
static int check_room(const struct conversation *conversation, const char *reason, size_t count, struct fail *fail)
{
    const struct record *record = conversation->model.run->record;
    size_t tokens = count;
    for (size_t i = 0; i < record->trace_count; i++)
        tokens += record->traces[i].token_count;
    return model_check_room(&conversation->model, record->trace_count, tokens, reason, fail);
}

static int open_with(struct conversation *conversation, const struct task_message *messages, size_t count,
                     size_t text_from, struct fail *fail)
{
    int error = take_messages(conversation, messages, count, text_from, fail);
    if (error == 0)
        error = model_open(&conversation->model, conversation->model.run, fail);
    if (error == 0) {
        conversation->model.call_start_ms = loop_now_ms();
        error = model_refuse_another(
            &conversation->model,
            engine_render(conversation->model.run->engine, messages, count, text_from, &conversation->ids, fail), fail);
    }
    const char *reason = conversation->model.run->reason;
    if (error == 0 && reason)
        error = check_room(conversation, reason, conversation->ids.count, fail);
    return error < 0 ? error : record_prompt(conversation, reason ? reason : "", 0, fail);
}

int conversation_open_messages(struct conversation *conversation, struct agent_run *run,
                               const struct task_message *messages, size_t count, size_t text_from, struct fail *fail)
{
    *conversation = (struct conversation){.model.run = run};
    int error = open_with(conversation, messages, count, text_from, fail);
    if (error == 0)
        conversation->model.call_start_ms = 0;
    engine_stay(&conversation->model.stay, run->engine, conversation->ids.count);
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
    *conversation = (struct conversation){.model.run = run};
    const struct task *task = run->task;
    snprintf(run->record->agent, sizeof(run->record->agent), "%s", task->agent_kind);
    const size_t own = has_system(task), rest = task->message_count - own;
    const size_t added = own || system || block;
    AUTO_FREE struct task_message *messages = calloc(rest + 1, sizeof(*messages));
    AUTO_FREE char *words = system_words(run, system, block);
    if (!messages || !words)
        return agent_record_full(fail);
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
    model_close(&conversation->model);
    tokens_finish(&conversation->ids);
    history_finish(&conversation->history);
}

/* ---- a turn ------------------------------------------------------------------------------ */

/* The last trace must be the prompt, id for id; should it ever not be, a new one starts. */
static int keep_in_step(struct conversation *conversation, struct fail *fail)
{
    const struct record *record = conversation->model.run->record;
    const struct record_trace *trace = &record->traces[record->trace_count - 1];
    if (trace->token_count == conversation->ids.count &&
        memcmp(trace->token_ids, conversation->ids.ids, conversation->ids.count * sizeof(*trace->token_ids)) == 0)
        return 0;
    return record_prompt(conversation, "prompt: it did not extend the record", 0, fail);
}

static int record_turn(struct conversation *conversation, const struct model_turn *turn, struct fail *fail)
{
    const struct tokens *sampled = &turn->generation.sampled;
    const struct slice text = slice_from_str(turn->generation.text);
    return record_append(conversation->model.run->record, &turn->turn, sampled->ids, turn->generation.logprobs,
                         sampled->count, true) &&
                   record_say_sampled(conversation->model.run->record, text) &&
                   history_add(&conversation->history, "assistant", text) &&
                   tokens_append(&conversation->ids, sampled->ids, sampled->count)
               ? 0
               : agent_record_full(fail);
}

int conversation_sample(struct conversation *conversation, struct fail *fail)
{
    struct agent_run *run = conversation->model.run;
    int error = keep_in_step(conversation, fail);
    if (error < 0)
        return error;
    struct model_turn turn = {0};
    error = model_sample(&conversation->model, &conversation->ids, &turn, fail);
    if (error == 0)
        error = record_turn(conversation, &turn, fail);
    if (error == 0) {
        conversation->is_cut = strcmp(turn.generation.finish, "length") == 0;
        free(run->answer);
        run->answer = take_ptr(&turn.generation.text);
    }
    generation_finish(&turn.generation);
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
    int error = model_refuse_another(&conversation->model,
                                     engine_render(conversation->model.run->engine, history->messages, history->count,
                                                   history->text_from, &ids, fail),
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
    conversation->model.call_start_ms = loop_now_ms();
    if (error == 0)
        error = start_trace(conversation, reason, 0, fail);
    if (error < 0)
        return error;
    conversation->model.call_start_ms = 0;
    conversation->is_cut = false;
    return 0;
}

static int extend_trace(struct conversation *conversation, enum tell_role role, const struct tokens *bridge,
                        double seconds, struct fail *fail)
{
    struct record_turn turn = {.seconds = seconds};
    snprintf(turn.role, sizeof(turn.role), "%s", tell_role_word(role));
    return record_append(conversation->model.run->record, &turn, bridge->ids, NULL, bridge->count, false) &&
                   tokens_append(&conversation->ids, bridge->ids, bridge->count)
               ? 0
               : agent_record_full(fail);
}

static int go_on(struct conversation *conversation, const struct telling *telling, double seconds, struct fail *fail)
{
    struct agent_run *run = conversation->model.run;
    struct tokens bridge = {0};
    int error = conversation->is_cut ? fail_set(fail, -ENOTSUP, "cut: the reply before ended by its length")
                                     : model_refuse_another(&conversation->model,
                                                            engine_bridge(run->engine, telling, &bridge, fail), fail);
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
        return agent_record_full(fail);
    telling.replies = replies;
    for (size_t i = 0; i < count; i++)
        if (!history_add(&conversation->history, tell_role_word(role), contents[i]))
            return agent_record_full(fail);
    conversation->model.call_start_ms = loop_now_ms();
    int error = go_on(conversation, &telling, seconds, fail);
    if (error == 0)
        conversation->model.call_start_ms = 0;
    return error;
}

int conversation_tell(struct conversation *conversation, struct slice content, const char *tool, int exit_status,
                      double seconds, struct fail *fail)
{
    if (!record_say(conversation->model.run->record, tool ? "tool" : "user", content, tool, exit_status))
        return agent_record_full(fail);
    return conversation_bridge(conversation, TELL_USER, &content, 1, seconds, fail);
}

enum outcome conversation_end(const struct conversation *conversation, int error, const struct fail *fail)
{
    return model_end(&conversation->model, error, fail);
}
