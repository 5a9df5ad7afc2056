/*
 * remaking.c - what was given in a trace, made again turn by turn: prompts (remade_prompt.h), and what stands between
 * two replies (remade_bridge.h). An id that is another than was made again is named.
 */
#include "workers/verify/remaking.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "workers/engines/server/engine_state.h"
#include "workers/engines/template/special_tokens.h"
#include "workers/verify/checks.h"
#include "workers/verify/dialogue.h"
#include "workers/verify/remade_bridge.h"
#include "workers/verify/remade_prompt.h"

/* ---- what was said in a trace ---------------------------------------------------------------------- */

/* Behind the last reply before `end`. */
static size_t behind_reply(const struct dialogue *in, size_t end)
{
    while (end > 0 && strcmp(in->messages[end - 1].role, "assistant") != 0)
        end--;
    return end;
}

/* What was said before the reply `which`, and behind the one before. Without messages all is empty. */
static void take_messages(const struct dialogue *in, size_t which, struct remade_turn *ret)
{
    size_t before = 0;
    ret->messages = in->messages;
    ret->is_exact = in->is_listed;
    if (!dialogue_find_reply(in, 0, &ret->own) || !dialogue_find_reply(in, which, &ret->end) ||
        (which > 0 && !dialogue_find_reply(in, which - 1, &before))) {
        ret->own = ret->from = ret->end = 0;
        return;
    }
    ret->from = which > 0 ? before + 1 : 0;
    if (in->is_listed)
        ret->own = 0;
}

/* Of a branch: the ids are those of an earlier trace in which the same was said. */
static int check_branch(struct remade_turn *turn, const struct dialogue *here, const struct sample *given, size_t trace,
                        bool *ret, struct fail *fail)
{
    const bool is_branch = here->is_listed && strncmp(given->record.traces[trace].reason, "branch", 6) == 0;
    for (size_t i = 0; i < trace && is_branch && !*ret; i++) {
        const struct record_trace *earlier = &given->record.traces[i];
        struct dialogue there;
        if (!dialogue_make(&given->record, i, &there))
            return fail_memory(fail);
        if (there.is_listed && earlier->token_count > turn->count && dialogue_says_the_same(&there, here, turn->end))
            *ret = remade_is_same(turn, &(struct tokens){.ids = earlier->token_ids, .count = turn->count});
        dialogue_finish(&there);
    }
    return 0;
}

/* ---- a trace --------------------------------------------------------------------------------------- */

static void note_altered(const struct remade_turn *turn, const struct sample *given, size_t trace, struct report *ret)
{
    char wanted[32] = "nothing";
    if (turn->off_wanted != UINT32_MAX)
        snprintf(wanted, sizeof(wanted), "%u", turn->off_wanted);
    if (turn->is_off)
        report_note(ret, &ret->altered, 1, "%s, trace %zu, token %zu: %u, where template and messages have %s",
                    given->rollout, trace, turn->offset + turn->off_at,
                    turn->off_at < turn->count ? turn->ids[turn->offset + turn->off_at] : 0, wanted);
    else
        report_note(ret, &ret->altered, 1, "%s, trace %zu, turn at %zu: its ids do not say what its messages say",
                    given->rollout, trace, turn->offset);
}

/* What the ids say without special tokens, which an engine may leave out of a reply's text. */
static int say_plain(struct remade_turn *turn, struct fail *fail)
{
    struct tokens plain = {0};
    int error = 0;
    for (size_t i = 0; i < turn->count && error == 0; i++) {
        bool is_special = false;
        error = engine_is_special(turn->engine, turn->ids[turn->offset + i], &is_special, fail);
        if (error == 0 && !is_special && !tokens_append(&plain, &turn->ids[turn->offset + i], 1))
            error = fail_memory(fail);
    }
    buffer_finish(&turn->said);
    if (error == 0 && plain.count > 0)
        error = turn->engine->dialect->say(turn->engine, &plain, plain.count, &turn->said, fail);
    tokens_finish(&plain);
    return error;
}

/* What was sampled and cannot be scored: its ids say at least what its message says. */
static int check_masked(struct remade_turn *turn, bool *ret, struct fail *fail)
{
    static const char repaired[] = "\xef\xbf\xbd"; /* bytes that were no UTF-8, such as half a character */
    *ret = turn->end == 0 || strstr(turn->messages[turn->end].content, repaired) != NULL;
    if (*ret)
        return 0;
    turn->from = turn->end++;
    int error = remade_say(turn, fail);
    *ret = error == 0 && remade_holds_messages(turn, buffer_peek(&turn->said));
    if (error < 0 || *ret)
        return error;
    error = say_plain(turn, fail);
    *ret = error == 0 && remade_holds_messages(turn, buffer_peek(&turn->said));
    return error;
}

/* The `k`-th turn of the trace, which was given or is masked, behind `which` replies. */
static int check_turn(struct engine *engine, const struct sample *given, size_t trace, size_t k,
                      const struct dialogue *here, size_t which, struct report *ret, struct fail *fail)
{
    const struct record_trace *of = &given->record.traces[trace];
    struct remade_turn turn = {.engine = engine,
                               .ids = of->token_ids,
                               .offset = of->turns[k].offset,
                               .count = of->turns[k].length,
                               .off_wanted = UINT32_MAX};
    bool is_made = false;
    take_messages(here, which, &turn);
    if (here->is_listed && k > 0)
        turn.from = behind_reply(here, turn.end);
    if (here->is_listed && k == 0 && of->turn_count > 1 && !dialogue_is_said(&of->turns[1]))
        turn.end = behind_reply(here, turn.end); /* it ends with a reply of another trace's */
    int error = k == 0 ? check_branch(&turn, here, given, trace, &is_made, fail) : 0;
    if (error == 0 && dialogue_is_said(&of->turns[k]))
        error = check_masked(&turn, &is_made, fail);
    else if (error == 0 && !is_made)
        error = (k == 0 ? remade_prompt_check : remade_bridge_check)(&turn, &is_made, fail);
    buffer_finish(&turn.said);
    if (error == 0 && !is_made)
        note_altered(&turn, given, trace, ret);
    return error;
}

int remaking_run(struct verify_engine *engine, const struct sample *given, size_t trace, struct report *ret,
                 struct fail *fail)
{
    const struct record_trace *here = &given->record.traces[trace];
    struct dialogue dialogue;
    if (!dialogue_make(&given->record, trace, &dialogue))
        return fail_memory(fail);
    size_t which = dialogue.before;
    int error = 0;
    for (size_t k = 0; k < here->turn_count && error == 0; k++) {
        const struct record_turn *turn = &here->turns[k];
        if ((uint64_t)turn->offset + turn->length > here->token_count)
            break; /* counted already */
        const bool is_given = !dialogue_is_said(turn) && turn->length > 0 && (k == 0 || turn->offset > 0);
        if (is_given || (turn->masked[0] && dialogue.is_listed))
            error = check_turn(engine->engine, given, trace, k, &dialogue, which, ret, fail);
        which += dialogue_is_said(turn);
    }
    dialogue_finish(&dialogue);
    return error;
}
