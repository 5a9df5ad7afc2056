#include "workers/engines/template/bridge.h"

#include <errno.h>
#include <stdlib.h>

#include "common/base/cleanup.h"

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

bool turn_template_tail_find(struct slice rendered, struct turn_template_tail *ret)
{
    if (!slice_cut_last(&rendered, TURN_TEMPLATE_REPLY))
        return false;
    const uint8_t *user = slice_find(rendered, TURN_TEMPLATE_USER);
    if (!user)
        return false;
    struct slice after = slice_after(rendered, user + strlen(TURN_TEMPLATE_USER));
    if (slice_find(after, TURN_TEMPLATE_USER))
        return false;
    *ret = (struct turn_template_tail){slice_of(rendered.data, (size_t)(user - rendered.data)), after};
    return true;
}

/* Cuts `what` and TURN_TEMPLATE_USER behind it off the start. */
static bool cut_turn(struct slice *text, struct slice what)
{
    const size_t len = what.len + strlen(TURN_TEMPLATE_USER);
    if (len > text->len || memcmp(text->data, what.data, what.len) != 0 ||
        memcmp(text->data + what.len, TURN_TEMPLATE_USER, strlen(TURN_TEMPLATE_USER)) != 0)
        return false;
    *text = slice_after(*text, text->data + len);
    return true;
}

bool turn_template_gap_find(struct slice rendered, const struct turn_template_tail *tail, struct slice *ret)
{
    struct slice rest = rendered;
    if (!slice_cut_last(&rest, TURN_TEMPLATE_REPLY) || !cut_turn(&rest, tail->before))
        return false;
    const uint8_t *second = slice_find(rest, TURN_TEMPLATE_USER);
    if (!second)
        return false;
    *ret = slice_of(rest.data, (size_t)(second - rest.data));
    return slice_equal(slice_after(rest, second + strlen(TURN_TEMPLATE_USER)), tail->after);
}

