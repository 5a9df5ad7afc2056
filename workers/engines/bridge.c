#include "workers/engines/bridge.h"

#include <errno.h>
#include <stdlib.h>

#include "common/cleanup.h"

/* ---- finding the tail -------------------------------------------------------------------- */

static const uint8_t *slice_find(struct slice in, const char *what)
{
    return memmem(in.data, in.len, what, strlen(what));
}

static struct slice slice_after(struct slice in, const uint8_t *from)
{
    return slice_of(from, (size_t)(in.data + in.len - from));
}

/* The slice behind the last `what`; false when there is none. */
static bool slice_cut_last(struct slice *in, const char *what)
{
    bool found = false;
    const uint8_t *at;
    while ((at = slice_find(*in, what))) {
        *in = slice_after(*in, at + strlen(what));
        found = true;
    }
    return found;
}

bool frame_tail_find(struct slice rendered, struct frame_tail *ret)
{
    if (!slice_cut_last(&rendered, FRAME_REPLY))
        return false;
    const uint8_t *user = slice_find(rendered, FRAME_USER);
    if (!user)
        return false;
    struct slice after = slice_after(rendered, user + strlen(FRAME_USER));
    if (slice_find(after, FRAME_USER))
        return false;
    *ret = (struct frame_tail){slice_of(rendered.data, (size_t)(user - rendered.data)), after};
    return true;
}

bool frame_head_find(struct slice rendered, struct slice *ret)
{
    struct slice rest = rendered;
    if (!slice_cut_last(&rest, FRAME_REPLY))
        return false;
    size_t end = (size_t)(rest.data - rendered.data) - strlen(FRAME_REPLY);
    struct slice head = slice_of(rendered.data, end);
    if (!slice_cut_last(&head, FRAME_USER))
        return false;
    *ret = head;
    return true;
}

/* Whether `longer` is `shorter` with `more` at its end (or start). */
static bool slice_has_more(struct slice longer, struct slice shorter, const char *more, bool at_end)
{
    size_t len = strlen(more);
    if (longer.len != shorter.len + len)
        return false;
    const uint8_t *kept = at_end ? longer.data : longer.data + len;
    const uint8_t *added = at_end ? longer.data + shorter.len : longer.data;
    return memcmp(kept, shorter.data, shorter.len) == 0 && memcmp(added, more, len) == 0;
}

bool frame_learn_trim(struct frame *frame, const struct frame_tail *plain,
                      const struct frame_tail *padded, const char *left, const char *right)
{
    frame->trims_left = slice_equal(padded->before, plain->before);
    frame->trims_right = slice_equal(padded->after, plain->after);
    return (frame->trims_left || slice_has_more(padded->before, plain->before, left, true)) &&
           (frame->trims_right || slice_has_more(padded->after, plain->after, right, false));
}

/* ---- cutting it -------------------------------------------------------------------------- */

const struct frame_special *frame_special_at(struct slice text,
                                             const struct frame_special *specials, size_t count)
{
    const struct frame_special *longest = NULL;
    for (size_t i = 0; i < count; i++) {
        size_t len = strlen(specials[i].name);
        if (len > 0 && len <= text.len && memcmp(text.data, specials[i].name, len) == 0 &&
            (!longest || len > strlen(longest->name)))
            longest = &specials[i];
    }
    return longest;
}

size_t frame_until_special(struct slice text, const struct frame_special *specials, size_t count)
{
    size_t at = 0;
    while (at < text.len && !frame_special_at(slice_of(text.data + at, text.len - at), specials, count))
        at++;
    return at;
}

static struct frame_part *frame_push(struct frame *frame, int kind)
{
    if (frame->part_count == FRAME_PARTS_MAX)
        return NULL;
    struct frame_part *part = &frame->parts[frame->part_count++];
    *part = (struct frame_part){.kind = kind};
    return part;
}

static char *text_copy(struct slice text)
{
    return strndup(text.len ? (const char *)text.data : "", text.len);
}

static bool push_literal(struct frame *frame, struct slice text)
{
    if (text.len == 0)
        return true;
    struct frame_part *part = frame_push(frame, FRAME_LITERAL);
    return part && (part->text = text_copy(text));
}

/* Pushes specials and the literals between them; *rest is what follows the last special. */
static bool push_pieces(struct frame *frame, struct slice text,
                        const struct frame_special *specials, size_t count, struct slice *rest)
{
    size_t start = 0;
    for (size_t at = 0; at < text.len;) {
        const struct frame_special *special =
            frame_special_at(slice_of(text.data + at, text.len - at), specials, count);
        if (!special) {
            at++;
            continue;
        }
        struct frame_part *part;
        if (!push_literal(frame, slice_of(text.data + start, at - start)) ||
            !(part = frame_push(frame, FRAME_SPECIAL)))
            return false;
        part->id = special->id;
        start = at += strlen(special->name);
    }
    *rest = slice_of(text.data + start, text.len - start);
    return true;
}

