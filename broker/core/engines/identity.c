/* What engines of one policy have in common: the digests of their tokenizer and chat template. */
#include "broker/core/engines/identity.h"
#include "broker/core/state/state.h"

#include <stdio.h>

bool identity_is_known(const struct identity *identity) { return identity->template[0] != '\0'; }

bool identity_is_same(const struct identity *a, const struct identity *b)
{
    return strcmp(a->tokenizer, b->tokenizer) == 0 && strcmp(a->template, b->template) == 0;
}

static void copy(char *to, struct slice text)
{
    size_t len = text.len < DIGEST_MAX ? text.len : DIGEST_MAX;
    if (len)
        memcpy(to, text.data, len);
    to[len] = '\0';
}

struct identity identity_of(struct slice tokenizer, struct slice template)
{
    struct identity identity;
    copy(identity.tokenizer, tokenizer);
    copy(identity.template, template);
    return identity;
}

bool engine_is_unprobed(const struct core *core, const struct engine *engine)
{
    return engine->policy && identity_is_known(&engine->policy->identity) && !identity_is_known(&engine->identity) &&
           !engine->has_answered && core->settings.engine_probe_interval_ms;
}

struct slice engine_difference(struct core_text *ret, const struct engine *engine)
{
    const struct identity *has = &engine->identity, *wants = &engine->policy->identity;
    bool is_tokenizer = strcmp(has->tokenizer, wants->tokenizer) != 0;
    bool is_template = strcmp(has->template, wants->template) != 0;
    int len = snprintf(ret->text, sizeof(ret->text), "its %s%s%s %s not the policy's (%s)",
                       is_tokenizer ? "tokenizer" : "", is_tokenizer && is_template ? " and its " : "",
                       is_template ? "chat template" : "", is_tokenizer && is_template ? "are" : "is",
                       engine->policy->name);
    return slice_of(ret->text, (size_t)len);
}
