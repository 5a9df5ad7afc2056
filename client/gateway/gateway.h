/*
 * gateway.h - HTTP's way to the broker: one loop, one listening socket, a connection to the broker for each key that
 * comes in, and nothing that would be lost with it. A client of the broker like any other: killed and started again, it
 * answers with the same rollouts.
 */
#ifndef SLUICE_CLIENT_GATEWAY_GATEWAY_H
#define SLUICE_CLIENT_GATEWAY_GATEWAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/gateway/broker/identities.h"
#include "client/gateway/gateway_counts.h"
#include "common/base/fail.h"
#include "common/loop/loop.h"

struct http_server;
struct exporting;
struct route_family;
struct runs;

enum { GATEWAY_FAMILIES_MAX = 16 };

struct gateway_settings {
    int fd; /* listens; taken */
    struct identities_plan broker;
    const char *certificate_path, *key_path; /* of TLS; NULL: none */
    const char *const *hosts;                /* names that Host may say beside what is this machine's; ended by NULL */
    bool is_local;                           /* only this machine can reach it */
    const char *stream;                      /* where rollouts go whose API knows no streams */
    const char *const *engines;              /* what may be registered as an engine (door/engines.h) */
    const char *const *callbacks;            /* where results may be posted; likewise */
    const char *state_path;                  /* of the file of ids whose answers were had */
    size_t body_max;
    unsigned connections_max;
    const char *otlp_url; /* NULL: spans go nowhere */
    bool access_log;
    int64_t orphan_ms; /* in which a rollout whose caller is gone may be asked for again, before it is cancelled */
    struct {
        bool no_input_ids;  /* replies come without their prompts */
        int64_t timeout_ms; /* of a job that says none */
        const char *images; /* where prepared images are; NULL: where instances say */
    } prorl;
    const char *run_code_image; /* of SandboxFusion's code; NULL: the workers' own root */
};

struct gateway {
    const struct gateway_settings *settings;
    struct loop *loop;
    struct http_server *server;
    struct identities *identities;
    const struct route_family *families[GATEWAY_FAMILIES_MAX];
    void *kept[GATEWAY_FAMILIES_MAX]; /* by each family */
    size_t family_count;
    struct runs *runs;           /* of all families that want it (runs/runs.h); NULL: of none */
    struct exporting *exporting; /* NULL: spans go nowhere */
    struct gateway_counts counts;
};

/* With these families, in the order in which paths are looked up. NULL with a sentence. */
struct gateway *gateway_open(const struct gateway_settings *settings, const struct route_family *const *families,
                             size_t count, struct fail *fail);
/* Until gateway_stop. */
void gateway_run(struct gateway *gateway);
void gateway_stop(struct gateway *gateway);
void gateway_close(struct gateway **gateway);
/* Its certificate is read again. */
int gateway_renew(struct gateway *gateway, struct fail *fail);

#endif
