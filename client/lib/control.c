/* control.c - the requests that are one question and one answer. */
#include "client/lib/client.h"
#include "client/lib/request.h"

#include <errno.h>

/* client->text as a C string; NULL when out of memory. */
static const char *text_of(struct sluice_client *client)
{
    return buffer_append(&client->text, "", 1) ? (const char *)client->text.data : NULL;
}

static int keep_text(struct sluice_client *client, struct slice bytes, const char **ret)
{
    buffer_clear(&client->text);
    buffer_append(&client->text, bytes.data, bytes.len);
    *ret = text_of(client);
    return *ret ? 0 : client_fail(client, -ENOMEM, "out of memory");
}

int sluice_ack(struct sluice_client *client, const char *stream, uint64_t seq)
{
    struct msg_stream_ack message = {.tag = ++client->last_tag, .stream = slice_from_str(stream), .seq = seq};
    return request_done(client, MSG_stream_ack, &message, message.tag, NULL);
}

int sluice_renew(struct sluice_client *client, const char *stream, uint64_t *count)
{
    struct msg_stream_renew message = {.tag = ++client->last_tag, .stream = slice_from_str(stream)};
    return request_done(client, MSG_stream_renew, &message, message.tag, count);
}

int sluice_cancel(struct sluice_client *client, const char *rollout, const char *group, const char *stream,
                  uint64_t *count)
{
    struct msg_rollout_cancel message = {.tag = ++client->last_tag,
                                         .rollout = slice_from_str(rollout),
                                         .has_rollout = rollout != NULL,
                                         .group = slice_from_str(group),
                                         .has_group = group != NULL,
                                         .stream = slice_from_str(stream),
                                         .has_stream = stream != NULL};
    return request_done(client, MSG_rollout_cancel, &message, message.tag, count);
}

int sluice_engine_add(struct sluice_client *client, const char *url) { return sluice_engine_add_with(client, url, 0); }

int sluice_engine_add_with(struct sluice_client *client, const char *url, uint64_t runs_max)
{
    return sluice_engine_add_to(client, url, runs_max, NULL);
}

int sluice_engine_add_to(struct sluice_client *client, const char *url, uint64_t runs_max, const char *policy)
{
    const char *moved_from;
    return sluice_engine_move(client, url, runs_max, policy, &moved_from);
}

int sluice_engine_move(struct sluice_client *client, const char *url, uint64_t runs_max, const char *policy,
                       const char **moved_from)
{
    AUTO_ANSWER answer = {0};
    struct msg_engine_add message = {.tag = ++client->last_tag,
                                     .url = slice_from_str(url),
                                     .policy = slice_from_str(policy),
                                     .has_policy = policy != NULL,
                                     .runs_max = runs_max,
                                     .has_runs_max = runs_max > 0};
    *moved_from = NULL;
    int failed = request_call(client, MSG_engine_add, &message, message.tag, &answer);
    if (failed)
        return failed;
    if (answer.id != MSG_done)
        return client_unexpected(client, &answer);
    return answer.as.done.has_moved_from ? keep_text(client, answer.as.done.moved_from, moved_from) : 0;
}

int sluice_engine_drain(struct sluice_client *client, const char *url, uint64_t *count)
{
    struct msg_engine_drain message = {.tag = ++client->last_tag, .url = slice_from_str(url)};
    return request_done(client, MSG_engine_drain, &message, message.tag, count);
}

int sluice_engine_remove(struct sluice_client *client, const char *url)
{
    struct msg_engine_remove message = {.tag = ++client->last_tag, .url = slice_from_str(url)};
    return request_done(client, MSG_engine_remove, &message, message.tag, NULL);
}

int sluice_drain(struct sluice_client *client, const char *worker, const char *host, int64_t grace_s, uint64_t *count)
{
    struct msg_worker_drain message = {.tag = ++client->last_tag,
                                       .worker = slice_from_str(worker),
                                       .has_worker = worker != NULL,
                                       .host = slice_from_str(host),
                                       .has_host = host != NULL,
                                       .grace_s = grace_s < 0 ? 0 : (uint64_t)grace_s,
                                       .has_grace_s = grace_s >= 0};
    return request_done(client, MSG_worker_drain, &message, message.tag, count);
}

