#include "broker/core/clients/limits.h"
#include "broker/core/effects.h"
#include "broker/core/state.h"

#define NUMBER(x) ((unsigned long long)(x))

static const struct {
    const char *setting, *used, *filled, *remedy;
} limits[] = {
#define LIMIT(name, setting, used, filled, remedy) {#setting, used, filled, remedy},
#include "broker/core/clients/limits.def"
#undef LIMIT
};

uint64_t limit_max(const struct core *core, enum limit limit)
{
    const uint64_t most[] = {
#define LIMIT(name, setting, used, filled, remedy) core->settings.setting,
#include "broker/core/clients/limits.def"
#undef LIMIT
    };
    return most[limit];
}

const char *limit_filled(enum limit limit) { return limits[limit].filled; }

const char *limit_setting(enum limit limit) { return limits[limit].setting; }

const char *limit_remedy(enum limit limit) { return limits[limit].remedy; }

/* The limits are below 2^51, so nothing overflows. */
uint64_t client_max(const struct core *core, struct slice name, enum limit limit)
{
    uint64_t share = limit_max(core, limit) * owners_percent(core, name) / 100;
    return share ? share : 1;
}

static uint64_t percent_of(uint64_t used, uint64_t max) { return 100 * used / max; }

uint64_t limit_percent(const struct core *core, enum limit limit)
{
    return percent_of(core->usage[limit].used, limit_max(core, limit));
}

uint64_t client_percent(const struct core *core, const struct client *client, enum limit limit)
{
    return client ? percent_of(client->used[limit], client_max(core, client_name(client), limit)) : 0;
}

/* ---- counting ---------------------------------------------------------------------- */

static void roll_window(const struct core *core, struct usage *usage)
{
    int64_t elapsed_ms = core->now_ms - usage->since_ms;
    if (elapsed_ms < FLOW_MS)
        return;
    usage->freed_before = usage->freed;
    usage->before_ms = elapsed_ms;
    usage->freed = 0;
    usage->since_ms = core->now_ms;
}

void limit_take(struct core *core, struct client *client, enum limit limit, uint64_t amount)
{
    core->usage[limit].holders += amount && !client->used[limit];
    core->usage[limit].used += amount;
    client->used[limit] += amount;
}

void limit_release(struct core *core, struct client *client, enum limit limit, uint64_t amount)
{
    struct usage *usage = &core->usage[limit];
    roll_window(core, usage);
    client->used[limit] -= amount;
    usage->used -= amount;
    usage->freed += amount;
    usage->holders -= amount && !client->used[limit];
}

/* ---- when to try again ------------------------------------------------------------- */

static uint64_t clamp(uint64_t ms, uint64_t most)
{
    return ms < RETRY_FIRST_MS ? RETRY_FIRST_MS : ms > most ? most : ms;
}

/* The time in which `excess` becomes free at the pace of late; without one, by how full it is. */
static uint64_t retry_after_ms(struct core *core, enum limit limit, uint64_t excess)
{
    struct usage *usage = &core->usage[limit];
    roll_window(core, usage);
    double freed = (double)usage->freed + (double)usage->freed_before;
    double took_ms = (double)(core->now_ms - usage->since_ms + usage->before_ms);
    if (freed > 0) {
        double wait_ms = (double)excess * took_ms / freed;
        return clamp(wait_ms < RETRY_LAST_MS ? (uint64_t)wait_ms : RETRY_LAST_MS, RETRY_LAST_MS);
    }
    uint64_t percent = limit_percent(core, limit);
    uint64_t above = percent > RUNG_FAIR ? percent - RUNG_FAIR : 0;
    return clamp(RETRY_BLIND_MS * above / (RUNG_FULL - RUNG_FAIR), RETRY_BLIND_MS);
}

/* ---- the ladder -------------------------------------------------------------------- */

/* A submit, as one limit sees it. */
struct request {
    enum limit limit;
    struct slice name;  /* of the client that it counts for */
    uint64_t want, own; /* at least so much more will be used; what the client uses now */
};

