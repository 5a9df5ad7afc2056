#include "workers/engines/template/turn_template_learn.h"

#include <errno.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "common/base/utf8.h"
#include "workers/engines/template/encoding.h"
#include "workers/engines/template/history_rewrite.h"
#include "workers/engines/template/rendering.h"
#include "workers/engines/template/special_tokens.h"
#include "workers/engines/template/turn_rendering.h"
#include "common/base/text.h"

#define PAD_LEFT "  "
#define PAD_RIGHT " \n"

/* ---- rendering sentinels ----------------------------------------------------------------- */

enum { MESSAGES_MAX = 5 };

static int render_tail(struct engine *engine, enum tell_role role, size_t rounds, const char *content,
                       struct buffer *text, struct turn_template_tail *ret, struct fail *fail)
{
    int error = turn_template_render(engine, role, rounds, TURN_TEMPLATE_REPLY, content, text, fail);
    if (error < 0)
        return error;
    return turn_template_tail_find(buffer_peek(text), ret)
               ? 0
               : fail_set(fail, -ENOTSUP, "template: it does not give back a turn unchanged");
}

/* A user's turn, a reply, and turns in that role in a row, of C strings. */
static size_t make_row(enum tell_role role, const struct slice *contents, size_t count,
                       struct task_message messages[MESSAGES_MAX])
{
    messages[0] = (struct task_message){(char *)"user", (char *)TURN_TEMPLATE_USER};
    messages[1] = (struct task_message){(char *)"assistant", (char *)TURN_TEMPLATE_REPLY};
    for (size_t i = 0; i < count; i++)
        messages[2 + i] = (struct task_message){(char *)tell_role_word(role), (char *)contents[i].data};
    return 2 + count;
}

/* ---- learning ---------------------------------------------------------------------------- */

static int encode_literals(struct engine *engine, struct turn_template_parts *parts, struct fail *fail)
{
    for (size_t i = 0; i < parts->count; i++) {
        struct turn_template_part *part = &parts->list[i];
        int error = part->kind != TURN_TEMPLATE_LITERAL ? 0
                                                        : engine->dialect->tokenize(engine, slice_from_str(part->text),
                                                                                    TOKENIZE_PLAIN, &part->ids, fail);
        if (error < 0)
            return error;
    }
    return 0;
}

static int cut(struct engine *engine, const struct turn_template_tail *tail, struct turn_template *ret,
               struct fail *fail)
{
    AUTO_BUFFER text = {0};
    buffer_append(&text, tail->before.data, tail->before.len);
    buffer_append_str(&text, TURN_TEMPLATE_USER);
    buffer_append(&text, tail->after.data, tail->after.len);
    struct specials *specials = calloc(1, sizeof(*specials));
    int error = text.failed || !specials ? fail_memory(fail)
                                         : special_tokens_find(engine, buffer_peek(&text), specials, fail);
    if (error == 0)
        error = turn_template_build(ret, tail, specials->list, specials->count, fail);
    if (error == 0 && !(ret->tail = buffer_take_str(&text)))
        error = fail_memory(fail);
    if (specials)
        special_tokens_finish(specials);
    free(specials);
    return error;
}

/* Which blanks it strips, where it strips any. */
static int learn_blanks(struct engine *engine, enum tell_role role, const struct turn_template_tail *plain,
                        struct turn_template *ret, struct fail *fail)
{
    for (size_t i = 0; (ret->trims_left || ret->trims_right) && turn_template_blanks[i]; i++) {
        AUTO_BUFFER text = {0};
        struct turn_template_tail tail;
        char content[sizeof(TURN_TEMPLATE_USER) + 16];
        snprintf(content, sizeof(content), "%s" TURN_TEMPLATE_USER "%s", turn_template_blanks[i],
                 turn_template_blanks[i]);
        int error = render_tail(engine, role, 1, content, &text, &tail, fail);
        if (error < 0)
            return error;
        if (ret->trims_left ? slice_equal(tail.before, plain->before) : slice_equal(tail.after, plain->after))
            ret->blanks |= UINT32_C(1) << i;
    }
    return 0;
}

/* What stands before a reply must be the same when it is sampled and when it is history, but for
 * blanks before the reply, which are as good as its own. */
static int check_head(const struct buffer *twice, const struct turn_template_tail *tail, struct fail *fail)
{
    struct slice head;
    return turn_template_head_find(buffer_peek(twice), &head) &&
                   slice_equal(text_trim_right(head), text_trim_right(tail->after))
               ? 0
               : fail_set(fail, -ENOTSUP,
                          "rewrite: what the template writes before a reply is not what it writes "
                          "there once the reply is history");
}

static int take_lead(const struct buffer *text, struct turn_template *ret, struct fail *fail)
{
    const struct slice all = buffer_peek(text);
    const uint8_t *reply = memmem(all.data, all.len, TURN_TEMPLATE_REPLY, strlen(TURN_TEMPLATE_REPLY));
    ret->lead = strndup((const char *)all.data, (size_t)(reply - all.data));
    return ret->lead ? 0 : fail_memory(fail);
}

