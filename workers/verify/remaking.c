/*
 * remaking.c - what was given, made again: prompts as the engine's template renders the messages, what
 * stands between two replies as their bridge. An id that is another than was made again is named.
 */
#include "workers/verify/remaking.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "workers/agents/proxy/words.h"
#include "workers/engines/template/bridge.h"
#include "workers/engines/template/special_tokens.h"
#include "workers/engines/server/engine_state.h"
#include "workers/verify/checks.h"
#include "workers/verify/dialogue.h"

/* One turn that was given. */
struct remaking {
    struct engine *engine;
    const struct record_message *messages; /* the record's */
    size_t own, from, end; /* the task's are before `own`; what this turn says is from `from` to `end` */
    const uint32_t *ids;   /* of its trace */
    size_t offset, count;
    struct buffer said; /* what the ids say; empty: not asked yet */
    size_t off_at;      /* the furthest place where all before is as it was made again */
    uint32_t off_wanted;
    bool is_off;
    bool is_exact; /* the messages are those that the template took */
};

/* That it cannot be made so is an answer; that nobody answers is none. */
static int unless_impossible(int error)
{
    return error == -ENOTSUP || error == -EINVAL || error == -E2BIG || error == -EPROTO ? 0 : error;
}

static bool is_same(struct remaking *turn, const struct tokens *made)
{
    size_t at = 0;
    const uint32_t *ids = turn->ids + turn->offset;
    while (at < turn->count && at < made->count && ids[at] == made->ids[at])
        at++;
    if (at == turn->count && at == made->count)
        return true;
    if (made->count > 0 && (!turn->is_off || at > turn->off_at)) {
        turn->is_off = true;
        turn->off_at = at;
        turn->off_wanted = at < made->count ? made->ids[at] : UINT32_MAX;
    }
    return false;
}

static int say(struct remaking *turn, struct fail *fail)
{
    if (turn->said.len > 0)
        return 0;
    const struct tokens ids = {.ids = (uint32_t *)(uintptr_t)turn->ids + turn->offset, .count = turn->count};
    return turn->engine->dialect->say(turn->engine, &ids, ids.count, &turn->said, fail);
}

/* Whether the text holds what was said here, each behind the one before. */
static bool holds_messages(const struct remaking *turn, struct slice text)
{
    for (size_t i = turn->from; i < turn->end; i++) {
        struct slice content = slice_from_str(turn->messages[i].content);
        while (content.len > 0 && isspace(content.data[content.len - 1])) /* templates may */
            content.len--;
        while (content.len > 0 && isspace(*content.data))
            content = slice_of(content.data + 1, content.len - 1);
        const uint8_t *at = content.len ? memmem(text.data, text.len, content.data, content.len) : text.data;
        if (content.len > 0 && !at)
            return false;
        if (content.len > 0)
            text = slice_of(at + content.len, text.len - (size_t)(at + content.len - text.data));
    }
    return true;
}

/* ---- what stands between two replies --------------------------------------------------------- */

static int bridge(struct remaking *turn, enum tell_role role, const struct slice *contents, size_t count,
                  struct tokens *ret, struct fail *fail)
{
    struct fail why = {0};
    const struct telling telling = {
        .role = role, .last = turn->ids[turn->offset - 1], .contents = contents, .count = count};
    int error = unless_impossible(engine_bridge(turn->engine, &telling, ret, &why));
    return error < 0 ? fail_set(fail, error, "%s", why.text) : 0;
}

static int is_bridge_of(struct remaking *turn, enum tell_role role, const struct slice *contents, size_t count,
                        bool *ret, struct fail *fail)
{
    struct tokens made = {0};
    int error = bridge(turn, role, contents, count, &made, fail);
    *ret = error == 0 && is_same(turn, &made);
    tokens_finish(&made);
    return error;
}

/* The content within what the ids say, by what stands around a made-up one; NULL data: it is not there. */
static int find_content(struct remaking *turn, enum tell_role role, struct slice *ret, struct fail *fail)
{
    static const char mark[] = TURN_TEMPLATE_USER;
    AUTO_BUFFER text = {0};
    struct tokens made = {0};
    *ret = (struct slice){0};
    const struct slice marked = slice_from_str(mark);
    int error = bridge(turn, role, &marked, 1, &made, fail);
    if (error == 0 && made.count > 0)
        error = turn->engine->dialect->say(turn->engine, &made, made.count, &text, fail);
    tokens_finish(&made);
    const uint8_t *at = text.len ? memmem(text.data, text.len, mark, sizeof(mark) - 1) : NULL;
    if (error < 0 || !at)
        return error;
    const size_t before = (size_t)(at - text.data), after = text.len - before - (sizeof(mark) - 1);
    const struct slice said = buffer_peek(&turn->said);
    if (said.len >= before + after && memcmp(said.data, text.data, before) == 0 &&
        memcmp(said.data + said.len - after, at + sizeof(mark) - 1, after) == 0)
        *ret = slice_of(said.data + before, said.len - before - after);
    return 0;
}

