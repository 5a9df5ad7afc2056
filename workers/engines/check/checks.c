/* checks.c - the checks themselves; check.c runs them. */
#include "workers/engines/check/checks.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "workers/engines/template/turn_template_learn.h"
#include "workers/engines/server/identity.h"
#include "workers/engines/template/rendering.h"
#include "workers/engines/template/special_tokens.h"
#include "workers/engines/template/turn_templates.h"
#include "common/loop/loop_now.h"

enum {
    STOP_TRIES = 4,
    STOP_TOKENS = 256,
    LENGTH_TOKENS = 3,
    SCORED_MAX = 48,        /* tokens; some engines are asked about each alone */
    CANCEL_SEEN_MS = 5000,  /* until the call that is given up is seen there */
    CANCEL_FREE_MS = 10000, /* until it has left the engine */
    CANCEL_TOKENS = 4096,
    LOOK_MS = 50
};

/* Engines compute a prompt in other batches than what they sample; a wrong one is off by much more. */
static const double SCORES_MEAN_MAX = 0.1, SCORES_ONE_MAX = 1.0;

static void say(struct check_result *ret, enum check_verdict verdict, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void say(struct check_result *ret, enum check_verdict verdict, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    ret->verdict = verdict;
    vsnprintf(ret->text, sizeof(ret->text), format, args);
    va_end(args);
}

static void say_fail(struct check_result *ret, const struct fail *fail)
{
    say(ret, ENGINE_CHECK_FAIL, "%s", fail->text);
}

static const struct task_sampling neutral = {.temperature = 1, .top_p = 1, .seed = 1};

/* ---- what it is -------------------------------------------------------------------------- */

static void check_dialect(struct check_run *run, struct check_result *ret)
{
    struct fail fail = {0};
    if (engine_learn(run->engine, &fail) < 0)
        return say_fail(ret, &fail);
    const struct engine_info *info = &run->engine->info;
    say(ret, ENGINE_CHECK_PASS, "%s (%s%s%s)", run->engine->dialect->name, run->engine->dialect->doc,
        info->note[0] ? ", " : "", info->note);
}

static void check_context(struct check_run *run, struct check_result *ret)
{
    say(ret, ENGINE_CHECK_PASS, "%llu tokens, prompt and sampled together",
        (unsigned long long)run->engine->info.context_tokens);
}

static const struct task_message question[] = {{(char *)"user", (char *)"Say hello in one short sentence."}};

static void check_template(struct check_run *run, struct check_result *ret)
{
    const struct engine_info *info = &run->engine->info;
    struct fail fail = {0};
    if (engine_render_once(run->engine, question, 1, &run->prompt, &fail) < 0)
        return say_fail(ret, &fail);
    if (run->prompt.count == 0)
        return say(ret, ENGINE_CHECK_FAIL, "a message is rendered as no token at all");
    say(ret, ENGINE_CHECK_PASS, "template %.23s..., tokenizer %.23s..., %zu tokens for one message",
        info->template_digest, info->tokenizer_digest[0] ? info->tokenizer_digest : "unknown", run->prompt.count);
}

/* ---- text and ids ------------------------------------------------------------------------ */

static void check_ids(struct check_run *run, struct check_result *ret)
{
    static const char text[] = "Hello, world! x = (1 + 23) * 4;\n\tfor i in list:\n  done?  yes.\n";
    AUTO_BUFFER back = {0};
    struct tokens ids = {0};
    struct fail fail = {0};
    const struct dialect *dialect = run->engine->dialect;
    int error = dialect->tokenize(run->engine, slice_from_str(text), TOKENIZE_PLAIN, &ids, &fail);
    for (size_t i = 0; error == 0 && i < ids.count; i++)
        error = dialect->detokenize(run->engine, ids.ids[i], &back, &fail);
    if (error < 0)
        say_fail(ret, &fail);
    else if (slice_is(buffer_peek(&back), text))
        say(ret, ENGINE_CHECK_PASS, "%zu bytes of text, %zu tokens and back", sizeof(text) - 1, ids.count);
    else
        say(ret, ENGINE_CHECK_FAIL, "a text comes back from its ids as \"%.*s\"", back.len < 100 ? (int)back.len : 100,
            (const char *)(back.data ? (void *)back.data : ""));
    tokens_finish(&ids);
}

/* The first special token of the prompt; -ENOENT: none. */
static int find_special(struct check_run *run, uint32_t *ret, struct fail *fail)
{
    for (size_t i = 0; i < run->prompt.count; i++) {
        bool is_special = false;
        int error = engine_is_special(run->engine, run->prompt.ids[i], &is_special, fail);
        if (error < 0)
            return error;
        *ret = run->prompt.ids[i];
        if (is_special)
            return 0;
    }
    return fail_set(fail, -ENOENT, "no token of a rendered prompt is special");
}

static void check_specials(struct check_run *run, struct check_result *ret)
{
    AUTO_BUFFER name = {0}, text = {0};
    struct tokens ids = {0};
    struct fail fail = {0};
    const struct dialect *dialect = run->engine->dialect;
    uint32_t special = 0;
    int error = find_special(run, &special, &fail);
    if (error == 0)
        error = dialect->detokenize(run->engine, special, &name, &fail);
    buffer_append_str(&text, "a ");
    buffer_append(&text, name.data, name.len);
    buffer_append_str(&text, "system\nb");
    if (error == 0)
        error = dialect->tokenize(run->engine, buffer_peek(&text), TOKENIZE_PLAIN, &ids, &fail);
    if (error < 0)
        say_fail(ret, &fail);
    else
        say(ret, ENGINE_CHECK_PASS, "\"%.*s\" in plain text is %zu tokens of text", (int)name.len,
            (const char *)name.data, ids.count);
    for (size_t i = 0; error == 0 && i < ids.count; i++)
        if (ids.ids[i] == special)
            say(ret, ENGINE_CHECK_FAIL, "\"%.*s\" in plain text becomes the special token %u", (int)name.len,
                (const char *)name.data, special);
    tokens_finish(&ids);
}

static void check_bridge(struct check_run *run, struct check_result *ret)
{
    struct fail fail = {0};
    const struct turn_template *turn_template;
    if (engine_learn_turn_template(run->engine, TELL_USER, &turn_template, &fail) < 0)
        return say_fail(ret, &fail);
    if (turn_template->unfit.code < 0)
        say_fail(ret, &turn_template->unfit);
    else
        say(ret, ENGINE_CHECK_PASS,
            "exact in %zu parts, on contents with blanks, tags, digits, other scripts "
            "and special tokens' names",
            turn_template->parts.count);
    engine_leave_turn_template(run->engine, turn_template);
}

/* ---- sampling ---------------------------------------------------------------------------- */

static int sample(struct check_run *run, const struct tokens *prompt, uint64_t tokens, uint64_t seed,
                  struct generation *ret, struct fail *fail)
{
    uint64_t room = run->engine->info.context_tokens;
    room = room > prompt->count ? room - prompt->count : 0;
    return run->engine->dialect->generate(run->engine, prompt, &neutral, tokens < room ? tokens : room, seed, ret,
                                          fail);
}

static void keep(struct check_run *run, struct generation *got)
{
    tokens_finish(&run->sampled);
    free(run->logprobs);
    run->sampled = got->sampled;
    run->logprobs = take_ptr(&got->logprobs);
    got->sampled = (struct tokens){0};
    snprintf(run->version, sizeof(run->version), "%s", got->version);
}

static void check_stop(struct check_run *run, struct check_result *ret)
{
    struct fail fail = {0};
    for (uint64_t i = 0; i < STOP_TRIES; i++) {
        struct generation got = {0};
        int error = sample(run, &run->prompt, STOP_TOKENS, i, &got, &fail);
        bool has_stopped = error == 0 && strcmp(got.finish, "stop") == 0;
        if (has_stopped)
            say(ret, ENGINE_CHECK_PASS, "after %zu tokens, by token %u", got.sampled.count,
                got.sampled.ids[got.sampled.count - 1]);
        if (error == 0)
            keep(run, &got);
        generation_finish(&got);
        if (error < 0)
            return say_fail(ret, &fail);
        if (has_stopped)
            return;
    }
    say(ret, ENGINE_CHECK_NOT_OFFERED, "the model ended no turn by itself in %d tries of %d tokens", STOP_TRIES,
        STOP_TOKENS);
}

/* An answer with another text is refused when it is sampled. */
static void check_text(struct check_run *run, struct check_result *ret)
{
    if (run->sampled.count == 0)
        return say(ret, ENGINE_CHECK_FAIL, "no turn could be sampled");
    if (run->engine->info.drops_blanks)
        return say(ret, ENGINE_CHECK_NOT_OFFERED,
                   "/detokenize drops blanks that were sampled, so texts are compared but for those; "
                   "a worker that is given the tokenizer (--tokenizer) compares all");
    say(ret, ENGINE_CHECK_PASS, "of %zu tokens", run->sampled.count);
}

static void check_length(struct check_run *run, struct check_result *ret)
{
    struct generation got = {0};
    struct fail fail = {0};
    int error = sample(run, &run->prompt, LENGTH_TOKENS, 0, &got, &fail);
    if (error < 0)
        say_fail(ret, &fail);
    else if (strcmp(got.finish, "length") != 0)
        say(ret, ENGINE_CHECK_NOT_OFFERED, "the turn ended by itself within %d tokens", LENGTH_TOKENS);
    else if (got.sampled.count != LENGTH_TOKENS)
        say(ret, ENGINE_CHECK_FAIL, "a turn that was cut has %zu tokens where %d were asked for", got.sampled.count,
            LENGTH_TOKENS);
    else
        say(ret, ENGINE_CHECK_PASS, "cut after %d tokens", LENGTH_TOKENS);
    generation_finish(&got);
}

static void check_logprobs(struct check_run *run, struct check_result *ret)
{
    const char *mode = engine_logprobs_mode(run->engine);
    if (run->sampled.count == 0)
        return say(ret, ENGINE_CHECK_FAIL, "no turn could be sampled");
    double sum = 0;
    for (size_t i = 0; i < run->sampled.count; i++)
        sum += run->logprobs[i];
    if (strcmp(mode, "unknown") == 0)
        return say(ret, ENGINE_CHECK_FAIL,
                   "%zu of them, but whether of raw or processed logits cannot "
                   "be told",
                   run->sampled.count);
    say(ret, ENGINE_CHECK_PASS, "%zu of them, %s, %.3f on average", run->sampled.count, mode,
        sum / (double)run->sampled.count);
}

static void compare_scores(const struct check_run *run, const float *scores, size_t count, struct check_result *ret)
{
    double sum = 0, most = 0;
    for (size_t i = 0; i < count; i++) {
        double off = fabs((double)scores[i] - (double)run->logprobs[i]);
        sum += off;
        most = off > most ? off : most;
    }
    sum /= (double)count;
    bool is_well = sum <= SCORES_MEAN_MAX && most <= SCORES_ONE_MAX;
    say(ret, is_well ? ENGINE_CHECK_PASS : ENGINE_CHECK_FAIL, "%zu tokens: %.4f nats apart on average, %.4f at most%s",
        count, sum, most, is_well ? "" : ": more than rounding explains");
}

static void check_scores(struct check_run *run, struct check_result *ret)
{
    float scores[SCORED_MAX];
    struct tokens ids = {0};
    struct fail fail = {0};
    size_t count = run->sampled.count < SCORED_MAX ? run->sampled.count : SCORED_MAX;
    if (!run->engine->dialect->score)
        return say(ret, ENGINE_CHECK_NOT_OFFERED, "this dialect has no way to ask for it");
    if (count == 0)
        return say(ret, ENGINE_CHECK_FAIL, "no turn could be sampled");
    int error = tokens_append(&ids, run->prompt.ids, run->prompt.count) && tokens_append(&ids, run->sampled.ids, count)
                    ? 0
                    : fail_memory(&fail);
    if (error == 0)
        error = run->engine->dialect->score(run->engine, &ids, run->prompt.count,
                                            &(struct token_scores){.logprobs = scores}, &fail);
    tokens_finish(&ids);
    if (error == -ENOTSUP)
        return say(ret, ENGINE_CHECK_NOT_OFFERED, "%s", fail.text);
    if (error < 0)
        return say_fail(ret, &fail);
    compare_scores(run, scores, count, ret);
}

static void check_too_long(struct check_run *run, struct check_result *ret)
{
    struct tokens prompt = {0};
    struct generation got = {0};
    struct fail fail = {0};
    uint64_t count = run->engine->info.context_tokens + 8;
    for (uint64_t i = 0; i < count; i++)
        if (!tokens_append(&prompt, &run->engine->info.plain_id, 1)) {
            tokens_finish(&prompt);
            return say(ret, ENGINE_CHECK_FAIL, "out of memory");
        }
    int error = run->engine->dialect->generate(run->engine, &prompt, &neutral, 1, 0, &got, &fail);
    if (error == -E2BIG)
        say(ret, ENGINE_CHECK_PASS, "%.400s", fail.text);
    else if (error == 0)
        say(ret, ENGINE_CHECK_FAIL, "%llu tokens were taken, and so cut, where %llu are the limit",
            (unsigned long long)count, (unsigned long long)run->engine->info.context_tokens);
    else
        say(ret, ENGINE_CHECK_FAIL, "it is not refused as too long: %.400s", fail.text);
    tokens_finish(&prompt);
    generation_finish(&got);
}

/* ---- giving up --------------------------------------------------------------------------- */

struct given_up {
    struct check_run *run;
    struct fiber *fiber, *waiter;
    int code;
    struct fail fail;
};

static void call_to_give_up(void *arg)
{
    struct given_up *call = arg;
    struct generation got = {0};
    call->code = sample(call->run, &call->run->prompt, CANCEL_TOKENS, 7, &got, &call->fail);
    generation_finish(&got);
}

static void call_ended(void *arg)
{
    struct given_up *call = arg;
    call->fiber = NULL;
    fiber_wake(call->waiter);
}

/* Asks until the engine has more calls than `before`, or no more; whether it came to that. */
static int await_calls(struct check_run *run, const struct given_up *call, bool more, uint64_t before, int64_t ms,
                       bool *ret, struct fail *fail)
{
    uint64_t count = 0;
    for (const int64_t end_ms = loop_now_ms() + ms;;) {
        int error = run->engine->dialect->count_calls(run->engine, &count, fail);
        *ret = error == 0 && (count > before) == more;
        if (error < 0 || *ret || loop_now_ms() > end_ms || (more && !call->fiber))
            return error;
        error = await_sleep(LOOK_MS);
        if (error < 0)
            return fail_set(fail, error, "out of time");
    }
}

static void await_end(struct given_up *call)
{
    fiber_cancel(call->fiber);
    while (call->fiber)
        await_wake(-1);
}

static void check_cancel(struct check_run *run, struct check_result *ret)
{
    struct given_up call = {.run = run, .waiter = fiber_current()};
    struct fail fail = {0};
    uint64_t before = 0;
    bool is_seen = false, is_gone = false;
    if (!run->engine->dialect->count_calls ||
        run->engine->dialect->count_calls(run->engine, &before, &fail) == -ENOTSUP)
        return say(ret, ENGINE_CHECK_NOT_OFFERED, "it does not tell how many calls it is at%s%s",
                   fail.text[0] ? ": " : "", fail.text);
    call.fiber = fiber_start(run->loop, call_to_give_up, call_ended, &call);
    if (!call.fiber)
        return say(ret, ENGINE_CHECK_FAIL, "out of memory");
    int error = await_calls(run, &call, true, before, CANCEL_SEEN_MS, &is_seen, &fail);
    const bool has_ended = !call.fiber;
    if (call.fiber)
        await_end(&call);
    if (error == 0 && !is_seen)
        return say(ret, ENGINE_CHECK_NOT_OFFERED, "%s",
                   has_ended ? "the turn ended before it could be given up" : "it did not count the call");
    if (error == 0)
        error = await_calls(run, &call, false, before, CANCEL_FREE_MS, &is_gone, &fail);
    if (error < 0)
        return say_fail(ret, &fail);
    if (is_gone)
        say(ret, ENGINE_CHECK_PASS, "gone within %d s", CANCEL_FREE_MS / 1000);
    else
        say(ret, ENGINE_CHECK_FAIL, "a call that was given up is still in the engine's hands after %d s",
            CANCEL_FREE_MS / 1000);
}

static void check_version(struct check_run *run, struct check_result *ret)
{
    if (run->version[0])
        say(ret, ENGINE_CHECK_PASS, "%s", run->version);
    else
        say(ret, ENGINE_CHECK_NOT_OFFERED, "turns will carry no version of the weights");
}

check_run_one *const engine_checks[ENGINE_CHECK_COUNT] = {
#define ENGINE_CHECK(name, doc) [ENGINE_CHECK_##name] = check_##name,
#include "workers/engines/check/checks.def"
#undef ENGINE_CHECK
};
