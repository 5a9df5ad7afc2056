/*
 * core_model_sampler.h - samplers in the simulated world: the ledger's rows of them, and what a trainer hears.
 */
#ifndef SLUICE_TESTS_BROKER_CORE_CORE_MODEL_SAMPLER_H
#define SLUICE_TESTS_BROKER_CORE_CORE_MODEL_SAMPLER_H

#include <jansson.h>

#define must(held) assert_true(held)
#include "tests/broker/ledger/row_samplers.h"

enum { STANDING_MAX = 4096 };

/* Each group is in one column of the account: in the batch, or dropped by one verdict. */
static inline void check_account(struct slice json)
{
    json_t *batch = json_loadb((const char *)json.data, json.len, 0, NULL);
    json_int_t finished, kept, unlisted;
    json_t *groups, *dropped;
    must(json_unpack(batch, "{s:{s:I,s:I},s:o,s:o,s:I}", "account", "finished", &finished, "kept", &kept, "groups",
                     &groups, "dropped", &dropped, "dropped_unlisted", &unlisted) == 0);
    must(kept == (json_int_t)json_array_size(groups));
    must(finished - kept == (json_int_t)json_array_size(dropped) + unlisted);
    json_decref(batch);
}

static inline void hear_batch(struct row_sampler *sampler, struct slice bytes)
{
    struct msg_sampler_batch in;
    assert_true(message_decode(MSG_sampler_batch, bytes, &in, NULL));
    check_account(in.json);
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
