#include "client/cli/trace/trace_read.h"

#include <errno.h>
#include <jansson.h>
#include <signal.h>

#include "client/cli/connect.h"

enum { GROUP_MAX = 1000, LIVE_WAIT_MS = 1000 };

static volatile sig_atomic_t is_told_to_end;

static void note_signal(int number)
{
    (void)number;
    is_told_to_end = 1;
}

/* Without SA_RESTART: the client's wait is interrupted. */
static void end_by_signals(void)
{
    struct sigaction action = {.sa_handler = note_signal};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

int trace_read_rollout(struct sluice_client *client, const char *rollout, struct trace_sink *sink)
{
    const struct sluice_trajectory *trajectory;
    const char *state;
    if (sluice_get(client, rollout, &trajectory, &state))
        return cli_failed(client);
    if (trajectory)
        return trace_sink_add(sink, trajectory);
    cli_say("%s has not ended: %s", rollout, state);
    return EXITS_FAILED;
}

int trace_read_group(struct sluice_client *client, const char *group, struct trace_sink *sink)
{
    const char *text;
    if (sluice_list(client, &(struct sluice_filter){.group = group, .ended = true, .limit = GROUP_MAX}, &text))
        return cli_failed(client);
    json_t *answer = json_loads(text, 0, NULL);
    const json_t *rollouts = json_object_get(answer, "rollouts");
    int status = EXITS_OK;
    if (!json_array_size(rollouts)) {
        cli_say("no rollout of %s has ended and is kept", group);
        status = EXITS_FAILED;
    }
    for (size_t i = json_array_size(rollouts); i-- > 0 && status == EXITS_OK;) { /* the newest is listed first */
        const char *name = json_string_value(json_object_get(json_array_get(rollouts, i), "rollout"));
        status = name ? trace_read_rollout(client, name, sink) : EXITS_OK;
    }
    json_decref(answer);
    return status;
}

int trace_is_stream(struct sluice_client *client, const char *name, bool *ret)
{
    if (sluice_subscribe(client, name, 0))
        return cli_failed(client);
    *ret = !*sluice_warning(client);
    return EXITS_OK;
}

/* One step of reading; *ret_seq: the number read. An exit status, or -1 to go on. */
static int read_next(struct sluice_client *client, struct trace_sink *sink, uint64_t *ret_seq)
{
    const struct sluice_trajectory *trajectory;
    const int error = sluice_next(client, LIVE_WAIT_MS, &trajectory);
    if (error == -EBADMSG)
        cli_failed(client); /* passed over */
    if (error == -EBADMSG || error == -EINTR)
        return -1;
    if (error == -EAGAIN)
        return sink->is_live ? -1 : EXITS_OK;
    if (error) {
        cli_failed(client);
        if (error == -ENODATA || error == -ESTALE)
            cli_say("to go on: --from %llu", (unsigned long long)sluice_stream_first(client));
        return EXITS_FAILED;
    }
    *ret_seq = trajectory->seq;
    const int status = trace_sink_add(sink, trajectory);
    return status == EXITS_OK ? -1 : status;
}

int trace_read_stream(struct sluice_client *client, const char *stream, uint64_t from, struct trace_sink *sink)
{
    uint64_t head, pending, seq = 0;
    int status = -1;
    if (sink->is_live)
        end_by_signals();
    if (sluice_subscribe(client, stream, from))
        return cli_failed(client);
    sluice_stream_state(client, &head, &pending);
    if (!sink->is_live && head < (from ? from : 1))
        return EXITS_OK;
    while (status < 0 && !is_told_to_end && (sink->is_live || seq < head))
        status = read_next(client, sink, &seq);
    return status < 0 ? EXITS_OK : status;
}
