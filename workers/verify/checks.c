/* checks.c - what can be seen without scoring: masks, counts, joints, and whose model it was. */
#include "workers/verify/checks.h"

#include <errno.h>

#include "workers/engines/template/special_tokens.h"

/* A turn of a trace, for the words of a finding. */
struct place {
    const struct sample *given;
    size_t trace;
    const struct record_turn *turn;
    struct report *report;
};

#define NOTE(place, error, count, format, ...)                                                                         \
    report_note((place)->report, &(place)->report->error, count, "%s, trace %zu, turn at %u: " format,                 \
                (place)->given->rollout, (place)->trace, (place)->turn->offset, ##__VA_ARGS__)

static bool is_said(const struct record_turn *turn) { return strcmp(turn->role, "assistant") == 0; }

/* ---- ids that end a turn ------------------------------------------------------------------- */

/* Special tokens that turns stopped at, as the record says and the engine agrees. */
static int learn_end(struct verify_engine *engine, uint32_t id, struct fail *fail)
{
    bool is_special = false;
    if (tokens_have(&engine->ends, id))
        return 0;
    int error = engine_is_special(engine->engine, id, &is_special, fail);
    if (error == 0 && is_special && !tokens_append(&engine->ends, &id, 1))
        error = fail_memory(fail);
    return error;
}

static int learn_ends(struct verify_engine *engine, const struct record_trace *trace, struct fail *fail)
{
    int error = 0;
    for (size_t i = 0; i < trace->turn_count && error == 0; i++) {
        const struct record_turn *turn = &trace->turns[i];
        uint64_t end = (uint64_t)turn->offset + turn->length;
        if (is_said(turn) && turn->length > 0 && end <= trace->token_count && strcmp(turn->finish, "stop") == 0)
            error = learn_end(engine, trace->token_ids[end - 1], fail);
    }
    return error;
}

/* ---- a turn ---------------------------------------------------------------------------------- */

/* Sampling stops at an end of turn: what follows one within a turn was not sampled. */
static void check_ends(const struct verify_engine *engine, const struct record_trace *trace, const struct place *place)
{
    const struct record_turn *turn = place->turn;
    const uint32_t *ids = trace->token_ids + turn->offset;
    uint32_t at = 0;
    while (at < turn->length && !tokens_have(&engine->ends, ids[at]))
        at++;
    bool ended = at < turn->length, stopped = strcmp(turn->finish, "stop") == 0;
    if (ended)
        NOTE(place, not_sampled, turn->length - at - 1, "%u tokens follow its end (token %u)", turn->length - at - 1,
             ids[at]);
    if (turn->length == 0)
        NOTE(place, counts, 1, "nothing was sampled");
    else if (stopped != ended)
        NOTE(place, counts, 1, "it says it finished by '%s', and its last token is %u", turn->finish,
             ids[turn->length - 1]);
}

static void check_said(const struct verify_engine *engine, const struct record_trace *trace, const struct place *place)
{
    const struct record_turn *turn = place->turn;
    uint64_t left_out = 0, above = 0;
    for (size_t i = turn->offset; i < (size_t)turn->offset + turn->length; i++) {
        left_out += !trace->mask[i];
        above += trace->logprobs[i] > 0;
    }
    if (!turn->masked[0])
        NOTE(place, not_in_mask, left_out, "%llu sampled tokens are not in the mask", (unsigned long long)left_out);
    else
        NOTE(place, not_sampled, turn->length - left_out, "%llu tokens are in the mask, and the turn is masked as %s",
             (unsigned long long)(turn->length - left_out), turn->masked);
    NOTE(place, values, above, "%llu log-probabilities are above 0", (unsigned long long)above);
    if (turn->prompt_tokens != turn->offset)
        NOTE(place, counts, 1, "the engine read a prompt of %u tokens", turn->prompt_tokens);
    if (turn->cached_tokens > turn->prompt_tokens)
        NOTE(place, counts, 1, "%u of %u prompt tokens were cached", turn->cached_tokens, turn->prompt_tokens);
    check_ends(engine, trace, place);
    place->report->turns++;
    place->report->sampled += turn->length;
    place->report->prompt_tokens += turn->prompt_tokens;
    place->report->cached_tokens += turn->cached_tokens;
}

static void check_given(const struct record_trace *trace, const struct place *place)
{
    const struct record_turn *turn = place->turn;
    uint64_t marked = 0, valued = 0;
    for (size_t i = turn->offset; i < (size_t)turn->offset + turn->length; i++) {
        marked += trace->mask[i];
        valued += trace->logprobs[i] != 0;
    }
    NOTE(place, not_sampled, marked, "%llu tokens of the %s's are in the mask", (unsigned long long)marked, turn->role);
    NOTE(place, values, valued, "%llu tokens that were not sampled have a log-probability", (unsigned long long)valued);
}

/* ---- a trace ------------------------------------------------------------------------------------ */

static void check_trace(const struct verify_engine *engine, const struct sample *given, size_t which,
                        struct report *ret)
{
    const struct record_trace *trace = &given->record.traces[which];
    uint64_t covered = 0;
    ret->traces++;
    ret->new_traces += which > 0 && trace->reason[0];
    for (size_t i = 0; i < trace->turn_count; i++) {
        const struct record_turn *turn = &trace->turns[i];
        struct place place = {given, which, turn, ret};
        if (turn->offset != covered || turn->length > trace->token_count - covered) {
            NOTE(&place, counts, 1, "it does not continue the turn before within the trace");
            return;
        }
        covered += turn->length;
        if (is_said(turn))
            check_said(engine, trace, &place);
        else
            check_given(trace, &place);
    }
    report_note(ret, &ret->counts, covered != trace->token_count, "%s, trace %zu: its turns do not cover it",
                given->rollout, which);
    report_note(ret, &ret->breaks, which > 0 && !trace->reason[0], "%s, trace %zu: it starts without a reason",
                given->rollout, which);
}

int checks_run(struct verify_engine *engine, const struct sample *given, struct report *ret, struct fail *fail)
{
    for (size_t i = 0; i < given->record.trace_count; i++) {
        int error = learn_ends(engine, &given->record.traces[i], fail);
        if (error < 0)
            return error;
        check_trace(engine, given, i, ret);
    }
    return 0;
}

bool checks_are_ours(const struct verify_engine *engine, const struct sample *given, size_t which, struct report *ret)
{
    const struct record_trace *trace = &given->record.traces[which];
    const struct {
        const char *what, *found, *wanted;
    } rows[] = {
        {"template", trace->template_digest, engine->about.template_digest},
        {"tokenizer", trace->tokenizer_digest, engine->about.tokenizer_digest},
        {"kind of log-probability", given->record.logprobs_mode, engine_logprobs_mode(engine->engine)},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        if (!*rows[i].found || strcmp(rows[i].found, rows[i].wanted) == 0)
            continue;
        report_note(ret, &ret->strangers, 1, "%s, trace %zu: its %s is %s, the engine's %s", given->rollout, which,
                    rows[i].what, rows[i].found, rows[i].wanted);
        return false;
    }
    return true;
}
