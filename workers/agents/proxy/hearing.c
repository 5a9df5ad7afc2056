#include "workers/agents/proxy/hearing.h"

#include <string.h>

#include "workers/agents/formats/reading.h"
#include "workers/agents/proxy/words.h"

enum { MAYBE_MAX = 4096 }; /* bytes that are looked at again and again */

/* ---- places in it ---------------------------------------------------------------------------------- */

static const char *text_at(const struct hearing *hearing, size_t at) { return (const char *)hearing->text.data + at; }

static size_t skip_blanks_at(const struct hearing *hearing, size_t at)
{
    return at + strspn(text_at(hearing, at), WORDS_BLANKS);
}

/* [from, to) without the blanks at its end. */
static size_t trim(const struct hearing *hearing, size_t from, size_t to)
{
    while (to > from && strchr(WORDS_BLANKS, *text_at(hearing, to - 1)))
        to--;
    return to;
}

/* ---- stages ---------------------------------------------------------------------------------------- */

static void begin_text(struct hearing *hearing, size_t from)
{
    hearing->stage = HEARING_TEXT;
    hearing->at = hearing->text_from = hearing->text_to = from;
}

static void look_for_thinking(struct hearing *hearing)
{
    const size_t at = hearing->at = skip_blanks_at(hearing, hearing->at);
    const enum call_start tag = tag_starts(text_at(hearing, at), THINK_TAG);
    if (tag == CALL_NOT)
        begin_text(hearing, 0);
    if (tag != CALL_STARTS)
        return;
    hearing->stage = HEARING_THINKING;
    hearing->at = hearing->thinking_from = hearing->thinking_to = at + strlen(THINK_TAG);
}

/* From the first byte on that is no blank. */
static void take_from(const struct hearing *hearing, size_t *from, size_t *to, size_t limit)
{
    if (*from == *to)
        *from = *to = skip_blanks_at(hearing, *from);
    const size_t end = trim(hearing, *to, limit > *to ? limit : *to);
    *to = end;
}

static void look_for_its_end(struct hearing *hearing)
{
    for (; hearing->at < hearing->text.len - 1; hearing->at++) {
        const enum call_start tag = tag_starts(text_at(hearing, hearing->at), THINK_END);
        if (tag == CALL_NOT)
            continue;
        take_from(hearing, &hearing->thinking_from, &hearing->thinking_to, hearing->at);
        if (tag == CALL_STARTS)
            begin_text(hearing, hearing->at + strlen(THINK_END));
        return;
    }
    take_from(hearing, &hearing->thinking_from, &hearing->thinking_to, hearing->at);
}

static void look_for_calls(struct hearing *hearing)
{
    enum call_start call = CALL_NOT;
    const char *text = text_at(hearing, 0);
    const size_t len = hearing->text.len - 1;
    for (; hearing->at < len; hearing->at++)
        if (hearing->format && (call = hearing->format->starts(text, text + hearing->at)) != CALL_NOT)
            break;
    take_from(hearing, &hearing->text_from, &hearing->text_to, hearing->at);
    if (call == CALL_STARTS || (call == CALL_MAYBE && len - hearing->at > MAYBE_MAX))
        hearing->stage = HEARING_HELD;
}

static void look(struct hearing *hearing)
{
    if (hearing->stage == HEARING_BEGIN)
        look_for_thinking(hearing);
    if (hearing->stage == HEARING_THINKING)
        look_for_its_end(hearing);
    if (hearing->stage == HEARING_TEXT)
        look_for_calls(hearing);
}

/* ---- pieces ---------------------------------------------------------------------------------------- */

void hearing_begin(struct hearing *hearing, const struct tool_format *format, bool is_opened)
{
    *hearing = (struct hearing){.format = format};
    buffer_append(&hearing->text, is_opened ? THINK_TAG : "", is_opened ? sizeof(THINK_TAG) : 1);
}

bool hearing_take(struct hearing *hearing, struct slice piece, struct hearing_news *ret)
{
    size_t thought = hearing->thinking_to, said = hearing->text_to;
    *ret = (struct hearing_news){0};
    if (hearing->stage == HEARING_HELD || hearing->text.failed)
        return !hearing->text.failed;
    hearing->text.len--;
    if (!buffer_append(&hearing->text, piece.data, piece.len) || !buffer_append(&hearing->text, "", 1))
        return false;
    look(hearing);
    thought = thought < hearing->thinking_from ? hearing->thinking_from : thought;
    said = said < hearing->text_from ? hearing->text_from : said;
    ret->thinking = slice_of(text_at(hearing, thought), hearing->thinking_to - thought);
    ret->text = slice_of(text_at(hearing, said), hearing->text_to - said);
    return true;
}

struct slice hearing_thinking(const struct hearing *hearing)
{
    return hearing->thinking_from > 0
               ? slice_of(text_at(hearing, hearing->thinking_from), hearing->thinking_to - hearing->thinking_from)
               : slice_of(NULL, 0);
}

void hearing_finish(struct hearing *hearing) { buffer_finish(&hearing->text); }
