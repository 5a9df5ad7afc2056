#include "broker/core/sampled/sampled.h"
#include "broker/core/state/state.h"

#include <stdlib.h>

enum { RECENT_LEAST = 64, RECENT_BATCHES = 4 };

/* ---- life ------------------------------------------------------------------------------- */

struct sampler *sampler_create(struct core *core, struct stream *stream)
{
    struct sampler *sampler = core_alloc(core, 1, sizeof(*sampler));
    if (!sampler)
        return NULL;
    sampler->stream = stream;
    list_init(&sampler->noted);
    list_init(&sampler->changed);
    for (unsigned state = 0; state < SAMPLED_STATES; state++)
        list_init(&sampler->groups[state]);
    list_push_back(&core->samplers, &sampler->link);
    core->sampler_count++;
    stream->sampler = sampler;
    return sampler;
}

void sampler_stop_waiting(struct core *core, struct sampler *sampler)
{
    heap_remove(&core->sampler_waits, &sampler->wait.due);
    free(sampler->wait.client);
    sampler->wait = (struct sampler_wait){.is_waiting = false};
}

void sampler_destroy(struct core *core, struct sampler *sampler)
{
    struct sampled *sampled;
    for (unsigned state = 0; state < SAMPLED_STATES; state++)
        LIST_EACH(sampled, &sampler->groups[state], link) {
            if (sampled->group && sampled->group->work)
                sampled->group->work->sampled = NULL;
            free(sampled);
        }
    sampler_stop_waiting(core, sampler);
    heap_finish(&sampler->needed);
    sampler->stream->sampler = NULL;
    list_remove(&sampler->noted);
    list_remove(&sampler->link);
    core->sampler_count--;
    free(sampler->answer);
    free(sampler);
}

void sampler_note(struct core *core, struct sampler *sampler)
{
    if (list_is_empty(&sampler->noted))
        list_push_back(&core->noted_samplers, &sampler->noted);
}

/* ---- counts ------------------------------------------------------------------------------- */

void sampler_count(struct sampler *sampler, enum sampler_count count, uint64_t by)
{
    sampler->row.since[count] += by;
    sampler->row.total[count] += by;
    sampler->is_changed = true;
}

uint64_t sampler_recent(const struct sampler *sampler)
{
    uint64_t sum = 0;
    for (unsigned verdict = 0; verdict < SAMPLER_VERDICTS; verdict++)
        sum += sampler->row.recent[verdict];
    return sum;
}

void sampler_remember(struct sampler *sampler, enum sampler_count verdict)
{
    const uint64_t batches = RECENT_BATCHES * sampler->row.rule.groups;
    sampler->is_changed = true;
    if (verdict == SAMPLER_CANCELLED || verdict == SAMPLER_FORGOTTEN)
        return;
    sampler->row.recent[verdict]++;
    if (sampler_recent(sampler) < (batches > RECENT_LEAST ? batches : RECENT_LEAST))
        return;
    for (unsigned i = 0; i < SAMPLER_VERDICTS; i++)
        sampler->row.recent[i] /= 2;
}

uint64_t sampler_acceptance(const struct sampler *sampler)
{
    return (sampler->row.recent[SAMPLER_KEPT] + 1) * 1000 / (sampler_recent(sampler) + 2);
}
