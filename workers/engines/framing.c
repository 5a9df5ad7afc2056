#include "workers/engines/framing.h"

#include <errno.h>
#include <stdlib.h>

#include "common/cleanup.h"
#include "common/utf8.h"
#include "workers/engines/encoding.h"
#include "workers/engines/replies.h"
#include "workers/engines/specials.h"
#include "workers/text.h"

#define PAD_LEFT "  "
#define PAD_RIGHT " \n"

/* ---- rendering sentinels ----------------------------------------------------------------- */

enum { ROUNDS_MAX = 2, MESSAGES_MAX = 2 * ROUNDS_MAX + 1 };

static const char *const role_words[TELL_ROLES] = {"user", "tool"};

/* A user's turn, then `rounds` times a reply and a turn in that role, the last with `content`. */
static size_t make_rounds(enum tell_role role, size_t rounds, const char *reply,
                          const char *content, struct task_message messages[MESSAGES_MAX])
{
    size_t count = 0;
    messages[count++] = (struct task_message){(char *)"user", (char *)FRAME_USER};
    for (size_t i = 0; i < rounds; i++) {
        messages[count++] = (struct task_message){(char *)"assistant", (char *)reply};
        messages[count++] = (struct task_message){(char *)role_words[role], (char *)FRAME_USER};
    }
    messages[count - 1].content = (char *)content;
    return count;
}

int framing_render(struct engine *engine, enum tell_role role, size_t rounds, const char *reply,
                   const char *content, struct buffer *ret, struct fail *fail)
{
    struct task_message messages[MESSAGES_MAX];
    const size_t count = make_rounds(role, rounds, reply, content, messages);
    int error = engine->dialect->apply_template(engine, messages, count, ret, fail);
    return error == -EINVAL ? fail_set(fail, -ENOTSUP, "template: it takes no turns of the role %s",
                                       role_words[role])
                            : error;
}

static int render_tail(struct engine *engine, enum tell_role role, size_t rounds,
                       const char *content, struct buffer *text, struct frame_tail *ret,
                       struct fail *fail)
{
    int error = framing_render(engine, role, rounds, FRAME_REPLY, content, text, fail);
    if (error < 0)
        return error;
    return frame_tail_find(buffer_peek(text), ret)
               ? 0
               : fail_set(fail, -ENOTSUP, "template: it does not give back a turn unchanged");
}

/* ---- learning ---------------------------------------------------------------------------- */

static int encode_literals(struct engine *engine, struct frame *frame, struct fail *fail)
{
    for (size_t i = 0; i < frame->part_count; i++) {
        struct frame_part *part = &frame->parts[i];
        int error = part->kind != FRAME_LITERAL
                        ? 0
                        : engine->dialect->tokenize(engine, slice_from_str(part->text),
                                                    TOKENIZE_PLAIN, &part->ids, fail);
        if (error < 0)
            return error;
    }
    return 0;
}

static int cut(struct engine *engine, const struct frame_tail *tail, struct frame *ret,
               struct fail *fail)
{
    AUTO_BUFFER text = {0};
    buffer_append(&text, tail->before.data, tail->before.len);
    buffer_append_str(&text, FRAME_USER);
    buffer_append(&text, tail->after.data, tail->after.len);
    struct specials *specials = calloc(1, sizeof(*specials));
    int error = text.failed || !specials
                    ? fail_set(fail, -ENOMEM, "out of memory")
                    : specials_find(engine, buffer_peek(&text), specials, fail);
    if (error == 0)
        error = frame_build(ret, tail, specials->list, specials->count, fail);
    if (error == 0 && !(ret->tail = buffer_take_str(&text)))
        error = fail_set(fail, -ENOMEM, "out of memory");
    if (specials)
        specials_finish(specials);
    free(specials);
    return error;
}

/* Which blanks it strips, where it strips any. */
static int learn_blanks(struct engine *engine, enum tell_role role, const struct frame_tail *plain,
                        struct frame *ret, struct fail *fail)
{
    for (size_t i = 0; (ret->trims_left || ret->trims_right) && frame_blanks[i]; i++) {
        AUTO_BUFFER text = {0};
        struct frame_tail tail;
        char content[sizeof(FRAME_USER) + 16];
        snprintf(content, sizeof(content), "%s" FRAME_USER "%s", frame_blanks[i], frame_blanks[i]);
        int error = render_tail(engine, role, 1, content, &text, &tail, fail);
        if (error < 0)
            return error;
        if (ret->trims_left ? slice_equal(tail.before, plain->before)
                            : slice_equal(tail.after, plain->after))
            ret->blanks |= UINT32_C(1) << i;
    }
    return 0;
}

/* What stands before a reply must be the same when it is sampled and when it is history, but for
 * blanks before the reply, which are as good as its own. */
