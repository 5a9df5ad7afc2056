/*
 * core_model_sampler.h - samplers in the simulated world: the ledger's rows of them, and what a trainer hears.
 */
#ifndef SLUICE_TESTS_BROKER_CORE_CORE_MODEL_SAMPLER_H
#define SLUICE_TESTS_BROKER_CORE_CORE_MODEL_SAMPLER_H

#define must(held) assert_true(held)
#include "tests/broker/ledger/row_samplers.h"

enum { STANDING_MAX = 4096 };

static inline void hear_batch(struct row_sampler *sampler, struct slice bytes)
{
    struct msg_sampler_batch in;
    assert_true(message_decode(MSG_sampler_batch, bytes, &in, NULL));
    check_batch(sampler, &in);
}

/* Where a stream's sampler stands, as the last effect answers: the same before a restart and after it. */
static inline void read_standing(const struct core *core, char ret[STANDING_MAX])
{
    const struct effects effects = core_effects(core);
    const struct effect *last = effects.count ? &effects.items[effects.count - 1] : NULL;
    enum message_id id = MESSAGE_COUNT;
    struct msg_sampler_state in;
    ret[0] = '\0';
    if (!last || last->kind != SEND_CLIENT || !message_peek(last->bytes, &id, NULL) || id != MSG_sampler_state)
        return;
    assert_true(message_decode(id, last->bytes, &in, NULL));
    put_text(ret, STANDING_MAX, in.json);
    *strstr(ret, "\"wanted\"") = '\0'; /* that of a batch that is asked for is asked again */
}

#endif