/* For all together. */
static bool refuse_full(struct core *core, const struct call *call, struct request request)
{
    uint64_t used = core->usage[request.limit].used, max = limit_max(core, request.limit);
    send_refused(core, call, REFUSAL_QUEUE_FULL, NULL, retry_after_ms(core, request.limit, used + request.want - max),
                 "%llu %s, %llu are the limit; %s", NUMBER(used), limits[request.limit].used, NUMBER(max),
                 limits[request.limit].remedy);
    return false;
}

/* For this client, who may have `share`, which is so `because`. */
static bool refuse_own(struct core *core, const struct call *call, struct request request, uint64_t share,
                       const char *because)
{
    send_refused(core, call, REFUSAL_QUEUE_FULL, NULL,
                 retry_after_ms(core, request.limit, request.own + request.want - share),
                 "yours: %llu %s, %llu are the limit for %s; %s", NUMBER(request.own), limits[request.limit].used,
                 NUMBER(share), because, limits[request.limit].remedy);
    return false;
}

static bool admit_request(struct core *core, const struct call *call, struct request request)
{
    const struct usage *usage = &core->usage[request.limit];
    uint64_t max = limit_max(core, request.limit), own_max = client_max(core, request.name, request.limit);
    uint64_t after = usage->used + request.want, own_after = request.own + request.want;
    uint64_t fair = max / (usage->holders + (request.own == 0));
    if (own_after > own_max && own_max < max)
        return refuse_own(core, call, request, own_max, "one client");
    if (after > max)
        return refuse_full(core, call, request);
    if (100 * after > RUNG_FAIR * max && own_after > fair)
        return refuse_own(core, call, request, fair, "each client while nearly all is taken");
    return true;
}

/* What is more than the limit can never fit. */
static bool admit_size(struct core *core, const struct call *call, struct slice name, enum limit limit,
                       const char *field, uint64_t want)
{
    uint64_t most = client_max(core, name, limit);
    if (want <= most)
        return true;
    send_refused(core, call, REFUSAL_TOO_LARGE, field, 0,
                 "group.submit: %s needs %llu and can never fit; %s and client_percent allow %llu", field, NUMBER(want),
                 limits[limit].setting, NUMBER(most));
    return false;
}

bool limits_admit(struct core *core, const struct call *call, const struct client *client, uint64_t samples)
{
    const uint64_t wants[LIMIT_COUNT] = {[LIMIT_ROLLOUTS] = samples,
                                         [LIMIT_TASK_BYTES] = call->task->bytes,
                                         [LIMIT_RESULTS] = 1,
                                         [LIMIT_RESULTS_BYTES] = RESULT_BYTES};
    if (core->is_disk_low) {
        send_refused(core, call, REFUSAL_DISK_LOW, NULL, RETRY_DISK_MS,
                     "the disk of the broker's data directory is nearly full: make room there, or "
                     "acknowledge trajectories");
        return false;
    }
    struct slice name = client ? client_name(client) : call->caller->name;
    if (!admit_size(core, call, name, LIMIT_ROLLOUTS, "samples", samples) ||
        !admit_size(core, call, name, LIMIT_TASK_BYTES, "task", call->task->bytes))
        return false;
    for (enum limit limit = 0; limit < LIMIT_COUNT; limit++) {
        struct request request = {limit, name, wants[limit], client ? client->used[limit] : 0};
        if (!admit_request(core, call, request))
            return false;
    }
    return true;
}

struct slice limits_warning(struct core *core, const struct client *client)
{
    enum limit fullest = 0;
    bool is_own = false;
    uint64_t most = 0;
    for (enum limit limit = 0; limit < LIMIT_COUNT; limit++) {
        uint64_t all = limit_percent(core, limit);
        uint64_t own = client_percent(core, client, limit);
        if (all <= most && own <= most)
            continue;
        fullest = limit;
        is_own = own > all;
        most = is_own ? own : all;
    }
    if (most < RUNG_WARN)
        return slice_of(NULL, 0);
    return effect_print(core, "%llu %% of %s%s; at 100 %% submits are refused, queue-full: %s", NUMBER(most),
                        is_own ? "your share of the " : "the ", limits[fullest].filled, limits[fullest].remedy);
}

uint64_t owners_percent(const struct core *core, struct slice name)
{
    return name.len ? core->settings.client_percent : 100;
}
