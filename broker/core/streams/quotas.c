#include "broker/core/streams/quotas.h"
#include "broker/core/state/state.h"

static const struct {
    const char *setting, *used, *filled, *remedy;
} quotas[] = {
#define QUOTA(name, setting, used, filled, remedy) {#setting, used, filled, remedy},
#include "broker/core/state/quotas.def"
#undef QUOTA
};

uint64_t quota_max(const struct core *core, enum quota quota)
{
    const uint64_t most[] = {
#define QUOTA(name, setting, used, filled, remedy) core->settings.setting,
#include "broker/core/state/quotas.def"
#undef QUOTA
    };
    return most[quota];
}

const char *quota_used_words(enum quota quota) { return quotas[quota].used; }

const char *quota_filled(enum quota quota) { return quotas[quota].filled; }

const char *quota_setting(enum quota quota) { return quotas[quota].setting; }

const char *quota_remedy(enum quota quota) { return quotas[quota].remedy; }

uint64_t quota_share_percent(const struct core *core, struct slice name)
{
    return name.len ? core->settings.client_percent : 100;
}

/* The quotas are below 2^51, so nothing overflows. */
uint64_t quota_share(const struct core *core, struct slice name, enum quota quota)
{
    uint64_t share = quota_max(core, quota) * quota_share_percent(core, name) / 100;
    return share ? share : 1;
}

static uint64_t percent_of(uint64_t used, uint64_t max) { return 100 * used / max; }

uint64_t quota_percent(const struct core *core, enum quota quota)
{
    return percent_of(core->usage[quota].used, quota_max(core, quota));
}

uint64_t quota_client_percent(const struct core *core, const struct client *client, enum quota quota)
{
    return client ? percent_of(client->used[quota], quota_share(core, client_name(client), quota)) : 0;
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

void quota_take(struct core *core, struct client *client, enum quota quota, uint64_t amount)
{
    core->usage[quota].holders += amount && !client->used[quota];
    core->usage[quota].used += amount;
    client->used[quota] += amount;
}

void quota_release(struct core *core, struct client *client, enum quota quota, uint64_t amount)
{
    struct usage *usage = &core->usage[quota];
    roll_window(core, usage);
    client->used[quota] -= amount;
    usage->used -= amount;
    usage->freed += amount;
    usage->holders -= amount && !client->used[quota];
}

bool quota_flow(struct core *core, enum quota quota, uint64_t amount, double *ret_ms)
{
    struct usage *usage = &core->usage[quota];
    roll_window(core, usage);
    double freed = (double)usage->freed + (double)usage->freed_before;
    double took_ms = (double)(core->now_ms - usage->since_ms + usage->before_ms);
    if (freed > 0)
        *ret_ms = (double)amount * took_ms / freed;
    return freed > 0;
}
