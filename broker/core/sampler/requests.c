#include "broker/core/sampler/requests.h"
#include "broker/core/sampled/sampled.h"
#include "broker/core/sampler/sampling.h"
#include "broker/core/state/effects.h"
#include "broker/core/state/state.h"
#include "broker/core/streams/owners.h"
#include "broker/core/streams/streams.h"

#include <jansson.h>
#include <stdlib.h>

enum { WINDOW_BATCHES = 8 }; /* window, where it is not said */

/* The sampler of this stream; refuses, NULL, if there is none or it is not the caller's. */
static struct sampler *find(struct core *core, const struct call *call, struct slice name)
{
    struct stream *stream = owners_find(core, call, name);
    if (!stream)
        return NULL;
    stream_heard(core, call, stream);
    if (!stream->sampler)
        send_refused(core, call, REFUSAL_UNKNOWN_STREAM, "stream", 0,
                     "the stream %s has no sampler: open one (sampler.open, sluice sampler open)", stream->name);
    return stream->sampler;
}

static void send_state(struct core *core, const struct call *call, const struct sampler *sampler)
{
    json_t *object = sampler_describe(core, sampler);
    char *text = json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(SAMPLER_DIGITS));
    json_decref(object);
    core->failed |= !text;
    struct msg_sampler_state state = {.tag = call->tag,
                                      .stream = stream_name(sampler->stream),
                                      .batch = sampler->row.batch,
                                      .submitted = sampler->row.submitted,
                                      .json = slice_from_str(text)};
    if (text)
        send_client(core, call->client, MSG_sampler_state, &state);
    free(text);
}

void handle_sampler_get(struct core *core, const struct call *call)
{
    const struct msg_sampler_get *in = call->in;
    const struct sampler *sampler = find(core, call, in->stream);
    if (sampler)
        send_state(core, call, sampler);
}

/* ---- sampler.open ------------------------------------------------------------------------ */

static struct sampler_rule rule_of(const struct msg_sampler_open *in)
{
    const uint64_t window = WINDOW_BATCHES * in->groups, most = MESSAGE_MAX(sampler_open, window);
    const bool cancels = in->has_surplus && slice_is(in->surplus, "cancel");
    return (struct sampler_rule){
        .groups = in->groups,
        .has_staleness = in->has_staleness,
        .staleness = in->has_staleness ? in->staleness : 0,
        .window = in->has_window  ? in->window
                  : window < most ? window
                                  : most,
        .ahead = in->has_ahead ? in->ahead : !cancels,
        .over_sample = in->has_over_sample ? in->over_sample : 0,
        .early = in->has_early ? in->early : 0,
        .has_replace_max = in->has_replace_max,
        .replace_max = in->has_replace_max ? in->replace_max : 0,
        .keeps_uniform = in->has_filter && slice_is(in->filter, "none"),
        .cancels_surplus = cancels,
    };
}

/* Whether the rule makes sense; says why not. */
static bool admit_rule(struct core *core, const struct call *call, const struct sampler_rule *rule)
{
    const struct msg_sampler_open *in = call->in;
    if (in->has_filter && !slice_is(in->filter, "mixed") && !slice_is(in->filter, "none")) {
        send_refused(core, call, REFUSAL_BAD_NAME, "filter", 0, "sampler.open: filter '%.*s' is not one of mixed, none",
                     SLICE_ARG(in->filter));
        return false;
    }
    if (in->has_surplus && !slice_is(in->surplus, "carry") && !slice_is(in->surplus, "cancel")) {
        send_refused(core, call, REFUSAL_BAD_NAME, "surplus", 0,
                     "sampler.open: surplus '%.*s' is not one of carry, cancel", SLICE_ARG(in->surplus));
        return false;
    }
    if (rule->window < rule->groups) {
        send_refused(core, call, REFUSAL_TOO_SMALL, "window", 0,
                     "sampler.open: a window of %llu has no room for a batch of %llu groups; make it larger",
                     (unsigned long long)rule->window, (unsigned long long)rule->groups);
        return false;
    }
    if (rule->cancels_surplus && rule->ahead) {
        send_refused(core, call, REFUSAL_AMBIGUOUS, "ahead", 0,
                     "sampler.open: surplus cancel ends what is made ahead whenever a batch is full; say ahead 0, or "
                     "surplus carry");
        return false;
    }
    return true;
}

/* Whether a sampler may be attached to what is a stream already, or is none yet; says why not. */
static bool admit_stream(struct core *core, const struct call *call, const struct stream *stream)
{
    const struct msg_sampler_open *in = call->in;
    if (!name_is_valid(in->stream)) {
        send_refused(core, call, REFUSAL_BAD_NAME, "stream", 0,
                     "sampler.open: a stream's name holds no '/', blank or control character");
        return false;
    }
    if (core->sampler_count >= SAMPLERS_MAX || (!stream && !owners_have_room(core, call->caller->name))) {
        send_refused(core, call, REFUSAL_QUEUE_FULL, "stream", 0,
                     "no more samplers or streams fit, of yours or of all; use one of those you have, or close one");
        return false;
    }
    if (stream && (stream->pending || stream->head >= stream->first)) {
        send_refused(
            core, call, REFUSAL_NOT_ALLOWED, "stream", 0,
            "%s has %llu rollouts and %llu trajectories of its own; a sampler needs a stream of its own: choose "
            "another name, or acknowledge them first",
            stream->name, (unsigned long long)stream->pending, (unsigned long long)(stream->head + 1 - stream->first));
        return false;
    }
    return true;
}

