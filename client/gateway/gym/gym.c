#include "client/gateway/gym/gym.h"

#include <stdlib.h>

#include "client/gateway/gym/gym_kept.h"
#include "client/gateway/gym/head_server.h"
#include "client/gateway/gym/metrics.h"
#include "client/gateway/gym/responses.h"
#include "client/gateway/gym/run.h"
#include "client/gateway/outgoing/outgoing.h"
#include "client/gateway/runs/runs.h"
#include "common/base/log.h"

/* Its clients send no token to a head server. */
static const struct route routes[] = {
    ROUTE("GET", "/global_config_dict_yaml", head_server_config, ROUTE_OPEN, ROUTE_NO_BODY),
    ROUTE("GET", "/server_instances", head_server_instances, ROUTE_OPEN, ROUTE_NO_BODY),
    ROUTE("POST", "/run", run_row, ROUTE_KEYED, ROUTE_OBJECT),
    ROUTE("POST", "/aggregate_metrics", metrics_aggregate, ROUTE_KEYED, ROUTE_OBJECT),
    ROUTE("POST", "/v1/responses", responses_run, ROUTE_KEYED, ROUTE_OBJECT),
    ROUTE("POST", "/ng-rollout/{id}/v1/responses", responses_run, ROUTE_KEYED, ROUTE_OBJECT),
    ROUTE("POST", "/ng-rollout/{id}/training-token-capture/v1/responses", responses_run, ROUTE_KEYED, ROUTE_OBJECT),
};

static void close_gym(struct gateway *gateway, void *kept)
{
    struct gym *gym = kept;
    (void)gateway;
    outgoing_close(&gym->outgoing);
    runs_close(&gym->runs);
    free(gym);
}

static bool open_gym(struct gateway *gateway, void **ret)
{
    struct fail fail;
    struct gym *gym = calloc(1, sizeof(*gym));
    fail_memory(&fail);
    if (!gym)
        return false;
    gym->runs = runs_open(gateway, &fail);
    gym->outgoing = gym->runs ? outgoing_open(gateway->loop) : NULL;
    if (gym->outgoing) {
        *ret = gym;
        return true;
    }
    log_event(LOG_ERROR, "gateway.runs", "error=\"%s\"", fail.text);
    close_gym(gateway, gym);
    return false;
}

const struct route_family gym_family = {.name = "gym",
                                        .routes = routes,
                                        .count = sizeof(routes) / sizeof(*routes),
                                        .write_trouble = route_write_detail,
                                        .open = open_gym,
                                        .close = close_gym};
