/* engine.c - what rollouts ask of an engine: each entry point is one act that may be tried again. */
#include <errno.h>

#include "common/base/cleanup.h"
#include "workers/engines/template/encoding.h"
#include "workers/engines/template/turn_template_learn.h"
#include "workers/engines/dialects/call.h"
#include "workers/engines/dialects/sampled_check.h"
#include "workers/engines/engine.h"
#include "workers/engines/template/rendering.h"
#include "workers/engines/template/history_rewrite.h"
#include "workers/engines/template/turn_templates.h"
#include "workers/engines/calls.h"
#include "workers/engines/server/identity.h"
#include "workers/runtime/http_login.h"
#include "workers/tokenizer/tokenizer.h"

struct action {
    struct engine *engine;
    const struct task_message *messages;
    size_t message_count, text_from;
    const struct telling *telling;
    struct fail unfit; /* of bridge: not "" when it cannot be */
    const struct tokens *to_say;
    struct buffer said;
    struct tokens ids; /* of render and bridge */
    const char *mark;  /* of marks_tools */
    bool is_marked;
};

static void tell_about(const struct engine_info *info, struct engine_about *ret)
{
    ret->context_tokens = info->context_tokens;
    memcpy(ret->template_digest, info->template_digest, sizeof(ret->template_digest));
    memcpy(ret->tokenizer_digest, info->tokenizer_digest, sizeof(ret->tokenizer_digest));
    memcpy(ret->model_digest, info->model_digest, sizeof(ret->model_digest));
    memcpy(ret->identity, info->identity, sizeof(ret->identity));
    memcpy(ret->model, info->model, sizeof(ret->model));
}

int engine_describe(struct engine *engine, struct engine_about *ret, struct fail *fail)
{
    int error = engine_try(engine, NULL, NULL, fail);
    if (error == 0)
        tell_about(&engine->info, ret);
    return error;
}

bool engine_recall(const struct engine *engine, struct engine_about *ret)
{
    if (!engine->info.identity[0])
        return false;
    tell_about(&engine->info, ret);
    return true;
}

bool engine_serves(const struct engine *engine, const char *identity)
{
    return strcmp(engine->info.identity, identity) == 0;
}

static int act_render(void *arg, struct fail *fail)
{
    struct action *action = arg;
    action->ids.count = 0;
    return action->text_from < action->message_count
               ? rendering_render(action->engine, action->messages, action->message_count, action->text_from,
                                  &action->ids, fail)
               : engine_render_once(action->engine, action->messages, action->message_count, &action->ids, fail);
}

/* Until engine_leave_turn_template. *ret stays NULL when there is none: action->unfit says why. */
static int find_turn_template(struct action *action, enum tell_role role, const struct turn_template **ret,
                              struct fail *fail)
{
    const struct turn_template *turn_template;
    action->unfit = (struct fail){0};
    *ret = NULL;
    int error = engine_learn_tokenizer(action->engine, fail);
    if (error == 0)
        error = engine_learn_turn_template(action->engine, role, &turn_template, fail);
    if (error < 0)
        return error;
    action->unfit = turn_template->unfit;
    if (turn_template->unfit.code == 0)
        *ret = turn_template;
    else
        engine_leave_turn_template(action->engine, turn_template);
    return 0;
}

/* Most templates have no mark: then no turn template need be learnt. */
static int act_marks_tools(void *arg, struct fail *fail)
{
    struct action *action = arg;
    const struct turn_template *turn_template;
    const char *turn;
    action->is_marked = false;
    int error = engine_learn_tool_turn(action->engine, &turn, fail);
    if (error < 0 || !strstr(turn, action->mark))
        return error;
    error = find_turn_template(action, TELL_TOOL, &turn_template, fail);
    action->is_marked = error == 0 && turn_template && turn_template->gap.is_known;
    if (error == 0 && turn_template)
        engine_leave_turn_template(action->engine, turn_template);
    return error;
}

static int bridge(struct action *action, const struct turn_template *turn_template, struct fail *fail)
{
    const struct telling *telling = action->telling;
    if (telling->last != frame_end(turn_template))
        return fail_set(fail, -ENOTSUP, "end: the reply before ended with token %u, the template writes %u",
                        telling->last, frame_end(turn_template));
    int error = 0;
    for (size_t i = 0; error == 0 && i < telling->reply_count; i++)
        error = history_rewrite_check(action->engine, turn_template, telling->replies[i], fail);
    return error < 0 ? error
                     : turn_template_bridge(action->engine, turn_template, telling->contents, telling->count,
                                            &action->ids, fail);
}

/* That it cannot be is an answer, too: it would be the same again. */
static int act_bridge(void *arg, struct fail *fail)
{
    struct action *action = arg;
    const struct turn_template *turn_template;
    action->ids.count = 0;
    if (action->telling->trusts)
        engine_trust(action->engine);
    int error = find_turn_template(action, action->telling->role, &turn_template, fail);
    if (error < 0 || !turn_template)
        return error;
    struct fail why = {0};
    error = bridge(action, turn_template, &why);
    engine_leave_turn_template(action->engine, turn_template);
    if (error == -ENOTSUP)
        action->unfit = why;
    return error == 0 || error == -ENOTSUP ? 0 : fail_set(fail, error, "%s", why.text);
}

