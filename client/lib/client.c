#include "client/lib/client.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

const char *sluice_error(const struct sluice_client *client) { return client->error; }

bool sluice_is_silent(const struct sluice_client *client) { return client->is_silent; }

void sluice_set_timeout(struct sluice_client *client, int64_t timeout_ms)
{
    client->timeout_ms = timeout_ms < 0 ? 0 : timeout_ms;
}

void sluice_set_patience(struct sluice_client *client, int64_t patience_ms)
{
    client->patience_ms = patience_ms < 0 ? -1 : patience_ms;
}

const char *sluice_url(const struct sluice_client *client) { return client->front_url; }

bool client_offer(struct sluice_client *client, struct answer *answer)
{
    return (client->offer_watching && client->offer_watching(client, answer)) ||
           (client->offer_stream && client->offer_stream(client, answer));
}

int client_fail(struct sluice_client *client, int code, const char *format, ...)
{
    va_list args;
    client->is_silent = false;
    va_start(args, format);
    vsnprintf(client->error, sizeof(client->error), format, args);
    va_end(args);
    return code;
}

static const struct {
    enum refusal_reason reason;
    int code;
} refusal_errnos[] = {
    {REFUSAL_QUEUE_FULL, -EAGAIN},      {REFUSAL_GROUP_EXISTS, -EEXIST},   {REFUSAL_UNKNOWN_GROUP, -ENOENT},
    {REFUSAL_UNKNOWN_ROLLOUT, -ENOENT}, {REFUSAL_UNKNOWN_STREAM, -ENOENT}, {REFUSAL_UNKNOWN_ENGINE, -ENOENT},
    {REFUSAL_NO_ENGINE, -EHOSTUNREACH}, {REFUSAL_FORGOTTEN, -ENODATA},     {REFUSAL_UNKNOWN_MESSAGE, -EPROTO},
    {REFUSAL_NOT_ALLOWED, -EACCES},     {REFUSAL_DISK_LOW, -EAGAIN},       {REFUSAL_UNKNOWN_WORKER, -ENOENT},
    {REFUSAL_BACKUP_FAILED, -EIO},      {REFUSAL_NO_SESSION, -ENODATA},
};

/*
 * Everything without a row of its own is a mistake in what was asked for. A broker that is full
 * and does not say when to try again will never have room for this.
 */
int refused_errno(const struct msg_refused *refused)
{
    struct slice reason = refused->reason;
    if (slice_is(reason, refusal_wire(REFUSAL_QUEUE_FULL)) && !refused->has_retry_after_ms)
        return -ENOSPC;
    for (size_t i = 0; i < sizeof(refusal_errnos) / sizeof(*refusal_errnos); i++)
        if (slice_is(reason, refusal_wire(refusal_errnos[i].reason)))
            return refusal_errnos[i].code;
    return -EINVAL;
}

const char *client_keep(struct sluice_client *client, struct slice text)
{
    buffer_clear(&client->text);
    const bool is_whole = buffer_append(&client->text, text.data, text.len) && buffer_append(&client->text, "", 1);
    return is_whole ? (const char *)client->text.data : NULL;
}

int client_refused(struct sluice_client *client, const struct msg_refused *refused)
{
    return client_fail(client, refused_errno(refused), "%.*s", SLICE_ARG(refused->text));
}
