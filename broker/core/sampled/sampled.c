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
    while (at != head && container_of(at, struct sampled, link)->row.number > sampled->row.number)
        at = at->prev;
    list_insert(&sampled->link, at, at->next);
    sampled->row.state = state;
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
    sampled->row.samples = group->samples;
    sampled->row.number = ++sampler->row.submitted;
    sampler->is_changed = true;
    enter(sampled, SAMPLED_HELD);
    sampled_join(sampled, group);
    sampled_note(core, sampled);
    return sampled;
}

static bool need(struct core *core, struct sampled *sampled)
{
    if (!heap_put(&sampled->sampler->needed, &sampled->needed, (int64_t)sampled->row.first_seq))
        core->failed = true;
    return !core->failed;
}

struct sampled *sampled_restore(struct core *core, const struct core_sampled *row)
{
    struct stream *stream = stream_find(core, row->stream);
    struct sampler *sampler = stream ? stream->sampler : NULL;
    if (!sampler || row->state >= SAMPLED_STATES || row->verdict >= SAMPLER_VERDICTS || !row->group.len ||
        row->first_seq > stream->head || row->number > sampler->row.submitted)
        return NULL;
    struct sampled *sampled = create(core, sampler, row->group);
    if (!sampled)
        return NULL;
    sampled->row = *row;
    sampled->row.stream = sampled->row.group = slice_of(NULL, 0);
    enter(sampled, (enum sampled_state)row->state);
    sampler->row.total[SAMPLER_KEPT] += row->state == SAMPLED_CURRENT;
    const bool is_needed = sampled->row.first_seq && !sampled->row.is_forgotten && row->state != SAMPLED_DROPPED;
    return !is_needed || need(core, sampled) ? sampled : NULL;
}

void sampled_move(struct core *core, struct sampled *sampled, enum sampled_state state)
{
    list_remove(&sampled->link);
    sampled->sampler->counts[sampled->row.state]--;
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
    sampler->counts[sampled->row.state]--;
    free(sampled);
}

/* ---- what happens ----------------------------------------------------------------------- */

static struct sampled *sampled_of(const struct job *job) { return job->group->work->sampled; }

void sampled_count_tokens(struct core *core, const struct job *job, uint64_t tokens)
{
    struct sampled *sampled = sampled_of(job);
    if (!sampled || !tokens)
        return;
    sampled->row.tokens += tokens;
    sampled_note(core, sampled);
}

void sampled_note_version(struct core *core, const struct job *job, uint64_t version)
{
    struct sampled *sampled = sampled_of(job);
    if (!sampled || !version || (sampled->row.oldest_version && sampled->row.oldest_version <= version))
        return;
    sampled->row.oldest_version = version;
    sampled_note(core, sampled);
}

static void note_reward(struct sampled *sampled, double reward)
{
    if (!sampled->row.scored || reward < sampled->row.least)
        sampled->row.least = reward;
    if (!sampled->row.scored || reward > sampled->row.most)
        sampled->row.most = reward;
    sampled->row.sum += reward;
    sampled->row.scored++;
}

void sampled_note_end(struct core *core, const struct rollout *rollout, bool is_cancelled, const double *raw_reward)
{
    struct sampled *sampled = sampled_of(&rollout->job);
    if (!sampled)
        return;
    sampled->row.ended++;
    sampled->row.cancelled += is_cancelled;
    if (raw_reward)
        note_reward(sampled, *raw_reward);
    if (!sampled->row.first_seq) {
        sampled->row.first_seq = rollout->seq;
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
    if (!sampled || sampled->sampler->row.is_closing)
        return false;
    const struct sampler_rule *rule = &sampled->sampler->row.rule;
    if (sampled->row.replaced >= (rule->has_replace_max ? rule->replace_max : sampled->row.samples))
        return false;
    sampled->row.replaced++;
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
        sampled->row.is_forgotten = sampler->is_spoiled = true;
        sampled_note(core, sampled);
    }
}

void samplers_note_version(struct core *core)
{
    struct sampler *sampler;
    LIST_EACH(sampler, &core->samplers, link)
        if (sampler->row.rule.has_staleness) {
            sampler->is_spoiled = true;
            sampler_note(core, sampler);
        }
}
