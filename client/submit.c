#include "client/client.h"

#include <errno.h>
#include <stdlib.h>

#include "common/cleanup.h"
#include "schemas/task.h"

enum { WINDOW = 64 }; /* submits in the air: they share the broker's commits */

struct window {
    struct sluice_client *client;
    struct sluice_group *groups; /* the window's first */
    struct request requests[WINDOW];
    size_t index[WINDOW]; /* of the group of each request */
    size_t count;
    int first_failed;
};

static void fail_group(struct window *window, struct sluice_group *group, int code)
{
    group->result = code;
    if (!window->first_failed)
        window->first_failed = code;
}

/* client->error keeps the first failure's sentence. */
static void take_submit(void *arg, size_t i, struct answer *answer)
{
    struct window *window = arg;
    struct sluice_group *group = &window->groups[window->index[i]];
    const struct msg_refused *refused = &answer->as.refused;
    if (answer->id == MSG_group_accepted) {
        group->result = 0;
        group->known = answer->as.group_accepted.known;
        group->accepted = (unsigned)answer->as.group_accepted.samples;
    } else if (answer->id == MSG_refused) {
        if (!window->first_failed)
            client_refused(window->client, refused);
        fail_group(window, group, refused_errno(refused->reason));
        group->retry_after_ms = refused->has_retry_after_ms ? refused->retry_after_ms : 1000;
    } else {
        if (!window->first_failed)
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

static void add_group(struct window *window, size_t index)
{
    struct sluice_group *group = &window->groups[index];
    struct sluice_client *client = window->client;
    struct refusal no;
    unsigned samples = samples_of(group, &no);
    if (!samples) {
        if (!window->first_failed)
            client_fail(client, -EINVAL, "%s", no.text);
        fail_group(window, group, -EINVAL);
        return;
    }
    struct request *request = &window->requests[window->count];
    request->tag = ++client->last_tag;
    struct msg_group_submit message = {.tag = request->tag,
                                       .group = slice_from_str(group->group),
                                       .stream = slice_from_str(group->stream),
                                       .samples = samples,
                                       .task = slice_from_str(group->task_json)};
    char before[sizeof(client->error)];
    memcpy(before, client->error, sizeof(before));
    int failed = request_make(client, request, MSG_group_submit, &message);
    if (!failed) {
        window->index[window->count++] = index;
        return;
    }
    if (window->first_failed)
        memcpy(client->error, before, sizeof(before));
    fail_group(window, group, failed);
}

int sluice_submit_many(struct sluice_client *client, struct sluice_group *groups, size_t count)
{
    client->error[0] = '\0';
    AUTO_FREE struct window *window = calloc(1, sizeof(*window));
    if (!window)
        return client_fail(client, -ENOMEM, "out of memory");
    window->client = client;
    for (size_t i = 0; i < count; i++)
        groups[i].result = -ECANCELED;
    int failed = 0;
    for (size_t at = 0; at < count && !failed; at += WINDOW) {
        window->groups = groups + at;
        window->count = 0;
        for (size_t i = 0; i < WINDOW && at + i < count; i++)
            add_group(window, i);
        failed = requests_run(client, window->requests, window->count, take_submit, window);
    }
    for (size_t i = 0; i < WINDOW; i++)
        request_finish(&window->requests[i]);
    return failed ? failed : window->first_failed;
}

int sluice_submit(struct sluice_client *client, const char *group, const char *stream,
                  unsigned samples, const char *task_json)
{
    struct sluice_group one = {
        .group = group, .stream = stream, .task_json = task_json, .samples = samples};
    return sluice_submit_many(client, &one, 1);
}
