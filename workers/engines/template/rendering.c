#include "workers/engines/template/rendering.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

#include "common/base/cleanup.h"
#include "common/base/utf8.h"
#include "workers/engines/template/special_tokens.h"

/* ---- as the template has it -------------------------------------------------------------- */

static bool has_prefix(const struct tokens *ids, const struct tokens *prefix)
{
    return ids->count >= prefix->count &&
           (prefix->count == 0 || memcmp(ids->ids, prefix->ids, prefix->count * sizeof(*ids->ids)) == 0);
}

/* The ids of rendered text, behind what the tokenizer puts in front; false: no memory. */
static bool take_rendered(const struct engine *engine, const struct tokens *ids, struct tokens *ret)
{
    const struct tokens *prefix = &engine->info.prefix;
    return (has_prefix(ids, prefix) || tokens_append(ret, prefix->ids, prefix->count)) &&
           tokens_append(ret, ids->ids, ids->count);
}

static int encode_as_special(struct engine *engine, struct slice text, struct tokens *ret, struct fail *fail)
{
    struct tokens ids = {0};
    int error = engine->dialect->tokenize(engine, text, TOKENIZE_SPECIALS, &ids, fail);
    if (error == 0 && !take_rendered(engine, &ids, ret))
        error = fail_memory(fail);
    tokens_finish(&ids);
    return error;
}

static int render_plainly(struct engine *engine, const struct task_message *messages, size_t count, struct tokens *ret,
                          struct fail *fail)
{
    AUTO_BUFFER text = {0};
    int error = engine->dialect->apply_template(engine, messages, count, &text, fail);
    return error < 0 ? error : encode_as_special(engine, buffer_peek(&text), ret, fail);
}

int engine_render_once(struct engine *engine, const struct task_message *messages, size_t count, struct tokens *ret,
                       struct fail *fail)
{
    return (engine->dialect->render ? engine->dialect->render : render_plainly)(engine, messages, count, ret, fail);
}

enum { MARK_LETTERS = 24 };

/* Letters only, as the sentinels of bridge.h, and such as no message holds. */
struct mark {
    char text[MARK_LETTERS + 1];
};

/* ---- marks ------------------------------------------------------------------------------- */

static bool has_mark(const struct mark *mark, struct slice text)
{
    return memmem(text.data, text.len, mark->text, MARK_LETTERS) != NULL;
}

/* By chance: what is hostile cannot foresee it. False when the text holds it all the same. */
static bool mark_choose(struct mark *ret, struct slice text)
{
    uint8_t prng[MARK_LETTERS];
    if (getrandom(prng, sizeof(prng), 0) != sizeof(prng))
        return false;
    for (size_t i = 0; i < MARK_LETTERS; i++)
        ret->text[i] = (char)('A' + prng[i] % 26);
    ret->text[MARK_LETTERS] = '\0';
    return !has_mark(ret, text);
}

/* Every name is broken after its first character. */
static void append_marked(struct buffer *out, const struct mark *mark, const struct specials *specials,
                          struct slice text)
{
    for (size_t at = 0; at < text.len;) {
        const struct slice rest = slice_of(text.data + at, text.len - at);
        const size_t len = utf8_sequence(rest) ? utf8_sequence(rest) : 1;
        buffer_append(out, rest.data, len);
        if (turn_template_special_at(rest, specials->list, specials->count))
            buffer_append_str(out, mark->text);
        at += len;
    }
}

static void append_unmarked(struct buffer *out, const struct mark *mark, struct slice text)
{
    const uint8_t *found;
    while ((found = memmem(text.data, text.len, mark->text, MARK_LETTERS))) {
        const size_t before = (size_t)(found - text.data);
        buffer_append(out, text.data, before);
        text = slice_of(found + MARK_LETTERS, text.len - before - MARK_LETTERS);
    }
    buffer_append(out, text.data, text.len);
}

static void messages_finish(struct task_message *messages, size_t count)
{
    for (size_t i = 0; messages && i < count; i++)
        free(messages[i].content);
    free(messages);
}

/* Copies with marks from `text_from` on; NULL: no memory. Roles are borrowed. */
static struct task_message *mark_messages(const struct task_message *messages, size_t count, size_t text_from,
                                          const struct mark *mark, const struct specials *specials)
{
    struct task_message *marked = calloc(count, sizeof(*marked));
    for (size_t i = 0; marked && i < count; i++) {
        AUTO_BUFFER content = {0};
        if (i < text_from)
            buffer_append_str(&content, messages[i].content);
        else
            append_marked(&content, mark, specials, slice_from_str(messages[i].content));
        marked[i] = (struct task_message){messages[i].role, buffer_take_str(&content)};
        if (!marked[i].content) {
            messages_finish(marked, count);
            return NULL;
        }
    }
    return marked;
}

/* ---- encoding what is marked --------------------------------------------------------------- */

struct encoding {
    struct engine *engine;
    const struct mark *mark;
    const struct specials *specials;
    struct tokens *ids;
};

