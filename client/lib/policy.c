/* policy.c - policy versions of engines, and their pauses. */
#include "client/lib/client.h"
#include "client/lib/request.h"

#include <errno.h>
#include <time.h>

#include "common/base/clock.h"

enum { ASK_AGAIN_MS = 50 };

int sluice_policy_set(struct sluice_client *client, const char *version, const char *engine)
{
    struct msg_policy_set message = {.tag = ++client->last_tag,
                                     .version = slice_from_str(version),
                                     .engine = slice_from_str(engine),
                                     .has_engine = engine != NULL};
    return request_done(client, MSG_policy_set, &message, message.tag, NULL);
}

int sluice_policy_resume(struct sluice_client *client, const char *engine, uint64_t *count)
{
    struct msg_policy_resume message = {
        .tag = ++client->last_tag, .engine = slice_from_str(engine), .has_engine = engine != NULL};
    return request_done(client, MSG_policy_resume, &message, message.tag, count);
}

static int pause_once(struct sluice_client *client, const char *calls, const char *engine, uint64_t bound_ms,
                      uint64_t *count)
{
    struct msg_policy_pause message = {.tag = ++client->last_tag,
                                       .calls = slice_from_str(calls),
                                       .bound_ms = bound_ms,
                                       .engine = slice_from_str(engine),
                                       .has_engine = engine != NULL};
    return request_done(client, MSG_policy_pause, &message, message.tag, count);
}

int sluice_policy_pause(struct sluice_client *client, const char *calls, const char *engine, uint64_t bound_ms,
                        int64_t wait_ms)
{
    int64_t end_ms = clock_ms() + wait_ms;
    uint64_t count;
    for (;;) {
        int failed = pause_once(client, calls, engine, bound_ms, &count);
        if (failed || count == 0)
            return failed;
        if (clock_ms() >= end_ms)
            break;
        nanosleep(&(struct timespec){0, ASK_AGAIN_MS * 1000000}, NULL);
    }
    int failed = sluice_policy_resume(client, engine, NULL);
    return failed
               ? failed
               : client_fail(client, -ETIMEDOUT, "%llu calls or workers did not stop in time; the pause was taken back",
                             (unsigned long long)count);
}