static int is_bridge(struct remaking *turn, enum tell_role role, bool *ret, struct fail *fail)
{
    struct slice content;
    int error = 0;
    if (turn->end - turn->from == 1) {
        content = slice_from_str(turn->messages[turn->from].content);
        error = is_bridge_of(turn, role, &content, 1, ret, fail);
    }
    if (error < 0 || *ret)
        return error;
    error = say(turn, fail); /* an agent may put words of its own around what it records */
    if (error == 0)
        error = find_content(turn, role, &content, fail);
    if (error < 0 || !content.data || !holds_messages(turn, content))
        return error;
    return is_bridge_of(turn, role, &content, 1, ret, fail);
}

/* Several answers in a row, or nobody knows: the ids are at least the tokenizer's own of their text. */
static int is_special_escape(struct remaking *turn, bool *ret, struct fail *fail)
{
    struct tokens made = {0};
    int error = say(turn, fail);
    if (error < 0 || !holds_messages(turn, buffer_peek(&turn->said)))
        return error;
    error = turn->engine->dialect->tokenize(turn->engine, buffer_peek(&turn->said), TOKENIZE_SPECIALS, &made, fail);
    *ret = error == 0 && is_same(turn, &made);
    tokens_finish(&made);
    return unless_impossible(error);
}

/* As a harness's model was told it: in some form, whose words or the template's are around results. */
static int is_told(struct remaking *turn, const struct tool_telling *telling, const struct said *messages, bool *ret,
                   struct fail *fail)
{
    struct told told;
    int error = told_make(messages, turn->end - turn->from, telling, &told) ? 0 : fail_memory(fail);
    if (error == 0)
        error = is_bridge_of(turn, told.role, told.contents, told.count, ret, fail);
    told_finish(&told);
    return error;
}

static int check_told(struct remaking *turn, bool *ret, struct fail *fail)
{
    const size_t count = turn->end - turn->from;
    AUTO_FREE struct said *messages = calloc(count + 1, sizeof(*messages));
    const struct tool_format *format;
    int error = messages ? 0 : fail_memory(fail);
    for (size_t i = 0; i < count && messages; i++) {
        const struct record_message *message = &turn->messages[turn->from + i];
        const bool is_tool = strcmp(message->role, "tool") == 0;
        messages[i] = (struct said){
            .role = is_tool ? SAID_TOOL : SAID_USER, .text = message->content, .name = message->tool};
    }
    for (size_t i = 0; error == 0 && count > 0 && !*ret && (format = tool_format_at(i / 2)); i++) {
        const struct tool_telling telling = {.format = format, .is_framed = i % 2 == 0};
        error = is_told(turn, &telling, messages, ret, fail);
    }
    return error;
}

static int check_bridge(struct remaking *turn, bool *ret, struct fail *fail)
{
    if (turn->is_exact)
        return check_told(turn, ret, fail);
    int error = is_bridge(turn, TELL_USER, ret, fail);
    if (error == 0 && !*ret)
        error = is_bridge(turn, TELL_TOOL, ret, fail);
    if (error == 0 && !*ret && turn->end - turn->from != 1)
        error = is_special_escape(turn, ret, fail);
    return error;
}

/* ---- prompts ------------------------------------------------------------------------------------ */

/* The line around a place. */
static struct slice line_at(struct slice text, size_t at)
{
    size_t from = at < text.len ? at : text.len, to = from;
    while (from > 0 && text.data[from - 1] != '\n')
        from--;
    while (to < text.len && text.data[to] != '\n')
        to++;
    return slice_of(text.data + from, to - from);
}

static bool has_year(struct slice line)
{
    for (size_t i = 0; i + 4 <= line.len; i++)
        if (line.data[i] == '2' && line.data[i + 1] == '0' && isdigit(line.data[i + 2]) && isdigit(line.data[i + 3]))
            return true;
    return false;
}

/* Some templates write the day: two texts of which one line differs, and says a year in both. */
static bool is_of_another_day(struct slice one, struct slice other)
{
    size_t at = 0;
    while (at < one.len && at < other.len && one.data[at] == other.data[at])
        at++;
    const struct slice a = line_at(one, at), b = line_at(other, at);
    const uint8_t *rest = a.data + a.len, *other_rest = b.data + b.len;
    return has_year(a) && has_year(b) &&
           slice_equal(slice_of(rest, one.len - (size_t)(rest - one.data)),
                       slice_of(other_rest, other.len - (size_t)(other_rest - other.data)));
}

