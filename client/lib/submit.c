#include "client/lib/client.h"
#include "client/lib/request.h"
#include "client/lib/stream/stream.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "schemas/task/task.h"

enum {
    WINDOW = 64,          /* submits in the air: they share the broker's commits */
    RETRY_AFTER_MS = 1000 /* where a refusal that time may heal does not say */
};

struct window {
    struct sluice_client *client;
    struct sluice_group *groups; /* all of them */
    struct request requests[WINDOW];
    size_t index[WINDOW]; /* of the group of each request */
    size_t count;
    int first_failed;
    bool took_some;
    uint64_t retry_after_ms; /* the longest that a full broker asked for, 0 when it was not full */
};

/*
 * client->error keeps the first failure's sentence; one that waiting does not help goes before one
 * that it may, so that nobody tries again what is refused for good.
 */
static bool is_worse(const struct window *window, int code)
{
    return !window->first_failed || (window->first_failed == -EAGAIN && code != -EAGAIN);
}

static void fail_group(struct window *window, struct sluice_group *group, int code)
{
    group->result = code;
    if (is_worse(window, code))
        window->first_failed = code;
}

static void take_refused(struct window *window, struct sluice_group *group, const struct msg_refused *refused)
{
    int code = refused_errno(refused);
    if (is_worse(window, code))
        client_refused(window->client, refused);
    fail_group(window, group, code);
    if (code != -EAGAIN)
        return;
    group->retry_after_ms = refused->has_retry_after_ms ? refused->retry_after_ms : RETRY_AFTER_MS;
    if (group->retry_after_ms > window->retry_after_ms)
        window->retry_after_ms = group->retry_after_ms;
}

static void take_accepted(struct window *window, struct sluice_group *group, const struct msg_group_accepted *accepted)
{
    struct sluice_client *client = window->client;
    group->result = 0;
    group->known = accepted->known;
    group->accepted = (unsigned)accepted->samples;
    window->took_some = true;
    if (client->stream && strcmp(client->stream->name, group->stream) == 0)
        stream_expect_more(client->stream, accepted->known ? 0 : accepted->samples);
    if (accepted->has_warning)
        snprintf(client->warning, sizeof(client->warning), "%.*s", SLICE_ARG(accepted->warning));
    if (group->lease_ms && (!client->lease_ms || group->lease_ms < client->lease_ms))
        client->lease_ms = group->lease_ms;
}

static void take_submit(void *arg, size_t i, struct answer *answer)
{
    struct window *window = arg;
    struct sluice_group *group = &window->groups[window->index[i]];
    if (answer->id == MSG_group_accepted) {
        take_accepted(window, group, &answer->as.group_accepted);
    } else if (answer->id == MSG_refused) {
        take_refused(window, group, &answer->as.refused);
    } else {
        if (is_worse(window, -EPROTO))
            client_unexpected(window->client, answer);
        fail_group(window, group, -EPROTO);
    }
}

/* The task's own number, where the caller gave none. */
static unsigned samples_of(const struct sluice_group *group, struct refusal *no)
{
    if (group->samples)
        return group->samples;
    struct task *task = task_parse(slice_from_str(group->task_json), no);
    unsigned samples = task ? (unsigned)task->samples : 0;
    task_destroy(task);
    return samples;
}

static int make_submit(struct sluice_client *client, const struct sluice_group *group, struct request *request)
{
    struct refusal no;
    unsigned samples = samples_of(group, &no);
    if (!samples)
        return client_fail(client, -EINVAL, "%s", no.text);
    if (group->priority && !group->has_priority)
        return client_fail(client, -EINVAL, "group %s: priority is %u, but has_priority is not set", group->group,
                           group->priority);
    request->tag = ++client->last_tag;
    struct msg_group_submit message = {.tag = request->tag,
                                       .group = slice_from_str(group->group),
                                       .stream = slice_from_str(group->stream),
                                       .samples = samples,
                                       .task = slice_from_str(group->task_json),
                                       .priority = group->priority,
                                       .has_priority = group->has_priority,
                                       .lease_ms = group->lease_ms,
                                       .has_lease_ms = group->lease_ms != 0};
    return request_make(client, request, MSG_group_submit, &message);
}

static void add_group(struct window *window, size_t index)
{
    struct sluice_client *client = window->client;
    char before[sizeof(client->error)];
    memcpy(before, client->error, sizeof(before));
    int failed = make_submit(client, &window->groups[index], &window->requests[window->count]);
    if (!failed) {
        window->index[window->count++] = index;
        return;
    }
    if (!is_worse(window, failed))
        memcpy(client->error, before, sizeof(before));
    fail_group(window, &window->groups[index], failed);
}

/* Those without an answer, in their order, until the broker is full or gone. */
static int submit_round(struct window *window, size_t count)
{
    int failed = 0;
    window->first_failed = 0;
    window->retry_after_ms = 0;
    window->took_some = false;
    for (size_t at = 0; at < count && !failed && !window->retry_after_ms;) {
        window->count = 0;
        for (; at < count && window->count < WINDOW; at++)
            if (window->groups[at].result == -ECANCELED)
                add_group(window, at);
        failed = requests_run(window->client, window->requests, window->count, take_submit, window);
    }
    return failed;
}

/* False when a failure is there that waiting does not help. */
static bool forget_refusals(struct sluice_group *groups, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (groups[i].result && groups[i].result != -EAGAIN && groups[i].result != -ECANCELED)
            return false;
    for (size_t i = 0; i < count; i++)
        if (groups[i].result == -EAGAIN)
            groups[i].result = -ECANCELED;
    return true;
}

static int submit_patiently(struct window *window, size_t count)
{
    struct sluice_client *client = window->client;
    int64_t took_ms = clock_ms();
    for (;;) {
        int failed = submit_round(window, count);
        int64_t now_ms = clock_ms(), pause_ms = (int64_t)window->retry_after_ms;
        if (window->took_some)
            took_ms = now_ms;
        if (failed || !pause_ms)
            return failed;
        bool may_wait = client->patience_ms < 0 || now_ms + pause_ms - took_ms <= client->patience_ms;
        if (!may_wait || !forget_refusals(window->groups, count))
            return 0;
        client->error[0] = '\0';
        if (zmq_poll(NULL, 0, pause_ms) < 0 && errno == EINTR)
            return client_fail(client, -EINTR, "a signal came");
    }
}

int sluice_submit_many(struct sluice_client *client, struct sluice_group *groups, size_t count)
{
    client->error[0] = client->warning[0] = '\0';
    AUTO_FREE struct window *window = calloc(1, sizeof(*window));
    if (!window)
        return client_fail(client, -ENOMEM, "out of memory");
    window->client = client;
    window->groups = groups;
    for (size_t i = 0; i < count; i++)
        groups[i].result = -ECANCELED;
    int failed = submit_patiently(window, count);
    for (size_t i = 0; i < WINDOW; i++)
        request_finish(&window->requests[i]);
    return failed ? failed : window->first_failed;
}

int sluice_submit(struct sluice_client *client, const char *group, const char *stream, unsigned samples,
                  const char *task_json)
{
    struct sluice_group one = {.group = group, .stream = stream, .task_json = task_json, .samples = samples};
    return sluice_submit_many(client, &one, 1);
}

const char *sluice_warning(const struct sluice_client *client) { return client->warning; }
