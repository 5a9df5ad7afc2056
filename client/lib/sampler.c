/* sampler.c - samplers: attached, asked for batches, closed. */
#include "client/lib/client.h"
#include "client/lib/request.h"

#include <errno.h>

static int take_state(struct sluice_client *client, const struct answer *answer, struct sluice_sampler_state *ret)
{
    if (answer->id != MSG_sampler_state)
        return client_unexpected(client, answer);
    const struct msg_sampler_state *in = &answer->as.sampler_state;
    *ret = (struct sluice_sampler_state){
        .batch = in->batch, .submitted = in->submitted, .json = client_keep(client, in->json)};
    return ret->json ? 0 : client_fail(client, -ENOMEM, "out of memory");
}

int sluice_sampler_open(struct sluice_client *client, const struct sluice_sampler *sampler,
                        struct sluice_sampler_state *ret)
{
    struct msg_sampler_open message = {.tag = ++client->last_tag,
                                       .stream = slice_from_str(sampler->stream),
                                       .trainer = slice_from_str(sampler->trainer),
                                       .groups = sampler->groups,
                                       .filter = slice_from_str(sampler->filter),
                                       .has_filter = sampler->filter != NULL,
                                       .surplus = slice_from_str(sampler->surplus),
                                       .has_surplus = sampler->surplus != NULL,
                                       .window = sampler->window,
                                       .has_window = sampler->window > 0,
                                       .over_sample = sampler->over_sample,
                                       .has_over_sample = sampler->over_sample > 0,
                                       .early = sampler->early,
                                       .has_early = sampler->early > 0,
                                       .staleness = sampler->staleness,
                                       .has_staleness = sampler->has_staleness,
                                       .ahead = sampler->ahead,
                                       .has_ahead = sampler->has_ahead,
                                       .replace_max = sampler->replace_max,
                                       .has_replace_max = sampler->has_replace_max};
    AUTO_ANSWER answer = {0};
    int failed = request_call(client, MSG_sampler_open, &message, message.tag, &answer);
    return failed ? failed : take_state(client, &answer, ret);
}

int sluice_sampler_get(struct sluice_client *client, const char *stream, struct sluice_sampler_state *ret)
{
    struct msg_sampler_get message = {.tag = ++client->last_tag, .stream = slice_from_str(stream)};
    AUTO_ANSWER answer = {0};
    int failed = request_call(client, MSG_sampler_get, &message, message.tag, &answer);
    return failed ? failed : take_state(client, &answer, ret);
}

int sluice_sampler_next(struct sluice_client *client, const char *stream, const char *trainer, uint64_t batch,
                        uint64_t wait_ms, const char **json, const char **why)
{
    enum { WAIT_MAX = MESSAGE_MAX(sampler_next, wait_ms) };
    const uint64_t most = client->timeout_ms > 0 ? (uint64_t)client->timeout_ms / 2 : 0;
    wait_ms = wait_ms < most ? wait_ms : most;
    struct msg_sampler_next message = {.tag = ++client->last_tag,
                                       .stream = slice_from_str(stream),
                                       .trainer = slice_from_str(trainer),
                                       .batch = batch,
                                       .wait_ms = wait_ms < WAIT_MAX ? wait_ms : WAIT_MAX,
                                       .has_wait_ms = true};
    AUTO_ANSWER answer = {0};
    *json = *why = NULL;
    int failed = request_call(client, MSG_sampler_next, &message, message.tag, &answer);
    if (failed)
        return failed;
    if (answer.id == MSG_sampler_batch)
        *json = client_keep(client, answer.as.sampler_batch.json);
    else if (answer.id == MSG_sampler_waits)
        *why = client_keep(client, answer.as.sampler_waits.why);
    else
        return client_unexpected(client, &answer);
    return *json || *why ? 0 : client_fail(client, -ENOMEM, "out of memory");
}

int sluice_sampler_close(struct sluice_client *client, const char *stream, bool cancel, uint64_t *count)
{
    struct msg_sampler_close message = {
        .tag = ++client->last_tag, .stream = slice_from_str(stream), .cancel = cancel, .has_cancel = true};
    return request_done(client, MSG_sampler_close, &message, message.tag, count);
}