static int compare_rendered(struct remaking *turn, const struct tokens *made, bool *ret, struct fail *fail)
{
    AUTO_BUFFER text = {0};
    *ret = is_same(turn, made);
    int error = *ret || made->count == 0 ? 0 : say(turn, fail);
    if (error < 0 || *ret || made->count == 0)
        return error;
    error = turn->engine->dialect->say(turn->engine, made, made->count, &text, fail);
    if (error == 0 && is_of_another_day(buffer_peek(&turn->said), buffer_peek(&text)))
        return is_special_escape(turn, ret, fail);
    return error;
}

/* Agents tell most answers as the user's, whatever the record calls them. */
static int check_rendered(struct remaking *turn, bool tools_are_users, bool *ret, struct fail *fail)
{
    AUTO_FREE struct task_message *messages = calloc(turn->end + 1, sizeof(*messages));
    struct tokens made = {0};
    struct fail why = {0};
    if (!messages)
        return fail_memory(fail);
    for (size_t i = 0; i < turn->end; i++) {
        const struct record_message *message = &turn->messages[i];
        const bool is_told = tools_are_users && i >= turn->own && strcmp(message->role, "tool") == 0;
        messages[i] = (struct task_message){is_told ? (char *)"user" : message->role, message->content};
    }
    int error = unless_impossible(engine_render(turn->engine, messages, turn->end, turn->own, &made, &why));
    if (error < 0)
        fail_set(fail, error, "%s", why.text);
    else
        error = compare_rendered(turn, &made, ret, fail);
    tokens_finish(&made);
    return error;
}

static int check_prompt(struct remaking *turn, bool *ret, struct fail *fail)
{
    const bool is_first = turn->end == turn->own;
    if (turn->is_exact)
        return check_rendered(turn, false, ret, fail);
    int error = turn->end > 0 ? check_rendered(turn, true, ret, fail) : 0;
    if (error == 0 && !*ret && !is_first)
        error = check_rendered(turn, false, ret, fail);
    if (error == 0 && !*ret && (!is_first || turn->end == 0))
        error = is_special_escape(turn, ret, fail);
    return error;
}

/* ---- what was said in a trace ---------------------------------------------------------------------- */

/* Behind the last reply before `end`. */
static size_t behind_reply(const struct dialogue *in, size_t end)
{
    while (end > 0 && strcmp(in->messages[end - 1].role, "assistant") != 0)
        end--;
    return end;
}

/* What was said before the reply `which`, and behind the one before. Without messages all is empty. */
static void take_messages(const struct dialogue *in, size_t which, struct remaking *ret)
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
static int check_branch(struct remaking *turn, const struct dialogue *here, const struct sample *given, size_t trace,
                        bool *ret, struct fail *fail)
{
    const bool is_branch = here->is_listed && strncmp(given->record.traces[trace].reason, "branch", 6) == 0;
    for (size_t i = 0; i < trace && is_branch && !*ret; i++) {
        const struct record_trace *earlier = &given->record.traces[i];
        struct dialogue there;
        if (!dialogue_make(&given->record, i, &there))
            return fail_memory(fail);
        if (there.is_listed && earlier->token_count > turn->count && dialogue_says_the_same(&there, here, turn->end))
            *ret = is_same(turn, &(struct tokens){.ids = earlier->token_ids, .count = turn->count});
        dialogue_finish(&there);
    }
    return 0;
}

/* ---- a trace --------------------------------------------------------------------------------------- */

static void note_altered(const struct remaking *turn, const struct sample *given, size_t trace, struct report *ret)
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
static int say_plain(struct remaking *turn, struct fail *fail)
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
static int check_masked(struct remaking *turn, bool *ret, struct fail *fail)
{
    static const char repaired[] = "\xef\xbf\xbd"; /* bytes that were no UTF-8, such as half a character */
    *ret = turn->end == 0 || strstr(turn->messages[turn->end].content, repaired) != NULL;
    if (*ret)
        return 0;
    turn->from = turn->end++;
    int error = say(turn, fail);
    *ret = error == 0 && holds_messages(turn, buffer_peek(&turn->said));
    if (error < 0 || *ret)
        return error;
    error = say_plain(turn, fail);
    *ret = error == 0 && holds_messages(turn, buffer_peek(&turn->said));
    return error;
}

/* The `k`-th turn of the trace, which was given or is masked, behind `which` replies. */
static int check_turn(struct engine *engine, const struct sample *given, size_t trace, size_t k,
                      const struct dialogue *here, size_t which, struct report *ret, struct fail *fail)
{
    const struct record_trace *of = &given->record.traces[trace];
    struct remaking turn = {.engine = engine,
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
        error = (k == 0 ? check_prompt : check_bridge)(&turn, &is_made, fail);
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