static int take_ids(struct action *action, int error, struct tokens *ret, struct fail *fail)
{
    if (error == 0 && !tokens_append(ret, action->ids.ids, action->ids.count))
        error = fail_memory(fail);
    tokens_finish(&action->ids);
    return error;
}

int engine_render(struct engine *engine, const struct task_message *messages, size_t count, size_t text_from,
                  struct tokens *ret, struct fail *fail)
{
    struct action action = {.engine = engine, .messages = messages, .message_count = count, .text_from = text_from};
    return take_ids(&action, engine_try(engine, act_render, &action, fail), ret, fail);
}

const char *engine_render_words(const struct fail *fail) { return call_refused_words(fail); }

int engine_bridge(struct engine *engine, const struct telling *telling, struct tokens *ret, struct fail *fail)
{
    struct action action = {.engine = engine, .telling = telling};
    int error = engine_try(engine, act_bridge, &action, fail);
    if (error == 0 && action.unfit.code < 0)
        error = fail_set(fail, -ENOTSUP, "%s", action.unfit.text);
    return take_ids(&action, error, ret, fail);
}

static int act_say(void *arg, struct fail *fail)
{
    struct action *action = arg;
    struct engine *engine = action->engine;
    buffer_clear(&action->said);
    int error = engine_learn_tokenizer(engine, fail);
    if (error < 0)
        return error;
    if (engine->tokenizer && tokenizer_decode(engine->tokenizer, action->to_say, &action->said))
        return 0;
    buffer_clear(&action->said);
    return engine->dialect->say(engine, action->to_say, action->to_say->count, &action->said, fail);
}

int engine_say(struct engine *engine, const struct tokens *ids, struct buffer *ret, struct fail *fail)
{
    struct action action = {.engine = engine, .to_say = ids};
    int error = engine_try(engine, act_say, &action, fail);
    if (error == 0 && !buffer_append(ret, action.said.data, action.said.len))
        error = fail_memory(fail);
    buffer_finish(&action.said);
    return error;
}

int engine_marks_tools(struct engine *engine, const char *mark, bool *ret, struct fail *fail)
{
    struct action action = {.engine = engine, .mark = mark};
    int error = engine_try(engine, act_marks_tools, &action, fail);
    *ret = action.is_marked;
    return error;
}

struct rescoring {
    struct engine *engine;
    struct engine_scoring *scoring;
};

/* Those of ids[at..end): a call like others, which a pause holds back, or aborts. */
static int score_run(struct engine *engine, const struct engine_scoring *scoring, size_t end, struct fail *fail)
{
    const struct tokens ids = {.ids = (uint32_t *)(uintptr_t)scoring->ids, .count = end};
    struct token_scores scores = token_scores_from(&scoring->scores, scoring->at - scoring->from);
    struct generation none = {0};
    struct engine_call call;
    int error;
    scores.wanted = scoring->wanted + scoring->at;
    do {
        error = engine_call_begin(engine, &call, fail);
        if (error < 0)
            return error;
        error = engine->dialect->score(engine, &ids, scoring->at, &scores, fail);
        if (error == 0)
            error = sampled_check_tops(engine, &ids, scoring->at, &scores, fail);
    } while (engine_call_end(engine, &call, error, &none));
    return error == -ENOTSUP ? fail_set(fail, -EINVAL, "%s tells no log-probabilities of given tokens", engine->url)
                             : error;
}

/* Neighbours are asked for together, and what lies between where the engine tells all in one answer. */
static int score_runs(struct engine *engine, struct engine_scoring *scoring, struct fail *fail)
{
    while (scoring->at < scoring->count) {
        size_t end = scoring->at;
        uint64_t wanted = 0;
        for (; end < scoring->count && end > 0 && (scoring->wanted[end] || (wanted && engine->dialect->scores_at_once));
             end++)
            wanted += scoring->wanted[end];
        int error = wanted ? score_run(engine, scoring, end, fail) : 0;
        if (error < 0)
            return error;
        *scoring->done += wanted;
        scoring->at = wanted ? end : scoring->at + 1;
    }
    return 0;
}

static int act_score(void *arg, struct fail *fail)
{
    struct rescoring *rescoring = arg;
    struct engine *engine = rescoring->engine;
    uint64_t context = engine->info.context_tokens, count = rescoring->scoring->count;
    if (count > context)
        return fail_set(fail, -E2BIG, "%llu tokens do not fit a context of %llu", (unsigned long long)count,
                        (unsigned long long)context);
    if (!engine->dialect->score)
        return fail_set(fail, -EINVAL, "%s does not tell the log-probabilities of given tokens", engine->dialect->doc);
    return score_runs(engine, rescoring->scoring, fail);
}

int engine_score(struct engine *engine, struct engine_scoring *scoring, struct fail *fail)
{
    struct rescoring rescoring = {engine, scoring};
    while (scoring->count > 0 && !scoring->wanted[scoring->count - 1])
        scoring->count--;
    return engine_try(engine, act_score, &rescoring, fail);
}

bool engine_set_credentials(struct engine *engine, const char *credentials)
{
    return http_set_credentials(engine->http, engine->url, credentials);
}

const char *engine_base_url(const struct engine *engine) { return engine->url; }

const char *engine_logprobs_mode(const struct engine *engine) { return engine->info.logprobs_mode; }