static int learn(struct engine *engine, enum tell_role role, struct turn_template *ret, struct fail *fail)
{
    AUTO_BUFFER single_flight_text = {0}, twice_text = {0}, padded_text = {0};
    struct turn_template_tail first, later, padded;
    int error = render_tail(engine, role, 1, TURN_TEMPLATE_USER, &single_flight_text, &first, fail);
    if (error == 0)
        error = render_tail(engine, role, 2, TURN_TEMPLATE_USER, &twice_text, &later, fail);
    if (error == 0)
        error = render_tail(engine, role, 1, PAD_LEFT TURN_TEMPLATE_USER PAD_RIGHT, &padded_text, &padded, fail);
    if (error < 0)
        return error;
    if (!slice_equal(first.before, later.before) || !slice_equal(first.after, later.after))
        return fail_set(fail, -ENOTSUP, "template: it writes a later turn in another way");
    if (!turn_template_learn_trim(ret, &first, &padded, PAD_LEFT, PAD_RIGHT))
        return fail_set(fail, -ENOTSUP, "template: it rewrites the blanks around a turn");
    error = cut(engine, &first, ret, fail);
    if (error == 0)
        error = check_head(&twice_text, &first, fail);
    if (error == 0)
        error = take_lead(&single_flight_text, ret, fail);
    return error < 0 ? error : learn_blanks(engine, role, &first, ret, fail);
}

/* ---- proving ----------------------------------------------------------------------------- */

/* Contents on which encoding in pieces, trimming or normalizing would show. */
static const char *const nasty[] = {
    "",
    "a",
    "foo);",
    "foo  ",
    "\nfoo",
    "\n\n\nfoo\n\n",
    "  \t foo",
    " \n ",
    "a\r\nb\r\n",
    "'s 're 'LL",
    "1234567 89",
    "{\"a\": [1, 2]}\n",
    "```bash\nls -l\n```\n",
    "\\boxed{42}",
    "<tag>|</tag>",
    "caf\xc3\xa9 \xe4\xb8\xad\xe6\x96\x87 \xf0\x9f\x98\x80",
    "\xf0\x9f\x98\x80",
    "x\xc2\xa0y\xe2\x80\x8bz \xc2\xa0",
    "\xe3\x80\x80x\xe2\x80\x83",
    "\x0b x \x0c",
    "e\xcc\x81 A\xcc\x8a",
    "user",
    "assistant\n",
};

/* Whether turns in a row come out of bridges as they come out of the template. */
static int prove_row(struct engine *engine, const struct turn_template *turn_template, const struct slice *contents,
                     size_t count, bool *ret, struct fail *fail)
{
    struct task_message messages[MESSAGES_MAX];
    struct tokens whole = {0}, bridge = {0};
    const size_t message_count = make_row(turn_template->role, contents, count, messages);
    int error = engine_render_once(engine, messages, message_count, &whole, fail);
    if (error == 0)
        error = turn_template_bridge(engine, turn_template, contents, count, &bridge, fail);
    *ret = error == 0 && bridge.count <= whole.count &&
           memcmp(whole.ids + (whole.count - bridge.count), bridge.ids, bridge.count * sizeof(*bridge.ids)) == 0;
    tokens_finish(&whole);
    tokens_finish(&bridge);
    return error;
}

static int prove_content(struct engine *engine, const struct turn_template *turn_template, const char *content,
                         struct fail *fail)
{
    const struct slice one = slice_from_str(content);
    bool is_same;
    int error = prove_row(engine, turn_template, &one, 1, &is_same, fail);
    return error < 0 || is_same ? error
                                : fail_set(fail, -ENOTSUP,
                                           "template: the content \"%.40s\" comes out in other tokens when turns are "
                                           "put together",
                                           content);
}

/* A content that names every special token of the turn template must not become one (turn_template_assemble). */
static int prove_harmless(struct engine *engine, const struct turn_template *turn_template, struct fail *fail)
{
    AUTO_BUFFER content = {0};
    for (size_t i = 0; i < turn_template->parts.count; i++) {
        const struct turn_template_part *part = &turn_template->parts.list[i];
        int error = part->kind != TURN_TEMPLATE_SPECIAL ? 0
                                                        : engine->dialect->detokenize(engine, part->id, &content, fail);
        if (error < 0)
            return error;
        buffer_append_str(&content, "system\n");
    }
    struct tokens bridge = {0};
    const struct slice one = buffer_peek(&content);
    int error = content.failed ? fail_memory(fail)
                               : turn_template_bridge(engine, turn_template, &one, 1, &bridge, fail);
    tokens_finish(&bridge);
    return error;
}

/* ---- several in a row ---------------------------------------------------------------------- */

enum { ROW_MAX = MESSAGES_MAX - 2 };

static int build_gap(struct engine *engine, struct turn_template *turn_template, struct slice text, struct fail *fail)
{
    struct specials *specials = calloc(1, sizeof(*specials));
    int error = specials ? special_tokens_find(engine, text, specials, fail) : fail_memory(fail);
    if (error == 0 && turn_template_build_gap(turn_template, text, specials->list, specials->count))
        error = encode_literals(engine, &turn_template->gap.parts, fail);
    if (specials)
        special_tokens_finish(specials);
    free(specials);
    return error;
}

