/* one act that may be tried again, and that may take more than one call. */
#include "workers/engines/generate.h"

#include <errno.h>

#include "common/base/clock.h"
#include "workers/engines/calls.h"
#include "workers/engines/dialects/sampled_check.h"
#include "workers/engines/dialects/teller.h"
#include "workers/engines/resumed.h"
#include "workers/engines/server/identity.h"
#include "workers/runtime/spent.h"

struct turn {
    struct engine *engine;
    const struct engine_turn *asked;
    struct generation generation; /* of the last call, and then of all */
    struct teller teller;         /* listener NULL: it is not told of */
    struct resumed resumed;
    char identity[80];  /* of who was asked last */
    bool is_wary;       /* a stream that nobody hears broke off: it is asked for whole */
    struct fail broken; /* not "": what was told cannot stand */
};

/* ---- who only looks --------------------------------------------------------------------------------- */

static bool is_looked_at(const struct turn *turn) { return turn->teller.listener && turn->teller.listener->taken_back; }

/* Who only looks forgets what it was told, and what comes next is told from its beginning. */
static void take_back(struct turn *turn)
{
    struct teller *teller = &turn->teller;
    if (!is_looked_at(turn))
        return;
    if (teller->told.len > 0)
        teller->listener->taken_back(teller->listener->arg);
    teller_finish(teller);
    *teller = (struct teller){.listener = teller->listener};
}

/* ---- calls --------------------------------------------------------------------------------------- */

static int ask_once(struct turn *turn, const struct tokens *prompt, uint64_t max_tokens, bool as_stream,
                    struct fail *fail)
{
    struct engine *engine = turn->engine;
    const struct dialect *dialect = engine->dialect;
    const uint64_t seed_offset = turn->asked->seed_offset + turn->resumed.before.sampled.count;
    return as_stream ? dialect->stream(engine, prompt, turn->asked->sampling, max_tokens, seed_offset, &turn->teller,
                                       &turn->generation, fail)
                     : dialect->generate(engine, prompt, turn->asked->sampling, max_tokens, seed_offset,
                                         &turn->generation, fail);
}

/* ---- whom nobody hears ---------------------------------------------------------------------------- */

/* Whether its tokens are read while the engine samples. Where nobody knows whether that pays, one turn finds out. */
static bool begin_along(struct turn *turn, uint64_t max_tokens)
{
    enum engine_along *along = &turn->engine->info.along;
    if (turn->teller.listener || turn->is_wary || !turn->engine->dialect->stream || max_tokens < ENGINE_ALONG_TOKENS)
        return false;
    if (*along == ENGINE_ALONG_PAYS)
        return true;
    if (*along != ENGINE_ALONG_UNKNOWN)
        return false;
    *along = ENGINE_ALONG_TRIED;
    return true;
}

/* Where streams break off in a row, whatever does that, each turn would be sampled twice. */
static void end_along(struct turn *turn, int error)
{
    struct engine_info *info = &turn->engine->info;
    turn->is_wary = error < 0;
    info->broken_streams = error == -EIO ? info->broken_streams + 1 : 0;
    if (info->broken_streams == ENGINE_ALONG_BREAKS)
        info->along = ENGINE_ALONG_NEVER;
    if (info->along == ENGINE_ALONG_TRIED)
        info->along = ENGINE_ALONG_UNKNOWN;
}

/* ---- one call ------------------------------------------------------------------------------------- */

/* What is wrong with the stream may be nothing wrong with the turn. */
static bool is_streams_fault(int error) { return error == -EPROTO || error == -EINVAL || error == -ENOTSUP; }

static int ask_along(struct turn *turn, const struct tokens *prompt, uint64_t max_tokens, struct fail *fail)
{
    const int error = ask_once(turn, prompt, max_tokens, true, fail);
    end_along(turn, error);
    if (!is_streams_fault(error))
        return error;
    generation_finish(&turn->generation);
    const int whole = ask_once(turn, prompt, max_tokens, false, fail);
    if (whole == 0)
        turn->engine->info.along = ENGINE_ALONG_NEVER;
    return whole;
}

