#include "workers/agents/proxy/ear.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "workers/agents/formats/reading.h"
#include "workers/agents/proxy/hearing.h"
#include "workers/engines/engine.h"

/* ---- the end of a prompt --------------------------------------------------------------------------- */

enum { LOOK_TOKENS = 16 }; /* "<think>" may be one, or seven */

static bool opens_thinking(const char *text)
{
    const char *tag = NULL;
    for (const char *at = text; (at = strstr(at, THINK_TAG)); at += strlen(THINK_TAG))
        tag = at;
    return tag && !*skip_blanks(tag + strlen(THINK_TAG));
}

static int look(struct proxy *proxy, const struct tokens *prompt, bool *ret, struct fail *fail)
{
    AUTO_BUFFER said = {0};
    const size_t count = prompt->count < LOOK_TOKENS ? prompt->count : LOOK_TOKENS;
    const struct tokens end = {.ids = prompt->ids + prompt->count - count, .count = count};
    const int error = model_refuse_another(&proxy->model, engine_say(proxy->model.run->engine, &end, &said, fail),
                                           fail);
    AUTO_FREE char *text = error == 0 ? buffer_take_str(&said) : NULL;
    if (error == 0 && !text)
        return fail_memory(fail);
    *ret = error == 0 && opens_thinking(text);
    return error;
}

int ear_look_at_prompt(struct proxy *proxy, const struct tokens *prompt, bool *ret_opened, struct fail *fail)
{
    struct prompt_end *end = &proxy->end;
    const size_t count = prompt->count < PROMPT_END_TOKENS ? prompt->count : PROMPT_END_TOKENS;
    const uint32_t *ids = prompt->ids + prompt->count - count;
    const bool is_known = end->count == count && memcmp(end->ids, ids, count * sizeof(*ids)) == 0;
    const int error = is_known ? 0 : look(proxy, prompt, &end->is_opened, fail);
    if (error < 0)
        return error;
    end->count = count;
    memcpy(end->ids, ids, count * sizeof(*ids));
    *ret_opened = end->is_opened;
    return 0;
}

/* ---- a turn ---------------------------------------------------------------------------------------- */

struct ear {
    const struct proxy_listener *listener;
    struct hearing hearing;
    struct reply reply; /* what is known of it */
    char *thinking;     /* all of it, once the text has begun */
};

static void on_heard(void *arg, struct slice piece)
{
    struct ear *ear = arg;
    struct hearing_news news;
    if (!hearing_take(&ear->hearing, piece, &news) || news.thinking.len + news.text.len == 0)
        return;
    const struct slice thinking = hearing_thinking(&ear->hearing);
    if (news.text.len > 0 && thinking.data && !ear->thinking)
        ear->thinking = strndup((const char *)thinking.data, thinking.len);
    ear->reply.thinking = ear->thinking;
    ear->listener->heard(ear->listener->arg, &ear->reply, news.thinking, news.text);
}

int ear_sample(struct proxy *proxy, const struct ear_turn *turn, struct model_turn *ret, struct fail *fail)
{
    struct ear ear = {.listener = turn->listener, .reply = *turn->reply};
    const struct engine_listener listener = {.heard = on_heard, .arg = &ear};
    if (!turn->listener)
        return model_sample(&proxy->model, turn->prompt, ret, fail);
    hearing_begin(&ear.hearing, turn->box->count > 0 ? proxy->telling.format : NULL, turn->is_opened);
    ret->listener = &listener;
    const int error = model_sample(&proxy->model, turn->prompt, ret, fail);
    ret->listener = NULL;
    hearing_finish(&ear.hearing);
    free(ear.thinking);
    return error;
}
