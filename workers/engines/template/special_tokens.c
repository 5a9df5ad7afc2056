#include "workers/engines/template/special_tokens.h"

#include <errno.h>
#include <stdlib.h>

#include "common/base/cleanup.h"

/* ---- one token --------------------------------------------------------------------------- */

static int tokenizes_to(struct engine *engine, struct slice text, enum tokenize_mode mode, uint32_t id, bool *ret,
                        struct fail *fail)
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
    if (error == 0 && as_special)
        error = tokenizes_to(engine, buffer_peek(&name), TOKENIZE_PLAIN, id, &as_text, fail);
    *ret = NULL;
    if (error == 0 && as_special && !as_text && !(*ret = buffer_take_str(&name)))
        error = fail_memory(fail);
    return error;
}

int engine_is_special(struct engine *engine, uint32_t id, bool *ret, struct fail *fail)
{
    AUTO_FREE char *name = NULL;
    int error = special_name(engine, id, &name, fail);
    *ret = name != NULL;
    return error;
}

/* ---- those of a text --------------------------------------------------------------------- */

static int compare_ids(const void *a, const void *b)
{
    const uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    return (left > right) - (left < right);
}

static bool has_id(const struct tokens *sorted, uint32_t id)
{
    return sorted->count > 0 && bsearch(&id, sorted->ids, sorted->count, sizeof(id), compare_ids) != NULL;
}

static int add_special(struct engine *engine, uint32_t id, struct specials *ret, struct fail *fail)
{
    char *name = NULL;
    int error = special_name(engine, id, &name, fail);
    if (error < 0 || !name)
        return error;
    if (ret->count == SPECIALS_MAX) {
        free(name);
        return fail_set(fail, -ENOTSUP, "special: more than %d special tokens in one text", SPECIALS_MAX);
    }
    ret->list[ret->count++] = (struct turn_template_special){id, name};
    return 0;
}

static bool is_known(const struct specials *specials, uint32_t id)
{
    for (size_t i = 0; i < specials->count; i++)
        if (specials->list[i].id == id)
            return true;
    return false;
}

/* A special token is one of those that the text has only when it is read with specials. */
int special_tokens_find(struct engine *engine, struct slice text, struct specials *ret, struct fail *fail)
{
    struct tokens with = {0}, without = {0};
    int error = engine->dialect->tokenize(engine, text, TOKENIZE_SPECIALS, &with, fail);
    if (error == 0)
        error = engine->dialect->tokenize(engine, text, TOKENIZE_PLAIN, &without, fail);
    if (with.count > 0)
        qsort(with.ids, with.count, sizeof(*with.ids), compare_ids);
    if (without.count > 0)
        qsort(without.ids, without.count, sizeof(*without.ids), compare_ids);
    for (size_t i = 0; error == 0 && i < with.count; i++)
        if ((i == 0 || with.ids[i] != with.ids[i - 1]) && !has_id(&without, with.ids[i]) && !is_known(ret, with.ids[i]))
            error = add_special(engine, with.ids[i], ret, fail);
    tokens_finish(&with);
    tokens_finish(&without);
    return error;
}

void special_tokens_finish(struct specials *specials)
{
    while (specials->count > 0)
        free(specials->list[--specials->count].name);
}

/* ---- their names ------------------------------------------------------------------------- */

bool special_tokens_occur(const struct specials *specials, struct slice text)
{
    for (size_t i = 0; i < specials->count; i++)
        if (memmem(text.data, text.len, specials->list[i].name, strlen(specials->list[i].name)))
            return true;
    return false;
}