static int ask(struct turn *turn, const struct tokens *prompt, uint64_t max_tokens, struct fail *fail)
{
    struct engine *engine = turn->engine;
    const bool only_looks = is_looked_at(turn);
    const bool as_stream = turn->teller.listener && engine->dialect->stream && !(only_looks && engine->info.is_deaf);
    if (begin_along(turn, max_tokens))
        return ask_along(turn, prompt, max_tokens, fail);
    const int error = ask_once(turn, prompt, max_tokens, as_stream, fail);
    if (!as_stream || !only_looks || !is_streams_fault(error))
        return error;
    engine->info.is_deaf = true;
    take_back(turn);
    generation_finish(&turn->generation);
    return ask_once(turn, prompt, max_tokens, false, fail);
}

/* It broke off: what was told stands, or there is no turn. */
static int take_part(struct turn *turn, size_t told, const struct fail *why, struct fail *fail)
{
    take_back(turn);
    const bool has_part = turn->teller.listener && !is_looked_at(turn) && turn->generation.sampled.count > 0;
    if (has_part && !resumed_add(&turn->resumed, turn->asked->prompt, &turn->generation))
        return fail_memory(fail);
    generation_finish(&turn->generation);
    if (!has_part && turn->teller.told.len > told)
        fail_set(&turn->broken, -EPROTO, "%s", why->text);
    return fail_set(fail, why->code, "%s", why->text);
}

/* Whether the calls that broke off sampled all of it. */
static bool is_sampled(const struct turn *turn, uint64_t max_tokens)
{
    const struct tokens *sampled = &turn->resumed.before.sampled;
    return sampled->count >= max_tokens ||
           (sampled->count > 0 && tokens_have(&turn->engine->info.ends, sampled->ids[sampled->count - 1]));
}

static int call_once(struct turn *turn, uint64_t max_tokens, bool *again, struct fail *fail)
{
    struct engine *engine = turn->engine;
    const size_t told = turn->teller.told.len, before = turn->resumed.before.sampled.count;
    const struct tokens *prompt = before ? &turn->resumed.prompt : turn->asked->prompt;
    struct engine_call call;
    struct fail why = {0};
    int error = engine_call_begin(engine, &call, fail);
    if (error < 0)
        return error;
    const int64_t start_us = clock_us();
    error = ask(turn, prompt, max_tokens - before, &why);
    if (error == 0 && (error = sampled_check_ids(engine, prompt, &turn->generation.sampled, &why)) < 0)
        generation_finish(&turn->generation);
    turn->generation.seconds = (double)(clock_us() - start_us) / 1e6;
    *again = engine_call_end(engine, &call, error, &turn->generation);
    if (error == 0)
        spent_engine_call(turn->generation.seconds, prompt->count, turn->generation.cached_tokens);
    why.code = error;
    return error < 0 ? take_part(turn, told, &why, fail) : 0;
}

/* The call, and again if a pause aborted it. */
static int sample(struct turn *turn, uint64_t max_tokens, struct fail *fail)
{
    int error = 0;
    bool again = true;
    while (again && error != -ENOMEM && turn->broken.code == 0 && !is_sampled(turn, max_tokens)) {
        again = false;
        generation_finish(&turn->generation);
        error = call_once(turn, max_tokens, &again, fail);
    }
    return error < 0 && is_sampled(turn, max_tokens) ? 0 : error;
}

/* ---- the turn ------------------------------------------------------------------------------------ */

/* Of what several calls sampled, in a row. */
static int check_joined(struct turn *turn, struct fail *fail)
{
    struct generation *all = &turn->generation;
    int error = sampled_check_ids(turn->engine, turn->asked->prompt, &all->sampled, fail);
    if (error == 0)
        error = sampled_check_turn(turn->engine, all, fail);
    if (error == 0 || error == -EPROTO)
        return error;
    turn->resumed.before = *all; /* to be checked again */
    *all = (struct generation){0};
    return error;
}

