#include "workers/engines/dialects/streamed.h"

#include <errno.h>

#include "common/base/cleanup.h"
#include "workers/tokenizer/tokenizer.h"

struct streamed {
    const struct engine *engine;
    struct teller *teller;
    struct fold fold;
    int error; /* of what came */
    struct fail fail;
};

static bool has_end(const struct streamed *streamed, const struct tokens *ids)
{
    for (size_t i = 0; i < ids->count; i++)
        if (tokens_have(&streamed->engine->info.ends, ids->ids[i]))
            return true;
    return false;
}

static void on_event(void *arg, const struct fold_event *event)
{
    const struct streamed *streamed = arg;
    const struct tokenizer *tokenizer = streamed->engine->tokenizer;
    AUTO_BUFFER said = {0};
    if (event->is_end || has_end(streamed, &event->ids) ||
        (tokenizer && !tokenizer_decode(tokenizer, &event->ids, &said))) {
        teller_tell(streamed->teller);
        streamed->teller->is_held = true;
    }
    teller_take(streamed->teller, tokenizer ? buffer_peek(&said) : event->text);
}

static bool on_bytes(void *arg, struct slice bytes)
{
    struct streamed *streamed = arg;
    streamed->error = fold_take(&streamed->fold, bytes, on_event, streamed, &streamed->fail);
    teller_tell(streamed->teller); /* of events that came together at once */
    return streamed->error == 0;
}

/* Some servers end a stream without a word where its last event would have no token. */
static int check_finished(const struct streamed *streamed, uint64_t max_tokens, struct fail *fail)
{
    const struct tokens *ids = &streamed->fold.ids;
    if (streamed->fold.is_given_up)
        return fail_set(fail, -EAGAIN, "%s: the engine aborted the call, or failed at it", streamed->engine->url);
    const bool is_finished = streamed->fold.is_finished || streamed->fold.is_whole || ids->count >= max_tokens ||
                             (ids->count > 0 && tokens_have(&streamed->engine->info.ends, ids->ids[ids->count - 1]));
    return is_finished ? 0 : fail_set(fail, -EIO, "%s: the stream ended before the turn", streamed->engine->url);
}

static int parse(const struct streamed *streamed, struct call_answer *ret, struct fail *fail)
{
    fold_write(&streamed->fold, &ret->text);
    return ret->text.failed ? fail_memory(fail) : json_doc_parse(buffer_peek(&ret->text), &ret->doc, fail);
}

/* What came before it broke off; nothing where that cannot be read. */
static void parse_begun(const struct streamed *streamed, struct call_answer *ret)
{
    struct fail unread;
    if (streamed->fold.ids.count == 0 || parse(streamed, ret, &unread) == 0)
        return;
    call_answer_finish(ret);
    *ret = (struct call_answer){0};
}

static int sample(struct engine *engine, struct streamed *streamed, const struct http_api_call *call,
                  struct call_answer *ret, struct fail *fail)
{
    const struct http_hearer hearer = {.hear = on_bytes, .arg = streamed};
    int error = http_api_hear(engine, call, &hearer, fail);
    if (streamed->error < 0)
        error = fail_set(fail, streamed->error, "%s%s: %s", engine->url, call->path, streamed->fail.text);
    if (error == 0)
        error = check_finished(streamed, call->tokens, fail);
    if (error == 0)
        return parse(streamed, ret, fail);
    parse_begun(streamed, ret);
    return error;
}

int streamed_sample(struct engine *engine, const struct http_api_call *call, const struct fold_form *form,
                    struct teller *teller, struct call_answer *ret, struct fail *fail)
{
    struct streamed streamed = {.engine = engine, .teller = teller, .fold = {.form = form}};
    if (teller->calls++ > 0 && !engine->tokenizer)
        teller->is_held = true; /* the next call's text may be in other pieces than this one's */
    const int error = sample(engine, &streamed, call, ret, fail);
    fold_finish(&streamed.fold);
    return error;
}
