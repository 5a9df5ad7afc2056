#include "workers/engines/dialects/text_check.h"

#include <errno.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "common/base/utf8.h"
#include "workers/engines/template/encoding.h"
#include "workers/engines/dialects/reply_check.h"
#include "workers/engines/dialects/special_token_escape.h"
#include "workers/tokenizer/tokenizer.h"

static int out_of_memory(struct fail *fail)
{
    return fail_set(fail, -ENOMEM, "out of memory");
}

/* SentencePiece's decoders leave out the blank that a text begins with. */
static bool says(const struct engine *engine, const char *answer, const char *ids_say)
{
    const enum reply_blanks blanks = engine->info.drops_blanks ? BLANKS_IGNORED : BLANKS_COUNT;
    const struct slice said = slice_from_str(ids_say);
    return reply_says(slice_from_str(answer), said, blanks) ||
           (*answer == ' ' && reply_says(slice_from_str(answer + 1), said, blanks));
}

/* By the worker's own tokenizer; false: it has none, or another text than the answer. */
static bool say_here(const struct engine *engine, const struct tokens *ids,
                     struct generation *generation)
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
    return *ret ? 0 : out_of_memory(fail);
}

/* Some servers show the token that ended the turn. */
static int check_whole(struct engine *engine, const struct generation *generation,
                       const struct tokens *spoken, struct fail *fail)
{
    AUTO_FREE char *whole = NULL;
    if (spoken->count == generation->sampled.count)
        return reply_other_text(fail);
    int error = ask(engine, &generation->sampled, &whole, fail);
    if (error < 0)
        return error;
    return says(engine, generation->text, whole) ? 0 : reply_other_text(fail);
}

static int take_asked(struct engine *engine, const struct tokens *spoken,
                      struct generation *generation, struct fail *fail)
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

int text_check_check(struct engine *engine, struct generation *generation, struct fail *fail)
{
    struct tokens spoken = generation->sampled; /* borrowed */
    spoken.count -= strcmp(generation->finish, "stop") == 0;
    int error = engine_learn_tokenizer(engine, fail);
    if (error < 0 || (generation->text && say_here(engine, &spoken, generation)))
        return error;
    return take_asked(engine, &spoken, generation, fail);
}
