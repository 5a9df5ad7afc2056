#include "workers/engines/dialects/streamed.h"

#include <errno.h>

#include "common/base/cleanup.h"
#include "workers/tokenizer/tokenizer.h"

/* A stream that tells fewer tokens an event costs more to read than the whole answer. */
enum { EVENTS_SEEN = 16, EVENT_TOKENS_MIN = 8 };

struct streamed {
    struct engine *engine;
    struct teller *teller;
    struct fold fold;
    int error; /* of what came */
    struct fail fail;
};

void streamed_answer_finish(struct streamed_answer *answer)
{
    call_answer_finish(&answer->whole);
    sampled_tokens_finish(&answer->tokens);
}

struct sampled_tokens *streamed_answer_tokens(struct streamed_answer *answer)
{
    return answer->is_stream ? &answer->tokens : NULL;
}

/* ---- what it costs ------------------------------------------------------------------------------- */

static void note_events(struct streamed *streamed, uint64_t events_min)
{
    const struct fold *fold = &streamed->fold;
    if (fold->events >= events_min)
        streamed->engine->info.along = fold->sampled.ids.count >= fold->events * EVENT_TOKENS_MIN ? ENGINE_ALONG_PAYS
                                                                                                  : ENGINE_ALONG_NEVER;
}

/* Behind its end. Of a short turn nothing can be said. */
static void note_answer(struct streamed *streamed)
{
    if (streamed->fold.is_whole)
        streamed->engine->info.along = ENGINE_ALONG_NEVER;
    else if (streamed->fold.sampled.ids.count >= EVENTS_SEEN * EVENT_TOKENS_MIN)
        note_events(streamed, 1);
}

/* ---- what comes ---------------------------------------------------------------------------------- */

static bool has_end(const struct streamed *streamed, const struct tokens *ids)
{
    for (size_t i = 0; i < ids->count; i++)
        if (tokens_have(&streamed->engine->info.ends, ids->ids[i]))
            return true;
    return false;
}

static void tell(const struct streamed *streamed, const struct fold_event *event)
{
    const struct tokenizer *tokenizer = streamed->engine->tokenizer;
    AUTO_BUFFER said = {0};
    if (event->is_end || has_end(streamed, &event->ids) ||
        (tokenizer && !tokenizer_decode(tokenizer, &event->ids, &said))) {
        teller_tell(streamed->teller);
        streamed->teller->is_held = true;
    }
    teller_take(streamed->teller, tokenizer ? buffer_peek(&said) : event->text);
}

static void on_event(void *arg, const struct fold_event *event)
{
    struct streamed *streamed = arg;
    if (streamed->teller->listener)
        tell(streamed, event);
    else
        note_events(streamed, EVENTS_SEEN);
}

static bool on_bytes(void *arg, struct slice bytes)
{
    struct streamed *streamed = arg;
    streamed->error = fold_take(&streamed->fold, bytes, on_event, streamed, &streamed->fail);
    if (streamed->teller->listener)
        teller_tell(streamed->teller); /* of events that came together at once */
    return streamed->error == 0;
}

/* Some servers end a stream without a word where its last event would have no token. */
static int check_finished(const struct streamed *streamed, uint64_t max_tokens, struct fail *fail)
{
    const struct tokens *ids = &streamed->fold.sampled.ids;
    if (streamed->fold.is_given_up)
        return fail_set(fail, -EAGAIN, "%s: the engine aborted the call, or failed at it", streamed->engine->url);
    const bool is_finished = streamed->fold.is_finished || streamed->fold.is_whole || ids->count >= max_tokens ||
                             (ids->count > 0 && tokens_have(&streamed->engine->info.ends, ids->ids[ids->count - 1]));
    return is_finished ? 0 : fail_set(fail, -EIO, "%s: the stream ended before the turn", streamed->engine->url);
}

static int parse(struct streamed *streamed, struct streamed_answer *ret, struct fail *fail)
{
    struct buffer *text = &ret->whole.text;
    fold_write(&streamed->fold, text);
    ret->is_stream = !streamed->fold.is_whole;
    ret->tokens = streamed->fold.sampled;
    streamed->fold.sampled = (struct sampled_tokens){0};
    return text->failed ? fail_memory(fail) : json_doc_parse(buffer_peek(text), &ret->whole.doc, fail);
}

/* What came before it broke off; nothing where that cannot be read. */
static void parse_begun(struct streamed *streamed, struct streamed_answer *ret)
{
    struct fail unread;
    if (streamed->fold.sampled.ids.count == 0 || parse(streamed, ret, &unread) == 0)
        return;
    streamed_answer_finish(ret);
    *ret = (struct streamed_answer){0};
}

static int sample(struct engine *engine, struct streamed *streamed, const struct http_api_call *call,
                  struct streamed_answer *ret, struct fail *fail)
{
    const struct http_hearer hearer = {.hear = on_bytes, .arg = streamed};
    int error = http_api_hear(engine, call, &hearer, fail);
    if (streamed->error < 0)
        error = fail_set(fail, streamed->error, "%s%s: %s", engine->url, call->path, streamed->fail.text);
    if (error == 0)
        error = check_finished(streamed, call->tokens, fail);
    if (error < 0) {
        parse_begun(streamed, ret);
        return error;
    }
    if (!streamed->teller->listener)
        note_answer(streamed);
    return parse(streamed, ret, fail);
}

int streamed_sample(struct engine *engine, const struct http_api_call *call, const struct fold_form *form,
                    struct teller *teller, struct streamed_answer *ret, struct fail *fail)
{
    struct streamed streamed = {
        .engine = engine, .teller = teller, .fold = {.form = form, .sampled.most = call->tokens}};
    if (teller->calls++ > 0 && !engine->tokenizer)
        teller->is_held = true; /* the next call's text may be in other pieces than this one's */
    const int error = sample(engine, &streamed, call, ret, fail);
    fold_finish(&streamed.fold);
    return error;
}