static int check_head(const struct buffer *twice, const struct frame_tail *tail, struct fail *fail)
{
    struct slice head;
    return frame_head_find(buffer_peek(twice), &head) &&
                   slice_equal(text_trim_right(head), text_trim_right(tail->after))
               ? 0
               : fail_set(fail, -ENOTSUP,
                          "rewrite: what the template writes before a reply is not what it writes "
                          "there once the reply is history");
}

static int take_lead(const struct buffer *text, struct frame *ret, struct fail *fail)
{
    const struct slice all = buffer_peek(text);
    const uint8_t *reply = memmem(all.data, all.len, FRAME_REPLY, strlen(FRAME_REPLY));
    ret->lead = strndup((const char *)all.data, (size_t)(reply - all.data));
    return ret->lead ? 0 : fail_set(fail, -ENOMEM, "out of memory");
}

static int learn(struct engine *engine, enum tell_role role, struct frame *ret, struct fail *fail)
{
    AUTO_BUFFER once_text = {0}, twice_text = {0}, padded_text = {0};
    struct frame_tail first, later, padded;
    int error = render_tail(engine, role, 1, FRAME_USER, &once_text, &first, fail);
    if (error == 0)
        error = render_tail(engine, role, 2, FRAME_USER, &twice_text, &later, fail);
    if (error == 0)
        error = render_tail(engine, role, 1, PAD_LEFT FRAME_USER PAD_RIGHT, &padded_text, &padded,
                            fail);
    if (error < 0)
        return error;
    if (!slice_equal(first.before, later.before) || !slice_equal(first.after, later.after))
        return fail_set(fail, -ENOTSUP, "template: it writes a later turn in another way");
    if (!frame_learn_trim(ret, &first, &padded, PAD_LEFT, PAD_RIGHT))
        return fail_set(fail, -ENOTSUP, "template: it rewrites the blanks around a turn");
    error = cut(engine, &first, ret, fail);
    if (error == 0)
        error = check_head(&twice_text, &first, fail);
    if (error == 0)
        error = take_lead(&once_text, ret, fail);
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

static int prove_content(struct engine *engine, enum tell_role role, const struct frame *frame,
                         const char *content, struct fail *fail)
{
    struct task_message messages[MESSAGES_MAX];
    struct tokens whole = {0}, bridge = {0};
    const size_t count = make_rounds(role, 1, FRAME_REPLY, content, messages);
    int error = engine_render_once(engine, messages, count, &whole, fail);
    if (error == 0)
        error = framing_bridge(engine, frame, slice_from_str(content), &bridge, fail);
    if (error == 0 &&
        (bridge.count > whole.count || memcmp(whole.ids + (whole.count - bridge.count), bridge.ids,
                                              bridge.count * sizeof(*bridge.ids)) != 0))
        error = fail_set(fail, -ENOTSUP,
                         "template: the content \"%.40s\" comes out in other tokens when turns are "
                         "put together",
                         content);
    tokens_finish(&whole);
    tokens_finish(&bridge);
    return error;
}

/* A content that names every special token of the frame must not become one (frame_assemble). */
static int prove_harmless(struct engine *engine, const struct frame *frame, struct fail *fail)
{
    AUTO_BUFFER content = {0};
    for (size_t i = 0; i < frame->part_count; i++) {
        int error = frame->parts[i].kind != FRAME_SPECIAL
                        ? 0
                        : engine->dialect->detokenize(engine, frame->parts[i].id, &content, fail);
        if (error < 0)
            return error;
        buffer_append_str(&content, "system\n");
    }
    struct tokens bridge = {0};
    int error = content.failed ? fail_set(fail, -ENOMEM, "out of memory")
                               : framing_bridge(engine, frame, buffer_peek(&content), &bridge, fail);
    tokens_finish(&bridge);
    return error;
}

int framing_learn(struct engine *engine, enum tell_role role, struct frame *ret, struct fail *fail)
{
    int error = learn(engine, role, ret, fail);
    if (error == 0)
        error = encode_literals(engine, ret, fail);
    if (error == 0)
        error = prove_harmless(engine, ret, fail);
    for (size_t i = 0; error == 0 && i < sizeof(nasty) / sizeof(*nasty); i++)
        error = prove_content(engine, role, ret, nasty[i], fail);
    return error < 0 ? error : replies_learn(engine, role, ret, fail);
}

int framing_bridge(struct engine *engine, const struct frame *frame, struct slice content,
                   struct tokens *ret, struct fail *fail)
{
    AUTO_BUFFER repaired = {0}, text = {0};
    struct tokens ids = {0};
    utf8_append_repaired(&repaired, content);
    if (repaired.failed || !frame_text(frame, buffer_peek(&repaired), &text))
        return fail_set(fail, -ENOMEM, "out of memory");
    int error = engine_encode(engine, buffer_peek(&text), TOKENIZE_PLAIN, &ids, fail);
    if (error == -ENOTSUP)
        error = fail_wrap(fail, "special");
    if (error == 0)
        error = frame_assemble(frame, &ids, ret, fail);
    tokens_finish(&ids);
    return error;
}
