#include "workers/agents/conversation/model.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "workers/agents/conversation/migration.h"
#include "workers/agents/ends.h"
#include "workers/engines/calls.h"
#include "workers/engines/generate.h"
#include "workers/engines/server/identity.h"
#include "workers/live/ear.h"
#include "workers/runtime/activity.h"
#include "workers/runtime/fiber.h"
#include "common/loop/loop_now.h"

/* A call that outlasts the longest answered one this many times is the engine's fault. */
enum { STALL_FACTOR = 4, STALL_SLACK_S = 1 };

enum { SETTLE_MS = 5000 }; /* an engine that does not say within it who it is, is not waited for */

/* ---- who it began with ------------------------------------------------------------------- */

/* What of it is another, for people. */
static const char *what_changed(const struct model *model)
{
    const struct record *record = model->run->record;
    struct engine_about now = {0};
    if (!engine_recall(model->run->engine, &now))
        return "it does not say what";
    if (strcmp(now.tokenizer_digest, record->tokenizer_digest) != 0)
        return "its tokenizer is another";
    return strcmp(now.template_digest, record->template_digest) != 0 ? "its chat template is another"
                                                                     : "its name, path or vocabulary is another";
}

int model_refuse_another(const struct model *model, int error, struct fail *fail)
{
    const struct engine *engine = model->run->engine;
    const bool is_told = error == 0 || error == -EINVAL || error == -E2BIG || error == -ENOTSUP;
    if (error == -ESTALE || (is_told && !engine_serves(engine, model->identity)))
        return fail_set(fail, -ESTALE, "%s serves another model than the rollout began with: %s",
                        engine_base_url(engine), what_changed(model));
    if (is_told && strcmp(engine_logprobs_mode(engine), model->run->record->logprobs_mode) != 0)
        return fail_set(fail, -ESTALE,
                        "%s gives log-probabilities of another kind (%s) than the rollout began with (%s)",
                        engine_base_url(engine), engine_logprobs_mode(engine), model->run->record->logprobs_mode);
    return error;
}

static int describe(struct model *model, struct fail *fail)
{
    struct agent_run *run = model->run;
    struct record *record = run->record;
    struct engine_about about;
    int error = engine_describe(run->engine, &about, fail);
    if (error < 0)
        return error;
    model->context_tokens = about.context_tokens;
    memcpy(model->identity, about.identity, sizeof(model->identity));
    memcpy(record->template_digest, about.template_digest, sizeof(record->template_digest));
    memcpy(record->tokenizer_digest, about.tokenizer_digest, sizeof(record->tokenizer_digest));
    snprintf(record->logprobs_mode, sizeof(record->logprobs_mode), "%s", engine_logprobs_mode(run->engine));
    const uint64_t limit = run->task->limits.context_tokens;
    if (limit > 0 && limit < model->context_tokens)
        model->context_tokens = limit;
    return 0;
}

int model_open(struct model *model, struct agent_run *run, struct fail *fail)
{
    *model = (struct model){.run = run, .call_start_ms = loop_now_ms()};
    engine_stay(&model->stay, run->engine, 0);
    const int error = describe(model, fail);
    if (error == 0)
        model->call_start_ms = 0;
    return error;
}

void model_close(struct model *model) { engine_stay(&model->stay, NULL, 0); }

/* ---- a turn ------------------------------------------------------------------------------ */

bool model_is_spent(const struct model *model)
{
    const uint64_t limit = model->run->task->limits.sampled_tokens;
    return limit > 0 && model->sampled >= limit;
}

int model_check_room(const struct model *model, size_t traces, size_t tokens, const char *reason, struct fail *fail)
{
    const uint64_t most = model->run->task->max_traces;
    if (traces >= most)
        return fail_set(fail, -E2BIG, "agent.max_traces is %llu, and another would start: %s", (unsigned long long)most,
                        reason);
    return tokens < RECORD_TOKENS_MAX
               ? 0
               : fail_set(fail, -E2BIG, "the traces would hold more than %d tokens together", RECORD_TOKENS_MAX);
}

int model_check_fits(const struct model *model, uint64_t prompt, struct fail *fail)
{
    return prompt < model->context_tokens
               ? 0
               : fail_set(fail, -E2BIG, "a prompt of %llu tokens leaves no room in %llu", (unsigned long long)prompt,
                          (unsigned long long)model->context_tokens);
}

/* How many tokens the next turn may have. -E2BIG: none. */
static int find_room(const struct model *model, uint64_t prompt, uint64_t *ret, struct fail *fail)
{
    const struct task *task = model->run->task;
    const int error = model_check_fits(model, prompt, fail);
    if (error < 0)
        return error;
    uint64_t room = model->context_tokens - prompt, most = task->sampling.max_tokens;
    if (model->turn_tokens > 0 && model->turn_tokens < most)
        most = model->turn_tokens;
    const uint64_t limit = task->limits.sampled_tokens;
    const uint64_t left = limit > model->sampled ? limit - model->sampled : 1;
    if (limit > 0 && left < room)
        room = left;
    *ret = most < room ? most : room;
    return 0;
}

int model_settle(const struct model *model, struct fail *fail)
{
    if (!model->trusts || model->turns == 0)
        return 0;
    fiber_lift_deadline(loop_now_ms() + SETTLE_MS);
    const int error = engine_settle(model->run->engine, fail);
    fiber_pop_deadline();
    return model_refuse_another(model, error, fail);
}

