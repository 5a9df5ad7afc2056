/* session.c - where the loop of a rollout speaks to it. */
#include "client/lib/client.h"
#include "client/lib/request.h"

#include <errno.h>

int sluice_session_get(struct sluice_client *client, const char *rollout, uint64_t after, uint64_t wait_ms,
                       struct sluice_session *ret)
{
    enum { WAIT_MAX = MESSAGE_MAX(session_get, wait_ms) };
    const uint64_t most = client->timeout_ms > 0 ? (uint64_t)client->timeout_ms / 2 : 0;
    wait_ms = wait_ms < most ? wait_ms : most;
    struct msg_session_get message = {.tag = ++client->last_tag,
                                      .rollout = slice_from_str(rollout),
                                      .after = after,
                                      .has_after = after > 0,
                                      .wait_ms = wait_ms < WAIT_MAX ? wait_ms : WAIT_MAX,
                                      .has_wait_ms = true};
    AUTO_ANSWER answer = {0};
    *ret = (struct sluice_session){.url = NULL};
    int failed = request_call(client, MSG_session_get, &message, message.tag, &answer);
    if (failed)
        return failed;
    if (answer.id != MSG_session_state)
        return client_unexpected(client, &answer);
    const struct msg_session_state *in = &answer.as.session_state;
    const char *text = client_keep(client, in->has_url ? in->url : in->why);
    if (!text)
        return client_fail(client, -ENOMEM, "out of memory");
    *ret = (struct sluice_session){
        .url = in->has_url ? text : NULL, .why = in->has_url ? "" : text, .attempt = in->attempt};
    return 0;
}
