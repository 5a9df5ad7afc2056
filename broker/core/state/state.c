/* What all files of the core use: memory, times, names and finds. No decision. */
#include "broker/core/state/state.h"

#include <assert.h>
#include <stdlib.h>

/* ---- memory ------------------------------------------------------------------------ */

void *core_alloc(struct core *core, size_t count, size_t size)
{
    void *memory = calloc(count, size);
    if (!memory)
        core->failed = true;
    return memory;
}

char *core_strdup(struct core *core, struct slice text)
{
    char *copy = text.len ? core_alloc(core, 1, text.len + 1) : NULL;
    if (copy)
        memcpy(copy, text.data, text.len);
    return copy;
}

/* ---- times and numbers ------------------------------------------------------------- */

uint32_t core_ms(uint64_t ms) { return ms < UINT32_MAX ? (uint32_t)ms : UINT32_MAX; }

int64_t core_clock_ms(const struct core *core)
{
    int64_t clock_ms = core->now_ms + core->clock_offset_ms;
    return clock_ms > 0 ? clock_ms : 0;
}

int64_t core_age_ms(const struct core *core, uint64_t clock_ms)
{
    uint64_t now_ms = (uint64_t)core_clock_ms(core);
    return clock_ms < now_ms ? (int64_t)(now_ms - clock_ms) : 0;
}

void stream_renew(struct core *core, struct stream *stream) { stream->renewed_ms = core->now_ms; }

void stream_heard(struct core *core, const struct call *call, struct stream *stream)
{
    if (slice_equal(call->caller->name, client_name(stream->owner)))
        stream_renew(core, stream);
}

uint64_t fencing_token_newest(const struct core *core) { return (core->epoch << 32) + core->dispatches; }

bool fencing_token_is_possible(const struct core *core, uint64_t token) { return token <= fencing_token_newest(core); }

/* ---- names ------------------------------------------------------------------------- */

struct slice worker_id(const struct worker *worker) { return slice_of(worker->id, worker->id_len); }

struct slice worker_key(const struct worker *worker) { return slice_from_str(worker->key); }

struct slice engine_url(const struct engine *engine)
{
    return engine ? slice_of(engine->url, engine->url_len) : slice_of(NULL, 0);
}

struct slice image_name(const struct image *image) { return slice_of(image->name, image->name_len); }

struct slice stream_name(const struct stream *stream) { return slice_of(stream->name, stream->name_len); }

struct slice client_name(const struct client *client) { return slice_of(client->name, client->name_len); }

struct slice policy_name(struct slice name)
{
    static const char usual[] = "default";
    return name.len ? name : slice_from_str(usual);
}

struct slice group_id(const struct group *group) { return slice_of(group->id, group->id_len); }

/* ---- finds ------------------------------------------------------------------------- */

struct worker *worker_find(const struct core *core, struct slice id) { return table_find(&core->workers_by_id, id); }

struct engine *engine_find(const struct core *core, struct slice url)
{
    struct engine *engine;
    LIST_EACH(engine, &core->engines, link)
        if (slice_equal(engine_url(engine), url))
            return engine;
    return NULL;
}

struct policy *policy_find(const struct core *core, struct slice name)
{
    struct policy *policy;
    LIST_EACH(policy, &core->policies, link)
        if (slice_is(policy_name(name), policy->name))
            return policy;
    return NULL;
}

struct client *client_find(const struct core *core, struct slice name)
{
    return table_find(&core->clients_by_name, name);
}

struct stream *stream_find(const struct core *core, struct slice name)
{
    return table_find(&core->streams_by_name, name);
}

struct group *group_find(const struct core *core, struct slice id) { return table_find(&core->groups, id); }

/* A sample's number as it is written in names: no sign, no leading zero. */
static bool parse_sample(struct slice text, uint32_t *ret)
{
    uint32_t value = 0;
    if (text.len == 0 || text.len > 4 || (text.len > 1 && text.data[0] == '0'))
        return false;
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return false;
        value = 10 * value + (text.data[i] - '0');
    }
    *ret = value;
    return true;
}