/* Of whoever sampled before: it is told so when it asks. */
static void take_over(struct core *core, struct sampler *sampler, struct slice trainer)
{
    if (slice_is(trainer, sampler->trainer))
        return;
    sampler_end_wait(core, sampler);
    memset(sampler->trainer, 0, sizeof(sampler->trainer));
    memcpy(sampler->trainer, trainer.data, trainer.len);
}

void handle_sampler_open(struct core *core, const struct call *call)
{
    const struct msg_sampler_open *in = call->in;
    const struct sampler_rule rule = rule_of(in);
    struct stream *stream = stream_find(core, in->stream);
    if (stream && !owners_allow(core, call, stream, "stream"))
        return;
    struct sampler *sampler = stream ? stream->sampler : NULL;
    if (sampler && sampler->row.is_closing) {
        send_refused(core, call, REFUSAL_QUEUE_FULL, "stream", RETRY_AFTER_MS,
                     "the sampler of %s is being closed; try again later", stream->name);
        return;
    }
    if (!admit_rule(core, call, &rule) || (!sampler && !admit_stream(core, call, stream)))
        return;
    stream = stream_intern(core, in->stream, call->caller->name);
    sampler = sampler || !stream ? sampler : sampler_create(core, stream);
    if (!sampler)
        return;
    stream->is_used = true;
    stream_renew(core, stream);
    take_over(core, sampler, in->trainer);
    sampler->row.rule = rule;
    sampler->is_changed = sampler->is_spoiled = true;
    sampler_note(core, sampler);
    send_state(core, call, sampler);
}

/* ---- waiting ------------------------------------------------------------------------------- */

static void wait_for(struct core *core, const struct call *call, struct sampler *sampler, uint64_t wait_ms)
{
    struct sampler_wait *wait = &sampler->wait;
    wait->client = core_alloc(core, 1, call->client.len + 1);
    if (!wait->client)
        return;
    memcpy(wait->client, call->client.data, call->client.len);
    wait->client_len = call->client.len;
    wait->tag = call->tag;
    wait->is_waiting = true;
    if (!heap_put(&core->sampler_waits, &wait->due, core->now_ms + (int64_t)wait_ms))
        core->failed = true;
    sampler_note(core, sampler);
}

/* ---- sampler.next -------------------------------------------------------------------------- */

/* A client sends a request that is not answered again, with the same tag: it waits already. */
static bool is_repeated(const struct sampler *sampler, const struct call *call)
{
    const struct sampler_wait *wait = &sampler->wait;
    return wait->is_waiting && wait->tag == call->tag &&
           slice_equal(call->client, slice_of(wait->client, wait->client_len));
}

static void ask_for_next(struct core *core, const struct call *call, struct sampler *sampler)
{
    const struct msg_sampler_next *in = call->in;
    if (is_repeated(sampler, call))
        return;
    sampler_refuse_wait(core, sampler);
    wait_for(core, call, sampler, in->has_wait_ms ? in->wait_ms : 0);
    sampler->is_asked = true;
}

void handle_sampler_next(struct core *core, const struct call *call)
{
    const struct msg_sampler_next *in = call->in;
    struct sampler *sampler = find(core, call, in->stream);
    if (!sampler)
        return;
    if (!slice_is(in->trainer, sampler->trainer))
        send_refused(core, call, REFUSAL_NOT_ALLOWED, "trainer", 0,
                     "%.*s: the sampler of %s is not yours since %s opened it: one trainer asks at a time; use a "
                     "stream of your own, or stop the other and open it again",
                     SLICE_ARG(in->trainer), sampler->stream->name, sampler->trainer);
    else if (sampler->row.is_closing)
        send_refused(core, call, REFUSAL_NOT_ALLOWED, "stream", 0, "the sampler of %s is being closed",
                     sampler->stream->name);
    else if (in->batch == sampler->row.batch)
        sampler_send_batch(core, sampler, call->client, call->tag);
    else if (in->batch == sampler->row.batch + 1)
        ask_for_next(core, call, sampler);
    else if (!sampler->row.batch)
        send_refused(core, call, REFUSAL_TOO_LARGE, "batch", 0,
                     "%s: batch %llu is asked for, and its sampler has made none yet: ask for batch 1; a sampler that "
                     "was closed and opened again, or another broker's, counts from 1",
                     sampler->stream->name, (unsigned long long)in->batch);
    else
        send_refused(core, call, in->batch > sampler->row.batch ? REFUSAL_TOO_LARGE : REFUSAL_TOO_SMALL, "batch", 0,
                     "%s: the current batch is %llu; ask for it again, or for %llu", sampler->stream->name,
                     (unsigned long long)sampler->row.batch, (unsigned long long)sampler->row.batch + 1);
}

/* ---- sampler.close --------------------------------------------------------------------------- */

void handle_sampler_close(struct core *core, const struct call *call)
{
    const struct msg_sampler_close *in = call->in;
    struct stream *stream = owners_find(core, call, in->stream);
    struct sampler *sampler = stream ? stream->sampler : NULL;
    if (!stream)
        return;
    stream_heard(core, call, stream);
    if (!sampler) { /* it was closed before, and the answer may have been lost */
        send_done(core, call, 0);
        return;
    }
    if (is_repeated(sampler, call))
        return;
    sampler_end_wait(core, sampler);
    wait_for(core, call, sampler, 0);
    heap_remove(&core->sampler_waits, &sampler->wait.due);
    sampler->is_asked = false;
    sampler->row.is_closing = sampler->is_changed = true;
    sampler->row.cancels |= in->has_cancel && in->cancel;
}