/* No special token may come out of text. */
static int encode_text(const struct encoding *encoding, struct slice marked, struct fail *fail)
{
    AUTO_BUFFER text = {0};
    append_unmarked(&text, encoding->mark, marked);
    if (text.failed)
        return fail_memory(fail);
    const size_t from = encoding->ids->count;
    int error = encoding->engine->dialect->tokenize(encoding->engine, buffer_peek(&text), TOKENIZE_PLAIN, encoding->ids,
                                                    fail);
    for (size_t i = from; error == 0 && i < encoding->ids->count; i++)
        for (size_t k = 0; error == 0 && k < encoding->specials->count; k++)
            if (encoding->ids->ids[i] == encoding->specials->list[k].id)
                error = fail_set(fail, -ENOTSUP, "the tokenizer made token %u of plain text", encoding->ids->ids[i]);
    return error;
}

static int encode_own(const struct encoding *encoding, struct slice text, struct fail *fail)
{
    return text.len == 0
               ? 0
               : encoding->engine->dialect->tokenize(encoding->engine, text, TOKENIZE_SPECIALS, encoding->ids, fail);
}

/* What has no mark is encoded in as long runs as there are, special tokens and all. */
static int encode_marked(const struct encoding *encoding, struct slice text, struct fail *fail)
{
    int error = 0;
    size_t run = 0, at = 0;
    const struct specials *specials = encoding->specials;
    while (error == 0 && at < text.len) {
        const struct slice rest = slice_of(text.data + at, text.len - at);
        const struct turn_template_special *special = turn_template_special_at(rest, specials->list, specials->count);
        const size_t len = special ? strlen(special->name)
                                   : turn_template_until_special(rest, specials->list, specials->count);
        if (!special && has_mark(encoding->mark, slice_of(rest.data, len))) {
            error = encode_own(encoding, slice_of(text.data + run, at - run), fail);
            if (error == 0)
                error = encode_text(encoding, slice_of(rest.data, len), fail);
            run = at + len;
        }
        at += len;
    }
    return error < 0 ? error : encode_own(encoding, slice_of(text.data + run, text.len - run), fail);
}

static int encode_rendered(const struct encoding *encoding, const struct task_message *marked, size_t count,
                           struct slice plain, struct fail *fail)
{
    AUTO_BUFFER text = {0}, unmarked = {0};
    int error = encoding->engine->dialect->apply_template(encoding->engine, marked, count, &text, fail);
    if (error < 0)
        return error;
    append_unmarked(&unmarked, encoding->mark, buffer_peek(&text));
    if (unmarked.failed)
        return fail_memory(fail);
    if (!slice_equal(buffer_peek(&unmarked), plain))
        return fail_set(fail, -ENOTSUP, "the chat template changes text that names special tokens");
    return encode_marked(encoding, buffer_peek(&text), fail);
}

static int render_marked(struct engine *engine, const struct task_message *messages, size_t count, size_t text_from,
                         struct slice plain, const struct specials *specials, struct tokens *ret, struct fail *fail)
{
    struct mark mark;
    struct tokens ids = {0};
    const struct encoding encoding = {engine, &mark, specials, &ids};
    if (!mark_choose(&mark, plain))
        return fail_set(fail, -EAGAIN, "there is no mark to be had");
    struct task_message *marked = mark_messages(messages, count, text_from, &mark, specials);
    int error = marked ? encode_rendered(&encoding, marked, count, plain, fail) : fail_memory(fail);
    messages_finish(marked, count);
    if (error == 0 && !take_rendered(engine, &ids, ret))
        error = fail_memory(fail);
    tokens_finish(&ids);
    return error;
}

/* ---- the whole ----------------------------------------------------------------------------- */

static bool text_names_specials(const struct task_message *messages, size_t count, size_t text_from,
                                const struct specials *specials)
{
    for (size_t i = text_from; i < count; i++)
        if (special_tokens_occur(specials, slice_from_str(messages[i].content)))
            return true;
    return false;
}

static int render_text(struct engine *engine, const struct task_message *messages, size_t count, size_t text_from,
                       struct slice plain, struct tokens *ret, struct fail *fail)
{
    struct specials *specials = calloc(1, sizeof(*specials));
    if (!specials)
        return fail_memory(fail);
    int error = special_tokens_find(engine, plain, specials, fail);
    if (error == 0 && !text_names_specials(messages, count, text_from, specials))
        error = engine->dialect->render ? engine->dialect->render(engine, messages, count, ret, fail)
                                        : encode_as_special(engine, plain, ret, fail);
    else if (error == 0)
        error = render_marked(engine, messages, count, text_from, plain, specials, ret, fail);
    special_tokens_finish(specials);
    free(specials);
    return error;
}

int rendering_render(struct engine *engine, const struct task_message *messages, size_t count, size_t text_from,
                     struct tokens *ret, struct fail *fail)
{
    AUTO_BUFFER text = {0};
    int error = engine->dialect->apply_template(engine, messages, count, &text, fail);
    return error < 0 ? error : render_text(engine, messages, count, text_from, buffer_peek(&text), ret, fail);
}