bool turn_template_head_find(struct slice rendered, struct slice *ret)
{
    struct slice rest = rendered;
    if (!slice_cut_last(&rest, TURN_TEMPLATE_REPLY))
        return false;
    size_t end = (size_t)(rest.data - rendered.data) - strlen(TURN_TEMPLATE_REPLY);
    struct slice head = slice_of(rendered.data, end);
    if (!slice_cut_last(&head, TURN_TEMPLATE_USER))
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

bool turn_template_learn_trim(struct turn_template *turn_template, const struct turn_template_tail *plain,
                              const struct turn_template_tail *padded, const char *left, const char *right)
{
    turn_template->trims_left = slice_equal(padded->before, plain->before);
    turn_template->trims_right = slice_equal(padded->after, plain->after);
    return (turn_template->trims_left || slice_has_more(padded->before, plain->before, left, true)) &&
           (turn_template->trims_right || slice_has_more(padded->after, plain->after, right, false));
}

/* ---- cutting it -------------------------------------------------------------------------- */

const struct turn_template_special *turn_template_special_at(struct slice text,
                                                             const struct turn_template_special *specials, size_t count)
{
    const struct turn_template_special *longest = NULL;
    for (size_t i = 0; i < count; i++) {
        size_t len = strlen(specials[i].name);
        if (len > 0 && len <= text.len && memcmp(text.data, specials[i].name, len) == 0 &&
            (!longest || len > strlen(longest->name)))
            longest = &specials[i];
    }
    return longest;
}

size_t turn_template_until_special(struct slice text, const struct turn_template_special *specials, size_t count)
{
    size_t at = 0;
    while (at < text.len && !turn_template_special_at(slice_of(text.data + at, text.len - at), specials, count))
        at++;
    return at;
}

static struct turn_template_part *parts_push(struct turn_template_parts *parts, int kind)
{
    if (parts->count == TURN_TEMPLATE_PARTS_MAX)
        return NULL;
    struct turn_template_part *part = &parts->list[parts->count++];
    *part = (struct turn_template_part){.kind = kind};
    return part;
}

static char *text_copy(struct slice text) { return strndup(text.len ? (const char *)text.data : "", text.len); }

static bool push_literal(struct turn_template_parts *parts, struct slice text)
{
    if (text.len == 0)
        return true;
    struct turn_template_part *part = parts_push(parts, TURN_TEMPLATE_LITERAL);
    return part && (part->text = text_copy(text));
}

/* Pushes specials and the literals between them; *rest is what follows the last special. */
static bool push_pieces(struct turn_template_parts *parts, struct slice text,
                        const struct turn_template_special *specials, size_t count, struct slice *rest)
{
    size_t start = 0;
    for (size_t at = 0; at < text.len;) {
        const struct turn_template_special *special = turn_template_special_at(slice_of(text.data + at, text.len - at),
                                                                               specials, count);
        if (!special) {
            at++;
            continue;
        }
        struct turn_template_part *part;
        if (!push_literal(parts, slice_of(text.data + start, at - start)) ||
            !(part = parts_push(parts, TURN_TEMPLATE_SPECIAL)))
            return false;
        part->id = special->id;
        start = at += strlen(special->name);
    }
    *rest = slice_of(text.data + start, text.len - start);
    return true;
}

static bool push_content(struct turn_template_parts *parts, struct slice before, struct slice after)
{
    struct turn_template_part *part = parts_push(parts, TURN_TEMPLATE_CONTENT);
    return part && (part->text = text_copy(before)) && (part->text_after = text_copy(after));
}

int turn_template_build(struct turn_template *turn_template, const struct turn_template_tail *tail,
                        const struct turn_template_special *specials, size_t count, struct fail *fail)
{
    struct slice left, right;
    const struct slice joined = slice_of(tail->after.data, turn_template_until_special(tail->after, specials, count));
    struct slice after = slice_of(tail->after.data + joined.len, tail->after.len - joined.len);
    struct turn_template_parts *parts = &turn_template->parts;
    if (!push_pieces(parts, tail->before, specials, count, &left) || !push_content(parts, left, joined) ||
        !push_pieces(parts, after, specials, count, &right) || !push_literal(parts, right))
        return fail_set(fail, -ENOTSUP, "template: it writes too many parts around a turn");
    if (parts->list[0].kind != TURN_TEMPLATE_SPECIAL)
        return fail_set(fail, -ENOTSUP, "template: it does not end a reply with a special token");
    return 0;
}

bool turn_template_build_gap(struct turn_template *turn_template, struct slice text,
                             const struct turn_template_special *specials, size_t count)
{
    struct turn_template_gap *gap = &turn_template->gap;
    const size_t first = turn_template_until_special(text, specials, count);
    struct slice left = slice_of(NULL, 0);
    gap->is_known = push_pieces(&gap->parts, slice_after(text, text.data + first), specials, count, &left) &&
                    (gap->text = text_copy(slice_of(text.data, first))) && (gap->text_after = text_copy(left));
    return gap->is_known;
}

static void parts_finish(struct turn_template_parts *parts)
{
    for (size_t i = 0; i < parts->count; i++) {
        free(parts->list[i].text);
        free(parts->list[i].text_after);
        tokens_finish(&parts->list[i].ids);
    }
}

void turn_template_finish(struct turn_template *turn_template)
{
    parts_finish(&turn_template->parts);
    parts_finish(&turn_template->gap.parts);
    free(turn_template->gap.text);
    free(turn_template->gap.text_after);
    free(turn_template->lead);
    free(turn_template->tail);
    *turn_template = (struct turn_template){0};
}

/* ---- using it ---------------------------------------------------------------------------- */

const char *const turn_template_blanks[] = {
    " ",      "\t",     "\n",     "\v",     "\f",     "\r",     "\x1c",   "\x1d",   "\x1e",     "\x1f",
    "\u00a0", "\u1680", "\u2000", "\u2001", "\u2002", "\u2003", "\u2004", "\u2005", "\u2006",   "\u2007",
    "\u2008", "\u2009", "\u200a", "\u2028", "\u2029", "\u202f", "\u205f", "\u3000", "\xc2\x85", NULL};

/* Bytes of a blank of the turn template that the text starts (or ends) with; 0: it does not. */
static size_t blank_at(const struct turn_template *turn_template, struct slice text, bool at_end)
{
    for (size_t i = 0; turn_template_blanks[i]; i++) {
        size_t len = strlen(turn_template_blanks[i]);
        if ((turn_template->blanks >> i & 1) && len <= text.len &&
            memcmp(at_end ? text.data + text.len - len : text.data, turn_template_blanks[i], len) == 0)
            return len;
    }
    return 0;
}

static struct slice content_trim(const struct turn_template *turn_template, struct slice content)
{
    size_t len;
    while (turn_template->trims_left && (len = blank_at(turn_template, content, false)) > 0)
        content = slice_of(content.data + len, content.len - len);
    while (turn_template->trims_right && (len = blank_at(turn_template, content, true)) > 0)
        content.len -= len;
    return content;
}

size_t turn_template_runs(const struct turn_template *turn_template, size_t count)
{
    return turn_template->gap.parts.count > 0 ? count : 1;
}

static const struct turn_template_part *content_part(const struct turn_template *turn_template)
{
    size_t i = 0;
    while (turn_template->parts.list[i].kind != TURN_TEMPLATE_CONTENT)
        i++;
    return &turn_template->parts.list[i];
}

bool turn_template_text(const struct turn_template *turn_template, const struct slice *contents, size_t count,
                        size_t run, struct buffer *ret)
{
    const struct turn_template_part *part = content_part(turn_template);
    const struct turn_template_gap *gap = &turn_template->gap;
    const bool is_one = turn_template_runs(turn_template, count) == 1;
    const size_t first = is_one ? 0 : run, end = is_one ? count : run + 1;
    buffer_append_str(ret, first == 0 ? part->text : gap->text_after);
    for (size_t i = first; i < end; i++) {
        const struct slice content = content_trim(turn_template, contents[i]);
        buffer_append_str(ret, i > first ? gap->text : "");
        buffer_append(ret, content.data, content.len);
    }
    buffer_append_str(ret, end == count ? part->text_after : gap->text);
    return !ret->failed;
}

static bool parts_have(const struct turn_template_parts *parts, uint32_t id)
{
    for (size_t i = 0; i < parts->count; i++)
        if (parts->list[i].kind == TURN_TEMPLATE_SPECIAL && parts->list[i].id == id)
            return true;
    return false;
}

uint32_t frame_end(const struct turn_template *turn_template) { return turn_template->parts.list[0].id; }

static int check_content(const struct turn_template *turn_template, const struct tokens *content, struct fail *fail)
{
    for (size_t i = 0; i < content->count; i++)
        if (parts_have(&turn_template->parts, content->ids[i]) ||
            parts_have(&turn_template->gap.parts, content->ids[i]))
            return fail_set(fail, -ENOTSUP, "special: the tokenizer made token %u of plain content", content->ids[i]);
    return 0;
}

static bool append_part(const struct turn_template_part *part, struct tokens *ret)
{
    return part->kind == TURN_TEMPLATE_SPECIAL ? tokens_append(ret, &part->id, 1)
                                               : tokens_append(ret, part->ids.ids, part->ids.count);
}

static bool append_runs(const struct turn_template_parts *gap, const struct tokens *runs, size_t count,
                        struct tokens *ret)
{
    bool ok = true;
    for (size_t i = 0; ok && i < count; i++) {
        for (size_t k = 0; ok && i > 0 && k < gap->count; k++)
            ok = append_part(&gap->list[k], ret);
        ok = ok && tokens_append(ret, runs[i].ids, runs[i].count);
    }
    return ok;
}

int turn_template_assemble(const struct turn_template *turn_template, const struct tokens *runs, size_t count,
                           struct tokens *ret, struct fail *fail)
{
    int error = 0;
    for (size_t i = 0; error == 0 && i < count; i++)
        error = check_content(turn_template, &runs[i], fail);
    bool ok = error == 0;
    for (size_t i = 1; ok && i < turn_template->parts.count; i++) {
        const struct turn_template_part *part = &turn_template->parts.list[i];
        ok = part->kind == TURN_TEMPLATE_CONTENT ? append_runs(&turn_template->gap.parts, runs, count, ret)
                                                 : append_part(part, ret);
    }
    return ok || error < 0 ? error : fail_memory(fail);
}
