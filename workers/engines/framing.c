#include "workers/engines/framing.h"

#include <errno.h>
#include <stdlib.h>

#include "common/cleanup.h"
#include "common/utf8.h"

#define PAD_LEFT "  "
#define PAD_RIGHT " \n"

/* ---- rendering sentinels ----------------------------------------------------------------- */

enum { ROUNDS_MAX = 2, MESSAGES_MAX = 2 * ROUNDS_MAX + 1 };

/* `rounds` times a user's turn and a reply, then a user's turn with `content`. */
static size_t make_rounds(size_t rounds, const char *content,
                          struct task_message messages[MESSAGES_MAX])
{
    size_t count = 0;
    for (size_t i = 0; i < rounds; i++) {
        messages[count++] = (struct task_message){(char *)"user", (char *)FRAME_USER};
        messages[count++] = (struct task_message){(char *)"assistant", (char *)FRAME_REPLY};
    }
    messages[count++] = (struct task_message){(char *)"user", (char *)content};
    return count;
}

static int render_rounds(struct engine *engine, size_t rounds, const char *content,
                         struct buffer *ret, struct fail *fail)
{
    struct task_message messages[MESSAGES_MAX];
    size_t count = make_rounds(rounds, content, messages);
    return engine->dialect->apply_template(engine, messages, count, ret, fail);
}

static int render_tail(struct engine *engine, size_t rounds, const char *content,
                       struct buffer *text, struct frame_tail *ret, struct fail *fail)
{
    int error = render_rounds(engine, rounds, content, text, fail);
    if (error < 0)
        return error;
    return frame_tail_find(buffer_peek(text), ret)
               ? 0
               : fail_set(fail, -ENOTSUP, "the chat template does not give back a turn unchanged");
}

/* ---- special tokens ---------------------------------------------------------------------- */

static int tokenizes_to(struct engine *engine, struct slice text, enum tokenize_mode mode,
                        uint32_t id, bool *ret, struct fail *fail)
{
    struct tokens ids = {0};
    int error = engine->dialect->tokenize(engine, text, mode, &ids, fail);
    *ret = ids.count == 1 && ids.ids[0] == id;
    tokens_finish(&ids);
    return error;
}

/* Also its name, which the caller frees; NULL when it is not special. */
static int special_name(struct engine *engine, uint32_t id, char **ret, struct fail *fail)
{
    AUTO_BUFFER name = {0};
    bool as_special = false, as_text = false;
    int error = engine->dialect->detokenize(engine, id, &name, fail);
    if (error == 0)
        error = tokenizes_to(engine, buffer_peek(&name), TOKENIZE_SPECIALS, id, &as_special, fail);
    if (error == 0)
        error = tokenizes_to(engine, buffer_peek(&name), TOKENIZE_PLAIN, id, &as_text, fail);
    *ret = NULL;
    if (error == 0 && as_special && !as_text && !(*ret = buffer_take_str(&name)))
        error = fail_set(fail, -ENOMEM, "out of memory");
    return error;
}

int engine_is_special(struct engine *engine, uint32_t id, bool *ret, struct fail *fail)
{
    AUTO_FREE char *name = NULL;
    int error = special_name(engine, id, &name, fail);
    *ret = name != NULL;
    return error;
}

static bool specials_have(const struct frame_special *specials, size_t count, uint32_t id)
{
    for (size_t i = 0; i < count; i++)
        if (specials[i].id == id)
            return true;
    return false;
}