int sluice_backup(struct sluice_client *client, const char *name, uint64_t *size_bytes)
{
    struct msg_ledger_backup message = {.tag = ++client->last_tag, .name = slice_from_str(name)};
    AUTO_ANSWER answer = {0};
    int failed = request_call_once(client, MSG_ledger_backup, &message, message.tag, &answer);
    if (failed)
        return failed;
    if (answer.id != MSG_done)
        return client_unexpected(client, &answer);
    *size_bytes = answer.as.done.count;
    return 0;
}

int sluice_status(struct sluice_client *client, const char **json)
{
    struct msg_status_get message = {.tag = ++client->last_tag};
    AUTO_ANSWER answer = {0};
    int failed = request_call(client, MSG_status_get, &message, message.tag, &answer);
    if (failed)
        return failed;
    if (answer.id != MSG_status)
        return client_unexpected(client, &answer);
    return keep_text(client, answer.as.status.json, json);
}

int sluice_metrics(struct sluice_client *client, bool openmetrics, const char **text)
{
    struct msg_metrics_get message = {
        .tag = ++client->last_tag, .openmetrics = openmetrics, .has_openmetrics = openmetrics};
    AUTO_ANSWER answer = {0};
    int failed = request_call(client, MSG_metrics_get, &message, message.tag, &answer);
    if (failed)
        return failed;
    if (answer.id != MSG_metrics)
        return client_unexpected(client, &answer);
    return keep_text(client, answer.as.metrics.text, text);
}

int sluice_list(struct sluice_client *client, const struct sluice_filter *filter, const char **json)
{
#define TEXT_FIELD(name) .name = slice_from_str(filter->name), .has_##name = filter->name != NULL
    struct msg_rollout_list message = {.tag = ++client->last_tag,
                                       .ended = filter->ended,
                                       TEXT_FIELD(stream),
                                       TEXT_FIELD(group),
                                       TEXT_FIELD(stage),
                                       TEXT_FIELD(state),
                                       TEXT_FIELD(outcome),
                                       TEXT_FIELD(image),
                                       TEXT_FIELD(engine),
                                       .age_ms = filter->age_ms,
                                       .has_age_ms = filter->age_ms > 0,
                                       .limit = filter->limit,
                                       .has_limit = filter->limit > 0};
#undef TEXT_FIELD
    AUTO_ANSWER answer = {0};
    int failed = request_call(client, MSG_rollout_list, &message, message.tag, &answer);
    if (failed)
        return failed;
    if (answer.id != MSG_rollouts)
        return client_unexpected(client, &answer);
    return keep_text(client, answer.as.rollouts.json, json);
}

static int get_state(struct sluice_client *client, const struct msg_rollout_state *in, const char **state)
{
    buffer_clear(&client->text);
    buffer_printf(&client->text, "%.*s %.*s, attempt %llu", SLICE_ARG(in->stage), SLICE_ARG(in->state),
                  (unsigned long long)in->attempt);
    if (in->has_worker)
        buffer_printf(&client->text, ", worker %.*s", SLICE_ARG(in->worker));
    if (in->has_turn)
        buffer_printf(&client->text, ", turn %llu", (unsigned long long)in->turn);
    if (in->has_tool)
        buffer_printf(&client->text, ", last tool %.*s", SLICE_ARG(in->tool));
    if (in->has_why)
        buffer_printf(&client->text, "; %.*s", SLICE_ARG(in->why));
    const char *text = text_of(client);
    if (!text)
        return client_fail(client, -ENOMEM, "out of memory");
    *state = text;
    return 0;
}

int sluice_get(struct sluice_client *client, const char *rollout, const struct sluice_trajectory **ret,
               const char **state)
{
    *ret = NULL;
    *state = NULL;
    struct msg_rollout_get message = {.tag = ++client->last_tag, .rollout = slice_from_str(rollout)};
    AUTO_ANSWER answer = {0};
    int failed = request_call(client, MSG_rollout_get, &message, message.tag, &answer);
    if (failed)
        return failed;
    if (answer.id == MSG_rollout_state)
        return get_state(client, &answer.as.rollout_state, state);
    if (answer.id != MSG_trajectory)
        return client_unexpected(client, &answer);
    struct refusal no;
    if (!trajectory_view_read(&client->got, &answer.as.trajectory, &no))
        return client_fail(client, -EBADMSG, "the trajectory of %s cannot be read: %s", rollout, no.text);
    *ret = &client->got.out;
    return 0;
}
