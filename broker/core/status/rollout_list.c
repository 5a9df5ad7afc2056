#include "broker/core/status/rollout_list.h"
#include "broker/core/streams/owners.h"
#include "broker/core/state/effects.h"
#include "broker/core/engines/engines.h"
#include "broker/core/engines/images.h"
#include "broker/core/queue/groups.h"
#include "broker/core/queue/job_progress.h"
#include "broker/core/state/state.h"
#include "broker/core/status/rollout_why.h"
#include "broker/core/status/view.h"

/* ---- those that have not ended --------------------------------------------------------------- */

struct listing {
    struct core *core;
    const struct msg_rollout_list *in;
    json_t *rollouts;
    uint64_t limit, matched;
};

static const char *state_of(const struct job *job)
{
    static const char *const states[] = {
#define X(name, wire) wire,
        PLACES(X)
#undef X
    };
    return states[job->place];
}

static bool passes(bool is_asked, struct slice wanted, struct slice is) { return !is_asked || slice_equal(wanted, is); }

static struct slice image_of(const struct group *group)
{
    const struct image *image = group->work->image;
    return image ? slice_of(image->name, image->name_len) : slice_from_str("host");
}

/* That of its last run. */
static struct slice engine_of(struct job *job)
{
    const struct rollout *rollout = job_rollout(job);
    return engine_url(rollout ? rollout->engine : NULL);
}

static bool matches(const struct listing *list, struct job *job)
{
    const struct msg_rollout_list *in = list->in;
    return passes(in->has_stage, in->stage, slice_from_str(stage_wire(job->stage))) &&
           passes(in->has_state, in->state, slice_from_str(state_of(job))) &&
           passes(in->has_image, in->image, image_of(job->group)) &&
           passes(in->has_engine, in->engine, engine_of(job)) &&
           (!in->has_age_ms || list->core->now_ms - job->since_ms >= (int64_t)in->age_ms);
}

static void add_text(json_t *object, const char *name, struct slice text)
{
    if (text.len)
        json_object_set_new(object, name, status_text(text));
}

static void add_progress(const struct core *core, json_t *object, const struct job *job)
{
    const struct job_progress *progress = job_progress_find(core, job);
    struct why why;
    if (progress && progress->turn)
        json_object_set_new(object, "turn", status_number(progress->turn));
    add_text(object, "tool", slice_from_str(progress ? progress->tool : ""));
    add_text(object, "why", rollout_why(core, job, &why));
}

static void list_rollout(struct listing *list, const struct group *group, uint32_t sample)
{
    struct job *job = rollout_job(group->work, sample);
    char name[JOB_NAME_MAX + 1];
    if (!matches(list, job) || ++list->matched > list->limit)
        return;
    int len = snprintf(name, sizeof(name), "%s/%u", group->id, (unsigned)sample);
    json_t *object = json_object();
    add_text(object, "rollout", slice_of(name, (size_t)len));
    add_text(object, "stream", stream_name(group->stream));
    add_text(object, "task", group_task_id(group));
    add_text(object, "stage", slice_from_str(stage_wire(job->stage)));
    add_text(object, "state", slice_from_str(state_of(job)));
    json_object_set_new(object, "attempt", status_number(job->course->attempt));
    json_object_set_new(object, "for_ms", json_integer(list->core->now_ms - job->since_ms));
    add_text(object, "worker", job->course->worker ? worker_id(job->course->worker) : slice_of(NULL, 0));
    add_text(object, "engine", engine_of(job));
    add_text(object, "image", image_of(group));
    add_progress(list->core, object, job);
    json_array_append_new(list->rollouts, object);
}

static void list_group(struct listing *list, const struct group *group)
{
    for (uint32_t i = 0; group->work && i < group->samples; i++)
        if (!rollout_has_ended(group->work, i))
            list_rollout(list, group, i);
}

static void list_stream(struct listing *list, const struct stream *stream)
{
    const struct group *group;
    LIST_EACH(group, &stream->live, live)
        list_group(list, group);
}

static void send_listing(struct core *core, const struct call *call, struct listing *list)
{
    json_t *answer = json_object();
    json_object_set_new(answer, "matched", status_number(list->matched));
    json_object_set_new(answer, "rollouts", list->rollouts);
    char *bytes = json_dumps(answer, JSON_COMPACT);
    json_decref(answer);
    if (!bytes) {
        core->failed = true;
        return;
    }
    struct msg_rollouts rollouts = {.tag = call->tag, .json = slice_from_str(bytes)};
    send_client(core, call->client, MSG_rollouts, &rollouts);
    free(bytes);
}