/* The special ones among the tokens of `text`; names are the caller's to free. */
static int find_specials(struct engine *engine, struct slice text,
                         struct frame_special specials[FRAME_PARTS_MAX], size_t *count,
                         struct fail *fail)
{
    struct tokens ids = {0};
    int error = engine->dialect->tokenize(engine, text, TOKENIZE_SPECIALS, &ids, fail);
    for (size_t i = 0; error == 0 && i < ids.count && *count < FRAME_PARTS_MAX; i++) {
        char *name = NULL;
        if (specials_have(specials, *count, ids.ids[i]))
            continue;
        error = special_name(engine, ids.ids[i], &name, fail);
        if (name)
            specials[(*count)++] = (struct frame_special){ids.ids[i], name};
    }
    tokens_finish(&ids);
    return error;
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
    struct frame_special specials[FRAME_PARTS_MAX];
    size_t count = 0;
    int error = text.failed ? fail_set(fail, -ENOMEM, "out of memory")
                            : find_specials(engine, buffer_peek(&text), specials, &count, fail);
    if (error == 0)
        error = frame_build(ret, tail, specials, count, fail);
    while (count > 0)
        free(specials[--count].name);
    return error;
}

static int learn(struct engine *engine, struct frame *ret, struct fail *fail)
{
    AUTO_BUFFER once_text = {0}, twice_text = {0}, padded_text = {0};
    struct frame_tail first, later, padded;
    int error = render_tail(engine, 1, FRAME_USER, &once_text, &first, fail);
    if (error == 0)
        error = render_tail(engine, 2, FRAME_USER, &twice_text, &later, fail);
    if (error == 0)
        error = render_tail(engine, 1, PAD_LEFT FRAME_USER PAD_RIGHT, &padded_text, &padded, fail);
    if (error < 0)
        return error;
    if (!slice_equal(first.before, later.before) || !slice_equal(first.after, later.after))
        return fail_set(fail, -ENOTSUP, "the chat template writes a later turn in another way");
    if (!frame_learn_trim(ret, &first, &padded, PAD_LEFT, PAD_RIGHT))
        return fail_set(fail, -ENOTSUP, "the chat template rewrites the blanks around a turn");
    return cut(engine, &first, ret, fail);
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
    "user",
    "assistant\n",
};

static int prove_content(struct engine *engine, const struct frame *frame, const char *content,
                         struct fail *fail)
{
    struct task_message messages[MESSAGES_MAX];
    struct tokens whole = {0}, bridge = {0};
    size_t count = make_rounds(1, content, messages);
    int error = engine_render_once(engine, messages, count, &whole, fail);
    if (error == 0)
        error = framing_bridge(engine, frame, engine->facts.plain_id, slice_from_str(content),
                               &bridge, fail);
    if (error == 0 &&
        (bridge.count > whole.count || memcmp(whole.ids + (whole.count - bridge.count), bridge.ids,
                                              bridge.count * sizeof(*bridge.ids)) != 0))
        error = fail_set(fail, -ENOTSUP,
                         "turns cannot be put together as the chat template does: "
                         "the content \"%.40s\" comes out in other tokens",
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
                               : framing_bridge(engine, frame, engine->facts.plain_id,
                                                buffer_peek(&content), &bridge, fail);
    tokens_finish(&bridge);
    return error;
}

int framing_learn(struct engine *engine, struct frame *ret, struct fail *fail)
{
    int error = learn(engine, ret, fail);
    if (error == 0)
        error = encode_literals(engine, ret, fail);
    if (error == 0)
        error = prove_harmless(engine, ret, fail);
    for (size_t i = 0; error == 0 && i < sizeof(nasty) / sizeof(*nasty); i++)
        error = prove_content(engine, ret, nasty[i], fail);
    return error;
}

int framing_bridge(struct engine *engine, const struct frame *frame, uint32_t last,
                   struct slice content, struct tokens *ret, struct fail *fail)
{
    AUTO_BUFFER repaired = {0}, text = {0};
    struct tokens ids = {0};
    utf8_append_repaired(&repaired, content);
    if (repaired.failed || !frame_text(frame, buffer_peek(&repaired), &text))
        return fail_set(fail, -ENOMEM, "out of memory");
    int error = engine->dialect->tokenize(engine, buffer_peek(&text), TOKENIZE_PLAIN, &ids, fail);
    if (error == 0)
        error = frame_assemble(frame, last, &ids, ret, fail);
    tokens_finish(&ids);
    return error;
}
