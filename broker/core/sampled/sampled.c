#include "broker/core/sampled/sampled.h"
#include "broker/core/state/state.h"

#include <stdlib.h>

/* ---- notes --------------------------------------------------------------------------- */

void sampled_note(struct core *core, struct sampled *sampled)
{
    if (list_is_empty(&sampled->noted))
        list_push_back(&sampled->sampler->changed, &sampled->noted);
    sampler_note(core, sampled->sampler);
}

/* ---- life ----------------------------------------------------------------------------- */

static void enter(struct sampled *sampled, enum sampled_state state)
{
    struct sampler *sampler = sampled->sampler;
    struct list *head = &sampler->groups[state], *at = head->prev;
    while (at != head && container_of(at, struct sampled, link)->number > sampled->number)
        at = at->prev;
    list_insert(&sampled->link, at, at->next);
    sampled->state = (uint8_t)state;
    sampler->counts[state]++;
}

static struct sampled *create(struct core *core, struct sampler *sampler, struct slice id)
{
    struct sampled *sampled = core_alloc(core, 1, sizeof(*sampled) + id.len + 1);
    if (!sampled)
        return NULL;
    memcpy(sampled->id, id.data, id.len);
    sampled->id_len = (uint32_t)id.len;
    sampled->sampler = sampler;
    list_init(&sampled->noted);
    return sampled;
}

void sampled_join(struct sampled *sampled, struct group *group)
{
    sampled->group = group;
    sampled->usual_priority = group->work->priority;
    group->work->sampled = sampled;
}

struct sampled *sampled_add(struct core *core, struct sampler *sampler, struct group *group)
{
    struct sampled *sampled = create(core, sampler, group_id(group));
    if (!sampled)
        return NULL;
    sampled->samples = group->samples;
    sampled->number = ++sampler->submitted;
    sampler->is_changed = true;
    enter(sampled, SAMPLED_HELD);
    sampled_join(sampled, group);
    sampled_note(core, sampled);
    return sampled;
}

static bool need(struct core *core, struct sampled *sampled)
{
    if (!heap_put(&sampled->sampler->needed, &sampled->needed, (int64_t)sampled->first_seq))
        core->failed = true;
    return !core->failed;
}

struct sampled *sampled_restore(struct core *core, const struct core_sampled *row)
{
    struct stream *stream = stream_find(core, row->stream);
    struct sampler *sampler = stream ? stream->sampler : NULL;
    if (!sampler || row->state >= SAMPLED_STATES || row->verdict >= SAMPLER_VERDICTS || !row->group.len ||
        row->first_seq > stream->head || row->number > sampler->submitted)
        return NULL;
    struct sampled *sampled = create(core, sampler, row->group);
    if (!sampled)
        return NULL;
    sampled->number = row->number;
    sampled->verdict = (uint8_t)row->verdict;
    sampled->first_seq = row->first_seq;
    sampled->tokens = row->tokens;
    sampled->oldest_version = row->oldest_version;
    sampled->released_ms = row->released_ms;
    sampled->samples = (uint32_t)row->samples;
    sampled->ended = (uint32_t)row->ended;
    sampled->scored = (uint32_t)row->scored;
    sampled->cancelled = (uint32_t)row->cancelled;
    sampled->replaced = (uint32_t)row->replaced;
    sampled->least = row->least;
    sampled->most = row->most;
    sampled->sum = row->sum;
    sampled->is_low = row->is_low;
    sampled->is_forgotten = row->is_forgotten;
    enter(sampled, (enum sampled_state)row->state);
    const bool is_needed = sampled->first_seq && !sampled->is_forgotten && row->state != SAMPLED_DROPPED;
    return !is_needed || need(core, sampled) ? sampled : NULL;
}

void sampled_move(struct core *core, struct sampled *sampled, enum sampled_state state)
{
    list_remove(&sampled->link);
    sampled->sampler->counts[sampled->state]--;
    enter(sampled, state);
    if (state == SAMPLED_DROPPED)
        heap_remove(&sampled->sampler->needed, &sampled->needed);
    sampled_note(core, sampled);
}

void sampled_remove(struct core *core, struct sampled *sampled)
{
    struct sampler *sampler = sampled->sampler;
    sampled_persist(core, sampled, false);
    heap_remove(&sampler->needed, &sampled->needed);
    list_remove(&sampled->noted);
    list_remove(&sampled->link);
    sampler->counts[sampled->state]--;
    free(sampled);
}

/* ---- what happens ----------------------------------------------------------------------- */

static struct sampled *sampled_of(const struct job *job) { return job->group->work->sampled; }

void sampled_count_tokens(struct core *core, const struct job *job, uint64_t tokens)
{
    struct sampled *sampled = sampled_of(job);
    if (!sampled || !tokens)
        return;
    sampled->tokens += tokens;
    sampled_note(core, sampled);
}

void sampled_note_version(struct core *core, const struct job *job, uint64_t version)
{
    struct sampled *sampled = sampled_of(job);
    if (!sampled || !version || (sampled->oldest_version && sampled->oldest_version <= version))
        return;
    sampled->oldest_version = version;
    sampled_note(core, sampled);
}

static void note_reward(struct sampled *sampled, double reward)
{
    if (!sampled->scored || reward < sampled->least)
        sampled->least = reward;
    if (!sampled->scored || reward > sampled->most)
        sampled->most = reward;
    sampled->sum += reward;
    sampled->scored++;
}

void sampled_note_end(struct core *core, const struct rollout *rollout, bool is_cancelled, const double *raw_reward)
{
    struct sampled *sampled = sampled_of(&rollout->job);
    if (!sampled)
        return;
    sampled->ended++;
    sampled->cancelled += is_cancelled;
    if (raw_reward)
        note_reward(sampled, *raw_reward);
    if (!sampled->first_seq) {
        sampled->first_seq = rollout->seq;
        need(core, sampled);
    }
    sampled_note(core, sampled);
}

void sampled_note_close(struct core *core, struct group *group)
{
    struct sampled *sampled = group->work->sampled;
    if (!sampled)
        return;
    group->work->sampled = NULL;
    sampled->group = NULL;
    sampled_note(core, sampled);
}

bool sampled_replaces(struct core *core, struct group *group)
{
    struct sampled *sampled = group->work->sampled;
    if (!sampled || sampled->sampler->is_closing)
        return false;
    const struct sampler_rule *rule = &sampled->sampler->rule;
    if (sampled->replaced >= (rule->has_replace_max ? rule->replace_max : sampled->samples))
        return false;
    sampled->replaced++;
    sampler_count(sampled->sampler, SAMPLER_REPLACED, 1);
    sampled_note(core, sampled);
    return true;
}

void sampled_note_forgotten(struct core *core, struct stream *stream, uint64_t seq)
{
    struct heap_node *first;
    struct sampler *sampler = stream->sampler;
    while (sampler && (first = heap_peek(&sampler->needed)) && (uint64_t)first->key <= seq) {
        struct sampled *sampled = container_of(first, struct sampled, needed);
        heap_remove(&sampler->needed, first);
        sampled->is_forgotten = sampler->is_spoiled = true;
        sampled_note(core, sampled);
    }
}

void samplers_note_version(struct core *core)
{
    struct sampler *sampler;
    LIST_EACH(sampler, &core->samplers, link)
        if (sampler->rule.has_staleness) {
            sampler->is_spoiled = true;
            sampler_note(core, sampler);
        }
}
