/*
 * connections.h - those of a server, and which of them go on: a few that never send a whole request, or never read what
 * they asked for, would keep all others out.
 */
#ifndef SLUICE_WORKERS_AGENTS_PROXY_HTTP_CONNECTIONS_H
#define SLUICE_WORKERS_AGENTS_PROXY_HTTP_CONNECTIONS_H

#include <microhttpd.h>
#include <stdbool.h>
#include <stdint.h>

struct connection;
struct connections {
    struct connection *list;
};

/* MHD's notice of one that begins or ends; `slot` is MHD's for it. */
void connections_note(struct connections *connections, struct MHD_Connection *of, void **slot,
                      enum MHD_ConnectionNotificationCode what);
/* It has gone on: asked, or taken more of an answer. `waits`: for us, for as long as that may take. */
void connections_note_step(struct MHD_Connection *of, bool waits);
/* MHD finds those ended that do not wait and have not gone on for so long, whatever they sent meanwhile. */
void connections_end_idle(const struct connections *connections, int64_t idle_ms);

#endif
