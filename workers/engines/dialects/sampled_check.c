#include "workers/engines/dialects/sampled_check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "common/base/utf8.h"
#include "workers/engines/dialects/reply_check.h"
#include "workers/engines/dialects/special_token_escape.h"
#include "workers/engines/template/encoding.h"
#include "workers/engines/template/special_tokens.h"
#include "workers/tokenizer/tokenizer.h"

/* ---- the end ----------------------------------------------------------------------------------- */

/* No turn goes on behind its end. */
static int check_middle(const struct tokens *ends, const struct tokens *sampled, struct fail *fail)
{
    for (size_t i = 0; i + 1 < sampled->count; i++)
        if (tokens_have(ends, sampled->ids[i]))
            return fail_set(fail, -EPROTO, "the engine sampled %zu tokens behind token %u, which ends a turn",
                            sampled->count - i - 1, sampled->ids[i]);
    return 0;
}

int sampled_check_end(struct engine *engine, struct generation *generation, struct fail *fail)
{
    if (check_middle(&engine->info.ends, &generation->sampled, fail) < 0)
        return -EPROTO;
    uint32_t last = generation->sampled.ids[generation->sampled.count - 1];
    bool is_end = tokens_have(&engine->info.ends, last);
    if (is_end)
        snprintf(generation->finish, sizeof(generation->finish), "stop");
    if (is_end || strcmp(generation->finish, "stop") != 0)
        return 0;
    int error = engine_is_special(engine, last, &is_end, fail);
    if (error == 0 && !is_end)
        error = fail_set(fail, -EPROTO, "the engine ended a turn with token %u, which is plain text", last);
    if (error == 0 && !tokens_append(&engine->info.ends, &last, 1))
        error = fail_memory(fail);
    return error;
}

/* ---- the text ---------------------------------------------------------------------------------- */

/* SentencePiece's decoders leave out the blank that a text begins with. */
static bool says(const struct engine *engine, const char *answer, const char *ids_say)
{
    const enum reply_blanks blanks = engine->info.drops_blanks ? BLANKS_IGNORED : BLANKS_COUNT;
    const struct slice said = slice_from_str(ids_say);
    return reply_says(slice_from_str(answer), said, blanks) ||
           (*answer == ' ' && reply_says(slice_from_str(answer + 1), said, blanks));
}

/* By the worker's own tokenizer; false: it has none, or another text than the answer. */
static bool say_here(const struct engine *engine, const struct tokens *ids, struct generation *generation)
{
    AUTO_BUFFER bytes = {0}, said = {0};
    if (!engine->tokenizer || !tokenizer_decode(engine->tokenizer, ids, &bytes))
        return false;
    utf8_append_repaired(&said, buffer_peek(&bytes));
    AUTO_FREE char *text = buffer_take_str(&said);
    if (!text || !says(engine, generation->text, text))
        return false;
    free(generation->text);
    generation->text = take_ptr(&text);
    return true;
}

static int ask(struct engine *engine, const struct tokens *ids, char **ret, struct fail *fail)
{
    AUTO_BUFFER text = {0}, repaired = {0};
    int error = ids->count ? special_escape_say(engine, ids, ids->count, &text, fail) : 0;
    if (error < 0)
        return error;
    utf8_append_repaired(&repaired, buffer_peek(&text));
    *ret = buffer_take_str(&repaired);
    return *ret ? 0 : fail_memory(fail);
}

/* Some servers show the token that ended the turn. */
static int check_whole(struct engine *engine, const struct generation *generation, const struct tokens *spoken,
                       struct fail *fail)
{
    AUTO_FREE char *whole = NULL;
    if (spoken->count == generation->sampled.count)
        return reply_other_text(fail);
    int error = ask(engine, &generation->sampled, &whole, fail);
    if (error < 0)
        return error;
    return says(engine, generation->text, whole) ? 0 : reply_other_text(fail);
}

