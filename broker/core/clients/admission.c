#include "broker/core/clients/admission.h"
#include "broker/core/state/effects.h"
#include "broker/core/state/state.h"
#include "broker/core/streams/quotas.h"

#define NUMBER(x) ((unsigned long long)(x))

/* ---- when to try again ------------------------------------------------------------- */

static uint64_t clamp(uint64_t ms, uint64_t most)
{
    return ms < RETRY_FIRST_MS ? RETRY_FIRST_MS : ms > most ? most : ms;
}

/* The time in which `excess` becomes free at the pace of late; without one, by how full it is. */
static uint64_t retry_after_ms(struct core *core, enum quota quota, uint64_t excess)
{
    double wait_ms;
    if (quota_flow(core, quota, excess, &wait_ms))
        return clamp(wait_ms < RETRY_LAST_MS ? (uint64_t)wait_ms : RETRY_LAST_MS, RETRY_LAST_MS);
    uint64_t percent = quota_percent(core, quota);
    uint64_t above = percent > ADMISSION_FAIR ? percent - ADMISSION_FAIR : 0;
    return clamp(RETRY_BLIND_MS * above / (ADMISSION_FULL - ADMISSION_FAIR), RETRY_BLIND_MS);
}

/* ---- one quota --------------------------------------------------------------------- */

/* A submit, as one quota sees it. */
struct request {
    enum quota quota;
    struct slice name;  /* of the client that it counts for */
    uint64_t want, own; /* at least so much more will be used; what the client uses now */
};

/* For all together. */
static bool refuse_full(struct core *core, const struct call *call, struct request request)
{
    uint64_t used = core->usage[request.quota].used, max = quota_max(core, request.quota);
    send_refused(core, call, REFUSAL_QUEUE_FULL, NULL, retry_after_ms(core, request.quota, used + request.want - max),
                 "%llu %s, %llu are the limit; %s", NUMBER(used), quota_used_words(request.quota), NUMBER(max),
                 quota_remedy(request.quota));
    return false;
}

/* For this client, who may have `share`, which is so `because`. */
static bool refuse_own(struct core *core, const struct call *call, struct request request, uint64_t share,
                       const char *because)
{
    send_refused(core, call, REFUSAL_QUEUE_FULL, NULL,
                 retry_after_ms(core, request.quota, request.own + request.want - share),
                 "yours: %llu %s, %llu are the limit for %s; %s", NUMBER(request.own), quota_used_words(request.quota),
                 NUMBER(share), because, quota_remedy(request.quota));
    return false;
}

static bool admit_request(struct core *core, const struct call *call, struct request request)
{
    const struct usage *usage = &core->usage[request.quota];
    uint64_t max = quota_max(core, request.quota), own_max = quota_share(core, request.name, request.quota);
    uint64_t after = usage->used + request.want, own_after = request.own + request.want;
    uint64_t fair = max / (usage->holders + (request.own == 0));
    if (own_after > own_max && own_max < max)
        return refuse_own(core, call, request, own_max, "one client");
    if (after > max)
        return refuse_full(core, call, request);
    if (100 * after > ADMISSION_FAIR * max && own_after > fair)
        return refuse_own(core, call, request, fair, "each client while nearly all is taken");
    return true;
}

/* What is more than the quota can never fit. */
static bool admit_size(struct core *core, const struct call *call, struct slice name, enum quota quota,
                       const char *field, uint64_t want)
{
    uint64_t most = quota_share(core, name, quota);
    if (want <= most)
        return true;
    send_refused(core, call, REFUSAL_TOO_LARGE, field, 0,
                 "group.submit: %s needs %llu and can never fit; %s and client_percent allow %llu", field, NUMBER(want),
                 quota_setting(quota), NUMBER(most));
    return false;
}

/* ---- all of them ------------------------------------------------------------------- */

bool admission_check(struct core *core, const struct call *call, const struct client *client, uint64_t samples)
{
    const uint64_t wants[QUOTA_COUNT] = {[QUOTA_ROLLOUTS] = samples,
                                         [QUOTA_TASK_BYTES] = call->task->bytes,
                                         [QUOTA_RESULTS] = 1,
                                         [QUOTA_RESULTS_BYTES] = RESULT_BYTES};
    if (core->is_disk_low) {
        send_refused(core, call, REFUSAL_DISK_LOW, NULL, RETRY_DISK_MS,
                     "the disk of the broker's data directory is nearly full: make room there, or "
                     "acknowledge trajectories");
        return false;
    }
    struct slice name = client ? client_name(client) : call->caller->name;
    if (!admit_size(core, call, name, QUOTA_ROLLOUTS, "samples", samples) ||
        !admit_size(core, call, name, QUOTA_TASK_BYTES, "task", call->task->bytes))
        return false;
    for (enum quota quota = 0; quota < QUOTA_COUNT; quota++) {
        struct request request = {quota, name, wants[quota], client ? client->used[quota] : 0};
        if (!admit_request(core, call, request))
            return false;
    }
    return true;
}

struct slice admission_warning(struct core *core, const struct client *client)
{
    enum quota fullest = 0;
    bool is_own = false;
    uint64_t most = 0;
    for (enum quota quota = 0; quota < QUOTA_COUNT; quota++) {
        uint64_t all = quota_percent(core, quota);
        uint64_t own = quota_client_percent(core, client, quota);
        if (all <= most && own <= most)
            continue;
        fullest = quota;
        is_own = own > all;
        most = is_own ? own : all;
    }
    if (most < ADMISSION_WARN)
        return slice_of(NULL, 0);
    return effect_print(core, "%llu %% of %s%s; at 100 %% submits are refused, queue-full: %s", NUMBER(most),
                        is_own ? "your share of the " : "the ", quota_filled(fullest), quota_remedy(fullest));
}