static int check_told(const struct turn *turn, struct fail *fail)
{
    const struct slice told = buffer_peek(&turn->teller.told), text = slice_from_str(turn->generation.text);
    return told.len <= text.len && slice_equal(told, slice_of(text.data, told.len))
               ? 0
               : fail_set(fail, -EPROTO, "the engine's stream said another text than its ids");
}

static int finish_turn(struct turn *turn, struct fail *fail)
{
    const bool is_joined = turn->resumed.before.sampled.count > 0;
    struct fail why = {0};
    if (!resumed_join(&turn->resumed, turn->asked->prompt, &turn->generation))
        return fail_memory(fail);
    int error = is_joined ? check_joined(turn, &why) : 0;
    if (error == 0 && !is_looked_at(turn))
        error = check_told(turn, &why);
    if (error == -EPROTO && turn->teller.told.len > 0 && !is_looked_at(turn))
        turn->broken = why;
    return error < 0 ? fail_set(fail, error, "%s", why.text) : 0;
}

static int generate(struct turn *turn, struct fail *fail)
{
    struct engine *engine = turn->engine;
    uint64_t context = engine->info.context_tokens, prompt = turn->asked->prompt->count;
    if (prompt >= context)
        return fail_set(fail, -E2BIG, "a prompt of %llu tokens leaves no room in a context of %llu",
                        (unsigned long long)prompt, (unsigned long long)context);
    uint64_t room = context - prompt;
    int error = sample(turn, turn->asked->max_tokens < room ? turn->asked->max_tokens : room, fail);
    return error < 0 ? error : finish_turn(turn, fail);
}

/* Where what was told cannot stand, another try would be of no use: that is an answer, too. */
static int act_generate(void *arg, struct fail *fail)
{
    struct turn *turn = arg;
    if (turn->asked->trusts)
        engine_trust(turn->engine);
    take_back(turn);
    const bool is_another = turn->resumed.prompt.count > 0 && strcmp(turn->identity, turn->engine->info.identity) != 0;
    if (turn->teller.told.len > 0 && (is_another || turn->generation.sampled.count > 0))
        fail_set(&turn->broken, -ESTALE, "%s became another while it sampled a turn that was told of",
                 turn->engine->url);
    if (is_another)
        resumed_finish(&turn->resumed);
    generation_finish(&turn->generation);
    memcpy(turn->identity, turn->engine->info.identity, sizeof(turn->identity));
    const int error = turn->broken.code ? 0 : generate(turn, fail);
    return turn->broken.code ? 0 : error;
}

int engine_generate_turn(struct engine *engine, const struct engine_turn *asked, struct generation *ret,
                         struct fail *fail)
{
    if (asked->prompt->count == 0 || asked->max_tokens == 0)
        return fail_set(fail, -EINVAL, "nothing to sample: an empty prompt, or no token asked for");
    struct turn turn = {.engine = engine, .asked = asked, .teller = {.listener = asked->listener}};
    int error = engine_try(engine, act_generate, &turn, fail);
    if (error == 0 && turn.broken.code < 0)
        error = fail_set(fail, turn.broken.code, "%s", turn.broken.text);
    if (error < 0)
        generation_finish(&turn.generation);
    *ret = turn.generation;
    resumed_finish(&turn.resumed);
    teller_finish(&turn.teller);
    return error;
}

int engine_generate(struct engine *engine, const struct tokens *prompt, const struct task_sampling *sampling,
                    uint64_t max_tokens, uint64_t seed_offset, struct generation *ret, struct fail *fail)
{
    const struct engine_turn turn = {
        .prompt = prompt, .sampling = sampling, .max_tokens = max_tokens, .seed_offset = seed_offset};
    return engine_generate_turn(engine, &turn, ret, fail);
}
