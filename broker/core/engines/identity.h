/*
 * core/engines/identity.h - what a policy's engines have in common.
 */
#ifndef SLUICE_BROKER_CORE_ENGINES_IDENTITY_H
#define SLUICE_BROKER_CORE_ENGINES_IDENTITY_H

#include "broker/core/engines/engines.h"

struct identity identity_of(struct slice tokenizer, struct slice template);
bool identity_is_known(const struct identity *identity);
bool identity_is_same(const struct identity *a, const struct identity *b);
/* It is to be probed before any run goes there. */
bool engine_is_unprobed(const struct core *core, const struct engine *engine);
struct core_text {
    char text[160];
};
/* What differs, of one that is_other. */
struct slice engine_difference(struct core_text *ret, const struct engine *engine);

#endif