static int generate(struct model *model, const struct tokens *prompt, uint64_t max_tokens,
                    const struct engine_listener *listener, struct generation *ret, struct fail *fail)
{
    struct agent_run *run = model->run;
    const struct engine_turn turn = {.prompt = prompt,
                                     .sampling = &run->task->sampling,
                                     .max_tokens = max_tokens,
                                     .seed_offset = run->sample,
                                     .listener = listener,
                                     .trusts = model->trusts};
    int error = model_refuse_another(model, 0, fail); /* it is known already, sometimes */
    if (error == 0)
        error = staleness_check(&run->age, run->task, engine_policy_number(run->engine), fail);
    if (error == 0)
        error = model_refuse_another(model, engine_generate_turn(run->engine, &turn, ret, fail), fail);
    if (error == 0) /* it may have waited for a new version */
        error = staleness_check(&run->age, run->task, ret->policy_number, fail);
    return error;
}

static struct record_sampling sampling_of(const struct agent_run *run, uint64_t max_tokens)
{
    const struct task_sampling *asked = &run->task->sampling;
    return (struct record_sampling){.temperature = asked->temperature,
                                    .top_p = asked->top_p,
                                    .min_p = asked->min_p,
                                    .top_k = (uint32_t)asked->top_k,
                                    .max_tokens = (uint32_t)max_tokens,
                                    .seed = asked->seed < 0 ? -1 : asked->seed + (int64_t)run->sample};
}

static void describe_turn(const struct agent_run *run, uint64_t max_tokens, struct model_turn *turn)
{
    const struct generation *generation = &turn->generation;
    turn->sampling = sampling_of(run, max_tokens);
    turn->turn = (struct record_turn){.role = "assistant",
                                      .sampling = &turn->sampling,
                                      .versions = generation->spans,
                                      .version_count = generation->span_count,
                                      .prompt_tokens = generation->prompt_tokens,
                                      .cached_tokens = generation->cached_tokens,
                                      .seconds = generation->seconds,
                                      .queue_seconds = generation->queue_seconds,
                                      .prefill_seconds = generation->prefill_seconds,
                                      .decode_seconds = generation->decode_seconds};
    snprintf(turn->turn.finish, sizeof(turn->turn.finish), "%s", generation->finish);
    snprintf(turn->turn.engine, sizeof(turn->turn.engine), "%s", engine_base_url(run->engine));
    snprintf(turn->turn.version, sizeof(turn->turn.version), "%s", generation->version);
}

/* It is behind the model now. */
static void count_turn(struct model *model, const struct generation *generation)
{
    model->call_start_ms = 0;
    model->turns++;
    model->sampled += generation->sampled.count;
    staleness_take(&model->run->age, generation->policy_number);
    if (generation->seconds > model->longest_call_s)
        model->longest_call_s = generation->seconds;
}

int model_sample(struct model *model, const struct tokens *prompt, struct model_turn *ret, struct fail *fail)
{
    struct agent_run *run = model->run;
    uint64_t max_tokens = 0;
    struct live_ear ear = {0};
    activity_turn(model->turns + 1);
    activity_enter(PHASE_SAMPLING);
    model->call_start_ms = loop_now_ms();
    model_migrate(model, prompt->count);
    int error = find_room(model, prompt->count, &max_tokens, fail);
    if (error == 0)
        error = generate(model, prompt, max_tokens, live_ear_open(&ear, ret->listener), &ret->generation, fail);
    live_ear_close(&ear, error == 0);
    activity_leave(PHASE_SAMPLING);
    if (error == 0) {
        describe_turn(run, max_tokens, ret);
        count_turn(model, &ret->generation);
    }
    engine_stay(&model->stay, run->engine, prompt->count + (error == 0 ? ret->generation.sampled.count : 0));
    return error;
}

/* ---- the end ----------------------------------------------------------------------------- */

/*
 * Out of time: the agent's own doing, unless the engine has been silent for much longer than
 * it ever was in this rollout. A dead engine must not look like a slow agent.
 */
static bool is_stalled(const struct model *model, struct fail *ret)
{
    double silent_s = model->call_start_ms > 0 ? (double)(loop_now_ms() - model->call_start_ms) / 1000 : 0;
    if (silent_s <= 0 || (model->turns > 0 && silent_s <= STALL_FACTOR * model->longest_call_s + STALL_SLACK_S))
        return false;
    fail_set(ret, -ETIMEDOUT, "the engine gave no answer for the last %.1f s of the rollout's time", silent_s);
    return true;
}

enum outcome model_end(const struct model *model, int error, const struct fail *fail)
{
    struct agent_run *run = model->run;
    struct fail stalled;
    if (error == 0)
        return agent_end(run, OUTCOME_OK, "ended after %zu turns", model->turns);
    enum blame_what what = agent_what(run, error);
    if (what == BLAME_TIME && is_stalled(model, &stalled))
        return agent_failed(run, BLAME_AGENT, BLAME_ENGINE, &stalled);
    if (what == BLAME_SYSTEM && model->call_start_ms > 0 && error != -ENOMEM)
        what = BLAME_ENGINE;
    const bool is_first = what == BLAME_CONTEXT && model->turns == 0;
    return agent_failed(run, is_first ? BLAME_TASK : BLAME_AGENT, what, fail);
}
