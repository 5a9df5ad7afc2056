/*
 * connections.h - those of a server, and which of them wait for no answer: a few that never send a whole request would
 * keep all others out.
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
/* Its request is all there; then, that the answer is. */
void connections_note_asking(struct MHD_Connection *of, bool is_asking);
/* MHD finds those ended that have not asked for so long, whatever they sent meanwhile. */
void connections_end_idle(const struct connections *connections, int64_t idle_ms);

#endif