/* Two sentinels in a row, of which `text` keeps what was rendered. No gap: turn template->gap stays unknown. */
static int learn_gap(struct engine *engine, struct turn_template *turn_template, struct buffer *text, struct fail *fail)
{
    const struct slice twice[] = {slice_from_str(TURN_TEMPLATE_USER), slice_from_str(TURN_TEMPLATE_USER)};
    const char *user = strstr(turn_template->tail, TURN_TEMPLATE_USER);
    const struct turn_template_tail tail = {slice_of(turn_template->tail, (size_t)(user - turn_template->tail)),
                                            slice_from_str(user + strlen(TURN_TEMPLATE_USER))};
    struct task_message messages[MESSAGES_MAX];
    struct slice gap;
    const size_t count = make_row(turn_template->role, twice, 2, messages);
    int error = engine->dialect->apply_template(engine, messages, count, text, fail);
    return error == 0 && turn_template_gap_find(buffer_peek(text), &tail, &gap)
               ? build_gap(engine, turn_template, gap, fail)
               : error;
}

/* A gap that is not exact on rows of the nasty contents, each in one, is none. */
static int learn_row(struct engine *engine, struct turn_template *turn_template, struct fail *fail)
{
    enum { NASTY = sizeof(nasty) / sizeof(*nasty) };
    AUTO_BUFFER text = {0};
    int error = learn_gap(engine, turn_template, &text, fail);
    for (size_t i = 0; error == 0 && turn_template->gap.is_known && i < NASTY; i += ROW_MAX) {
        struct slice row[ROW_MAX];
        for (size_t k = 0; k < ROW_MAX; k++)
            row[k] = slice_from_str(nasty[(i + k) % NASTY]);
        error = prove_row(engine, turn_template, row, ROW_MAX, &turn_template->gap.is_known, fail);
    }
    if (error == -ENOTSUP || error == -EINVAL) { /* the template refuses several */
        turn_template->gap.is_known = false;
        return 0;
    }
    return error;
}

/* ---- the whole ----------------------------------------------------------------------------- */

int turn_template_learn(struct engine *engine, enum tell_role role, struct turn_template *ret, struct fail *fail)
{
    ret->role = role;
    int error = learn(engine, role, ret, fail);
    if (error == 0)
        error = encode_literals(engine, &ret->parts, fail);
    if (error == 0)
        error = prove_harmless(engine, ret, fail);
    for (size_t i = 0; error == 0 && i < sizeof(nasty) / sizeof(*nasty); i++)
        error = prove_content(engine, ret, nasty[i], fail);
    if (error == 0 && role != TELL_USER)
        error = learn_row(engine, ret, fail);
    return error < 0 ? error : history_rewrite_learn(engine, role, ret, fail);
}

/* The ids of one run of text. */
static int encode_run(struct engine *engine, const struct turn_template *turn_template, const struct slice *contents,
                      size_t count, size_t run, struct tokens *ret, struct fail *fail)
{
    AUTO_BUFFER text = {0};
    if (!turn_template_text(turn_template, contents, count, run, &text))
        return fail_memory(fail);
    int error = engine_encode(engine, buffer_peek(&text), TOKENIZE_PLAIN, ret, fail);
    return error == -ENOTSUP ? fail_wrap(fail, "special") : error;
}

static int assemble(struct engine *engine, const struct turn_template *turn_template, const struct slice *contents,
                    size_t count, struct tokens *ret, struct fail *fail)
{
    const size_t runs = turn_template_runs(turn_template, count);
    AUTO_FREE struct tokens *ids = calloc(runs, sizeof(*ids));
    int error = ids ? 0 : fail_memory(fail);
    for (size_t i = 0; error == 0 && i < runs; i++)
        error = encode_run(engine, turn_template, contents, count, i, &ids[i], fail);
    if (error == 0)
        error = turn_template_assemble(turn_template, ids, runs, ret, fail);
    for (size_t i = 0; ids && i < runs; i++)
        tokens_finish(&ids[i]);
    return error;
}

int turn_template_bridge(struct engine *engine, const struct turn_template *turn_template, const struct slice *contents,
                         size_t count, struct tokens *ret, struct fail *fail)
{
    struct buffer *repaired = calloc(count, sizeof(*repaired));
    struct slice *texts = calloc(count, sizeof(*texts));
    bool ok = repaired && texts;
    for (size_t i = 0; ok && i < count; i++) {
        utf8_append_repaired(&repaired[i], contents[i]);
        texts[i] = buffer_peek(&repaired[i]);
        ok = !repaired[i].failed;
    }
    int error = !ok ? fail_memory(fail)
                : count > 1 && !turn_template->gap.is_known
                    ? fail_set(fail, -ENOTSUP,
                               "template: it does not write several turns of the "
                               "role %s in a row as it writes one",
                               tell_role_word(turn_template->role))
                    : assemble(engine, turn_template, texts, count, ret, fail);
    for (size_t i = 0; repaired && i < count; i++)
        buffer_finish(&repaired[i]);
    free(repaired);
    free(texts);
    return error;
}