static bool push_content(struct frame *frame, struct slice before, struct slice after)
{
    struct frame_part *part = frame_push(frame, FRAME_CONTENT);
    return part && (part->text = text_copy(before)) && (part->text_after = text_copy(after));
}

int frame_build(struct frame *frame, const struct frame_tail *tail,
                const struct frame_special *specials, size_t count, struct fail *fail)
{
    struct slice left, right;
    const struct slice joined =
        slice_of(tail->after.data, frame_until_special(tail->after, specials, count));
    struct slice after = slice_of(tail->after.data + joined.len, tail->after.len - joined.len);
    if (!push_pieces(frame, tail->before, specials, count, &left) ||
        !push_content(frame, left, joined) || !push_pieces(frame, after, specials, count, &right) ||
        !push_literal(frame, right))
        return fail_set(fail, -ENOTSUP, "template: it writes too many parts around a turn");
    if (frame->parts[0].kind != FRAME_SPECIAL)
        return fail_set(fail, -ENOTSUP,
                        "template: it does not end a reply with a special token");
    return 0;
}

void frame_finish(struct frame *frame)
{
    for (size_t i = 0; i < frame->part_count; i++) {
        free(frame->parts[i].text);
        free(frame->parts[i].text_after);
        tokens_finish(&frame->parts[i].ids);
    }
    free(frame->lead);
    free(frame->tail);
    *frame = (struct frame){0};
}

/* ---- using it ---------------------------------------------------------------------------- */

const char *const frame_blanks[] = {
    " ", "\t", "\n", "\v", "\f", "\r", "\x1c", "\x1d", "\x1e", "\x1f", "\u00a0", "\u1680",
    "\u2000", "\u2001", "\u2002", "\u2003", "\u2004", "\u2005", "\u2006", "\u2007", "\u2008", "\u2009",
    "\u200a", "\u2028", "\u2029", "\u202f", "\u205f", "\u3000", "\xc2\x85", NULL};

/* Bytes of a blank of the frame that the text starts (or ends) with; 0: it does not. */
static size_t blank_at(const struct frame *frame, struct slice text, bool at_end)
{
    for (size_t i = 0; frame_blanks[i]; i++) {
        size_t len = strlen(frame_blanks[i]);
        if ((frame->blanks >> i & 1) && len <= text.len &&
            memcmp(at_end ? text.data + text.len - len : text.data, frame_blanks[i], len) == 0)
            return len;
    }
    return 0;
}

static struct slice content_trim(const struct frame *frame, struct slice content)
{
    size_t len;
    while (frame->trims_left && (len = blank_at(frame, content, false)) > 0)
        content = slice_of(content.data + len, content.len - len);
    while (frame->trims_right && (len = blank_at(frame, content, true)) > 0)
        content.len -= len;
    return content;
}

bool frame_text(const struct frame *frame, struct slice content, struct buffer *ret)
{
    content = content_trim(frame, content);
    for (size_t i = 0; i < frame->part_count; i++)
        if (frame->parts[i].kind == FRAME_CONTENT) {
            buffer_append_str(ret, frame->parts[i].text);
            buffer_append(ret, content.data, content.len);
            buffer_append_str(ret, frame->parts[i].text_after);
        }
    return !ret->failed;
}

static bool frame_has_special(const struct frame *frame, uint32_t id)
{
    for (size_t i = 0; i < frame->part_count; i++)
        if (frame->parts[i].kind == FRAME_SPECIAL && frame->parts[i].id == id)
            return true;
    return false;
}

uint32_t frame_end(const struct frame *frame)
{
    return frame->parts[0].id;
}

int frame_assemble(const struct frame *frame, const struct tokens *content, struct tokens *ret,
                   struct fail *fail)
{
    for (size_t i = 0; i < content->count; i++)
        if (frame_has_special(frame, content->ids[i]))
            return fail_set(fail, -ENOTSUP, "special: the tokenizer made token %u of plain content",
                            content->ids[i]);
    bool ok = true;
    for (size_t i = 1; ok && i < frame->part_count; i++) {
        const struct frame_part *part = &frame->parts[i];
        const struct tokens *ids = part->kind == FRAME_CONTENT ? content : &part->ids;
        ok = part->kind == FRAME_SPECIAL ? tokens_append(ret, &part->id, 1)
                                         : tokens_append(ret, ids->ids, ids->count);
    }
    return ok ? 0 : fail_set(fail, -ENOMEM, "out of memory");
}