static int take_asked(struct engine *engine, const struct tokens *spoken, struct generation *generation,
                      struct fail *fail)
{
    AUTO_FREE char *text = NULL;
    int error = ask(engine, spoken, &text, fail);
    if (error < 0)
        return error;
    const bool is_same = generation->text && says(engine, generation->text, text);
    if (is_same && engine->info.drops_blanks)
        return 0;
    if (generation->text && !is_same)
        error = check_whole(engine, generation, spoken, fail);
    if (error < 0)
        return error;
    free(generation->text);
    generation->text = take_ptr(&text);
    return 0;
}

static int check_text(struct engine *engine, struct generation *generation, struct fail *fail)
{
    struct tokens spoken = generation->sampled; /* borrowed */
    spoken.count -= strcmp(generation->finish, "stop") == 0;
    int error = engine_learn_tokenizer(engine, fail);
    if (error < 0 || (generation->text && say_here(engine, &spoken, generation)))
        return error;
    return take_asked(engine, &spoken, generation, fail);
}

int sampled_check_turn(struct engine *engine, struct generation *generation, struct fail *fail)
{
    const int ended = sampled_check_end(engine, generation, fail);
    const int error = ended < 0 ? ended : check_text(engine, generation, fail);
    if (ended < 0 || error == -EPROTO)
        generation_finish(generation);
    return error;
}

/* ---- the ids ----------------------------------------------------------------------------------- */

static uint64_t end_of(const struct tokens *ids)
{
    uint64_t end = 0;
    for (size_t i = 0; i < ids->count; i++)
        if (ids->ids[i] >= end)
            end = (uint64_t)ids->ids[i] + 1;
    return end;
}

static void raise_taken(struct engine_info *info, uint64_t end)
{
    if (end > info->ids_taken)
        info->ids_taken = end;
}

/* One token after this one. */
static int show(struct engine *engine, uint32_t id, struct fail *fail)
{
    static const struct task_sampling neutral = {.temperature = 1, .top_p = 1, .seed = 1};
    uint32_t ids[] = {engine->info.plain_id, id};
    const struct tokens prompt = {.ids = ids, .count = 2};
    struct generation got = {0};
    int error = engine->dialect->generate(engine, &prompt, &neutral, 1, 0, &got, fail);
    generation_finish(&got);
    return error;
}

/* Whether it knows that id, which it told; -EPROTO, as `what` it did. Ids below `seen` it has taken. */
static int check_id(struct engine *engine, uint32_t id, uint64_t seen, const char *what, struct fail *fail)
{
    const uint64_t vocabulary = engine->info.vocabulary;
    if (vocabulary > 0)
        return id < vocabulary
                   ? 0
                   : fail_set(fail, -EPROTO, "%s %u of a vocabulary of %llu", what, id, (unsigned long long)vocabulary);
    raise_taken(&engine->info, seen);
    if (id < engine->info.ids_taken)
        return 0;
    struct fail why = {0};
    int error = show(engine, id, &why);
    if (error == 0)
        raise_taken(&engine->info, (uint64_t)id + 1);
    if (error == -EINVAL)
        return fail_set(fail, -EPROTO, "%s %u, which it does not know itself: %.300s", what, id, why.text);
    return error < 0 ? fail_set(fail, error, "%s", why.text) : 0;
}

int sampled_check_ids(struct engine *engine, const struct tokens *prompt, const struct tokens *sampled,
                      struct fail *fail)
{
    const uint64_t end = end_of(sampled);
    return end ? check_id(engine, (uint32_t)(end - 1), end_of(prompt), "the engine sampled token", fail) : 0;
}

int sampled_check_tops(struct engine *engine, const struct tokens *ids, size_t from, const struct token_scores *scores,
                       struct fail *fail)
{
    char what[80];
    uint32_t most = 0;
    size_t place = from;
    for (size_t i = from; i < ids->count; i++) {
        const struct token_scores row = token_scores_from(scores, i - from);
        for (uint32_t k = 0; k < row.top_k && token_scores_want(scores, from, i); k++)
            if (row.top_ids[k] > most) {
                most = row.top_ids[k];
                place = i;
            }
    }
    snprintf(what, sizeof(what), "the engine told as one of the likeliest in place %zu token", place);
    return scores->top_k ? check_id(engine, most, end_of(ids), what, fail) : 0;
}
