/* connect.c - a client from its beginning to its end: sluice_connect, which asks for nothing yet, and sluice_close. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/lib/client.h"
#include "client/lib/live/watch.h"
#include "client/lib/stream/stream.h"

enum { TIMEOUT_MS = 10000, PATIENCE_MS = 600000 };

/* FEED stands beside FRONT: the port + 2, or "feed" where FRONT's path says "front". */
static bool feed_of(const char *front, char *feed, size_t size)
{
    const char *end = front + strlen(front);
    if (strncmp(front, "ipc://", 6) == 0) {
        if (end - front < 11 || strcmp(end - 5, "front") != 0)
            return false;
        return snprintf(feed, size, "%.*sfeed", (int)(end - front - 5), front) < (int)size;
    }
    const char *colon = strrchr(front, ':');
    char *rest;
    errno = 0;
    unsigned long port = colon ? strtoul(colon + 1, &rest, 10) : 0;
    if (strncmp(front, "tcp://", 6) != 0 || colon < front + 6 || *rest || errno || port < 1 || port > 65533)
        return false;
    return snprintf(feed, size, "%.*s:%lu", (int)(colon - front), front, port + 2) < (int)size;
}

struct sluice_client *sluice_connect(const char *url)
{
    struct sluice_client *client = calloc(1, sizeof(*client));
    if (!client)
        return NULL;
    const char *wanted = url ? url : getenv("SLUICE_BROKER");
    if (!wanted || !*wanted)
        wanted = "tcp://127.0.0.1:5750";
    client->timeout_ms = TIMEOUT_MS;
    client->patience_ms = PATIENCE_MS;
    link_init(&client->link);
    snprintf(client->front_url, sizeof(client->front_url), "%s", wanted);
    if (strlen(wanted) >= sizeof(client->front_url) ||
        !feed_of(client->front_url, client->feed_url, sizeof(client->feed_url)))
        client->feed_url[0] = '\0'; /* link_socket says so */
    return client;
}

void sluice_close(struct sluice_client **handle)
{
    struct sluice_client *client = *handle;
    if (!client)
        return;
    *handle = NULL;
    stream_close(&client->stream);
    watch_close(&client->watching);
    trajectory_view_finish(&client->got);
    buffer_finish(&client->text);
    link_close_front(client);
    link_finish(&client->link);
    if (client->context)
        zmq_ctx_term(client->context);
    free(client);
}