static void list_live(struct core *core, const struct call *call, const struct stream *only, const struct group *group)
{
    const struct msg_rollout_list *in = call->in;
    struct listing list = {.core = core, .in = in, .limit = in->has_limit ? in->limit : LIST_LIMIT};
    const struct stream *stream;
    list.rollouts = json_array();
    if (group)
        list_group(&list, group);
    else if (only)
        list_stream(&list, only);
    else
        LIST_EACH(stream, &core->streams, link)
            if (caller_owns(call->caller, stream))
                list_stream(&list, stream);
    send_listing(core, call, &list);
}

/* ---- those that have -------------------------------------------------------------------------- */

/* The numbers that a group's ended rollouts have; false: none that is kept. */
static bool find_numbers(const struct group *group, uint64_t *ret_from, uint64_t *ret_to)
{
    *ret_from = UINT64_MAX;
    *ret_to = 0;
    for (uint32_t i = 0; i < group->samples; i++) {
        const uint64_t seq = rollout_seq(group, i);
        if (seq >= group->stream->first) {
            *ret_from = seq < *ret_from ? seq : *ret_from;
            *ret_to = seq > *ret_to ? seq : *ret_to;
        }
    }
    return *ret_to > 0;
}

static void list_ended(struct core *core, const struct call *call, const struct stream *stream,
                       const struct group *group)
{
    const struct msg_rollout_list *in = call->in;
    const uint64_t age_ms = in->has_age_ms ? in->age_ms : 0, now_ms = (uint64_t)core_clock_ms(core);
    struct core_list list = {.client = effect_copy(core, call->client),
                             .tag = call->tag,
                             .group = effect_copy(core, in->group),
                             .outcome = effect_copy(core, in->outcome),
                             .image = effect_copy(core, in->image),
                             .engine = effect_copy(core, in->engine),
                             .from = stream->first,
                             .to = stream->head,
                             .limit = in->has_limit ? in->limit : LIST_LIMIT,
                             .until_clock_ms = now_ms > age_ms ? now_ms - age_ms : 0};
    if (group && !find_numbers(group, &list.from, &list.to))
        list.from = 1, list.to = 0;
    if (list.to >= list.from + LIST_LOOKED_AT)
        list.from = list.to - LIST_LOOKED_AT + 1;
    struct effect *send = effect_push(core, SEND_LIST);
    send->stream = effect_copy(core, stream_name(stream));
    send->list = list;
}

/* ---- the request ------------------------------------------------------------------------------- */

static bool refuse_list(struct core *core, const struct call *call, const char *field, const char *words)
{
    send_refused(core, call, REFUSAL_BAD_NAME, field, 0, "rollout.list: %s", words);
    return false;
}

static bool are_good(struct core *core, const struct call *call, const struct msg_rollout_list *in)
{
    enum stage stage;
    enum outcome outcome;
    if (in->ended && (in->has_stage || in->has_state))
        return refuse_list(core, call, in->has_stage ? "stage" : "state", "what has ended is in no stage and no state");
    if (!in->ended && in->has_outcome)
        return refuse_list(core, call, "outcome", "what has not ended has no outcome yet");
    if (in->has_stage && !stage_parse(in->stage, &stage))
        return refuse_list(core, call, "stage", "stage must be one of init, run, eval");
    if (in->has_state && !slice_is(in->state, "queued") && !slice_is(in->state, "leased") &&
        !slice_is(in->state, "delayed"))
        return refuse_list(core, call, "state", "state must be one of queued, leased, delayed");
    if (in->has_outcome && !outcome_parse(in->outcome, &outcome))
        return refuse_list(core, call, "outcome", "outcome must be one of ok, agent, task, infra, cancelled");
    if (in->ended && !in->has_stream && !in->has_group)
        return refuse_list(core, call, "stream", "ended rollouts are listed by stream or group: name one");
    return true;
}

void handle_rollout_list(struct core *core, const struct call *call)
{
    const struct msg_rollout_list *in = call->in;
    struct stream *stream = NULL;
    struct group *group = NULL;
    if (!are_good(core, call, in))
        return;
    if (in->has_stream && !(stream = owners_find(core, call, in->stream)))
        return;
    if (in->has_group && !(group = group_find(core, in->group))) {
        send_refused(core, call, REFUSAL_UNKNOWN_GROUP, "group", 0, "there is no group %.*s", SLICE_ARG(in->group));
        return;
    }
    if (group && stream && group->stream != stream) {
        refuse_list(core, call, "group", "the group belongs to another stream");
        return;
    }
    if (group && !owners_allow(core, call, group->stream, "group"))
        return;
    if (in->ended)
        list_ended(core, call, group ? group->stream : stream, group);
    else
        list_live(core, call, stream, group);
}
