#include "workers/agents/conversation/turns.h"

#include "workers/agents/ends.h"

static const char warning[] =
    "You make the same calls again and again, and they give the same results. Do something else.";

enum step turns_judge(struct turns *turns, bool is_wrong)
{
    turns->format_errors = is_wrong ? turns->format_errors + 1 : 0;
    return turns->format_errors > turns->run->task->max_format_errors ? STEP_FORMAT : STEP_MORE;
}

enum step turns_notice(struct turns *turns, const char *name, struct slice call, const struct tool_result *result,
                       const char **ret_warning)
{
    const struct task *task = turns->run->task;
    *ret_warning = NULL;
    if (task->max_repeats == 0)
        return STEP_MORE;
    loop_detector_add(&turns->repeats, name, call, slice_of(result->text, result->len), result->status);
    turns->round = loop_detector_find(&turns->repeats, (size_t)task->max_repeats);
    if (turns->round == 0)
        return STEP_MORE;
    if (strcmp(task->on_repeat, "end") == 0)
        return STEP_LOOP;
    loop_detector_forget(&turns->repeats);
    *ret_warning = warning;
    return STEP_MORE;
}

/* ---- until it ends ------------------------------------------------------------------------- */

static enum outcome end_step(struct turns *turns, enum step step)
{
    struct agent_run *run = turns->run;
    const struct fail none = {0};
    if (step == STEP_FORMAT)
        return agent_end_by(run, END_FORMAT, "%zu %s in a row that could not be acted on", turns->format_errors,
                            turns->format_errors == 1 ? "reply" : "replies");
    if (step == STEP_LOOP)
        return agent_end_by(run, END_LOOP, "a round of %zu %s gave the same %llu times in a row", turns->round,
                            turns->round == 1 ? "call" : "calls", (unsigned long long)run->task->max_repeats + 1);
    return conversation_end(&turns->conversation, 0, &none);
}

enum outcome turns_run(struct turns *turns, int (*step)(void *agent, enum step *ret, struct fail *fail), void *agent)
{
    struct agent_run *run = turns->run;
    const struct task *task = run->task;
    struct fail fail = {0};
    for (uint64_t turn = 1; turn <= task->max_turns; turn++) {
        enum step end = STEP_MORE;
        int error = conversation_sample(&turns->conversation, &fail);
        turns->is_last = turn == task->max_turns || model_is_spent(&turns->conversation.model);
        if (error == 0)
            error = step(agent, &end, &fail);
        if (error < 0)
            return conversation_end(&turns->conversation, error, &fail);
        if (end != STEP_MORE)
            return end_step(turns, end);
        if (model_is_spent(&turns->conversation.model))
            return agent_end_by(run, END_TOKENS, "all %llu of limits.sampled_tokens are used up",
                                (unsigned long long)task->limits.sampled_tokens);
    }
    return agent_end_by(run, END_TURNS, "all %llu are used up", (unsigned long long)task->max_turns);
}