bool rollout_find(const struct core *core, struct slice name, struct group **ret_group, uint32_t *ret_sample)
{
    const uint8_t *slash = name.len ? memchr(name.data, '/', name.len) : NULL;
    if (!slash)
        return false;
    size_t id_len = (size_t)(slash - name.data);
    struct group *group = group_find(core, slice_of(name.data, id_len));
    uint32_t sample;
    if (!group || !parse_sample(slice_of(slash + 1, name.len - id_len - 1), &sample) || sample >= group->samples)
        return false;
    *ret_group = group;
    *ret_sample = sample;
    return true;
}

struct job *job_find(struct core *core, struct slice name)
{
    const uint8_t *colon = name.len ? memchr(name.data, ':', name.len) : NULL;
    enum stage stage;
    if (!colon || !stage_parse(slice_of(name.data, (size_t)(colon - name.data)), &stage))
        return NULL;
    struct slice rest = slice_of(colon + 1, name.len - (size_t)(colon + 1 - name.data));
    struct group *group = stage == STAGE_INIT ? group_find(core, rest) : NULL;
    uint32_t sample = 0;
    if (stage != STAGE_INIT && !rollout_find(core, rest, &group, &sample))
        return NULL;
    if (!group || !group->work)
        return NULL;
    struct job *job = stage == STAGE_INIT ? &group->work->init : rollout_job(group->work, sample);
    return job->stage == stage && job->place != PLACE_NONE ? job : NULL;
}

/* ---- what a job or an engine is ---------------------------------------------------- */

const struct job_course job_course_empty;

struct job_course *job_course(struct job *job)
{
    assert(job->course != &job_course_empty);
    return (struct job_course *)job->course;
}

struct job_course *job_course_open(struct core *core, struct job *job)
{
    if (job->course == &job_course_empty) {
        struct job_course *course = core_alloc(core, 1, sizeof(*course));
        if (!course)
            return NULL;
        job->course = course;
    }
    return job_course(job);
}

struct rollout *job_rollout(struct job *job)
{
    return job->stage == STAGE_INIT ? NULL : container_of(job, struct rollout, job);
}

bool rollout_has_ended(const struct group_work *work, uint32_t sample)
{
    return work->rollouts && work->rollouts[sample].ended;
}

struct job *rollout_job(struct group_work *work, uint32_t sample)
{
    return work->init_done ? &work->rollouts[sample].job : &work->init;
}

uint64_t rollout_seq(const struct group *group, uint32_t sample)
{
    if (group->work)
        return group->work->rollouts ? group->work->rollouts[sample].seq : 0;
    return group->seqs ? group->seqs[sample] : 0;
}

struct policy *job_policy(const struct job *job)
{
    const struct group_work *work = job->group->work;
    if (job->stage == STAGE_EVAL)
        return work->judging ? work->judging->policy : NULL;
    return job->stage == STAGE_RUN ? work->policy : NULL;
}

struct engine *job_engine(const struct job *job)
{
    const struct judging *judging = job->group->work->judging;
    if (job->stage == STAGE_EVAL)
        return judging ? judging->engines[job->sample] : NULL;
    return job->stage == STAGE_RUN ? job->group->work->rollouts[job->sample].engine : NULL;
}

bool job_needs_engine(const struct job *job) { return job_policy(job) != NULL; }

struct need *job_need(const struct core *core, const struct job *job)
{
    const struct group_work *work = job->group->work;
    return core->needs[job->stage == STAGE_RUN ? work->run_need : job->stage == STAGE_EVAL ? work->eval_need : 0];
}

bool engine_is_paused(const struct engine *engine) { return engine->calls[0] != '\0'; }

bool engine_is_silent(const struct engine *engine) { return engine->probe.unanswered >= PROBES_SILENT; }

void engine_note(struct core *core, struct engine *engine, enum engine_note note)
{
    engine->notes |= note;
    if (list_is_empty(&engine->noted))
        list_push_back(&core->noted_engines, &engine->noted);
}
