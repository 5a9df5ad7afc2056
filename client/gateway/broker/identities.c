#include "client/gateway/broker/identities.h"

#include <stdlib.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/containers/table.h"
#include "common/digest/digest.h"
#include "common/net/token.h"

enum { SWEEP_MS = 1000 };

/* An identity and how it is found. */
struct known {
    struct identity identity;
    char digest[DIGEST_SIZE]; /* of its token; "": the gateway's own, or that of who brings none */
    int64_t used_ms;
    int64_t refused_until_ms; /* 0: it is not refused */
    struct key key;
};

struct identities {
    struct identities_plan plan;
    struct known own, anonymous;
    struct table known; /* by the token's digest */
    struct loop_timer *sweep;
};

static bool open_known(struct identities *identities, struct known *known, const struct key *key)
{
    const struct caller_plan plan = {.loop = identities->plan.loop,
                                     .url = identities->plan.url,
                                     .key = key,
                                     .allow_plaintext = identities->plan.allow_plaintext};
    known->identity.role = key ? key->role : ROLE_ADMIN;
    known->identity.caller = caller_open(&plan);
    known->identity.topics = known->identity.caller ? topics_open(plan.loop, known->identity.caller) : NULL;
    return known->identity.topics != NULL;
}

static void shut(struct known *known)
{
    topics_close(&known->identity.topics);
    caller_close(&known->identity.caller);
}

static void drop(struct identities *identities, struct known *known)
{
    table_take(&identities->known, slice_from_str(known->digest));
    shut(known);
    key_wipe(&known->key);
    free(known);
}

/* ---- sweeping ----------------------------------------------------------------------------------- */

static void note_refused(struct known *known, int64_t now_ms)
{
    if (!known->refused_until_ms && known->identity.uses == 0 && known->identity.caller &&
        caller_refused(known->identity.caller)) {
        known->refused_until_ms = now_ms + IDENTITY_REFUSED_MS;
        shut(known);
    }
}

static bool is_over(const struct known *known, int64_t now_ms)
{
    return known->identity.uses == 0 &&
           (known->refused_until_ms ? now_ms >= known->refused_until_ms : now_ms - known->used_ms > IDENTITY_IDLE_MS);
}

static struct known *find_over(const struct identities *identities, int64_t now_ms)
{
    size_t at = 0;
    for (struct known *known; (known = table_next(&identities->known, &at));)
        if (is_over(known, now_ms))
            return known;
    return NULL;
}

static void on_sweep(void *arg)
{
    struct identities *identities = arg;
    const int64_t now_ms = clock_ms();
    size_t at = 0;
    identities->sweep = loop_after(identities->plan.loop, SWEEP_MS, on_sweep, identities);
    for (struct known *known; (known = table_next(&identities->known, &at));)
        note_refused(known, now_ms);
    for (struct known *known; (known = find_over(identities, now_ms));)
        drop(identities, known);
}

/* ---- finding --------------------------------------------------------------------------------------- */

static bool is_rather_spared(const struct known *known, const struct known *than)
{
    if (!known->refused_until_ms != !than->refused_until_ms)
        return !known->refused_until_ms;
    return known->used_ms > than->used_ms;
}

/* Of those that nobody uses now, one that was refused, else the one that was used last the longest ago. */
static bool make_room(struct identities *identities)
{
    struct known *least = NULL;
    size_t at = 0;
    if (identities->known.count < IDENTITIES_MAX)
        return true;
    for (struct known *known; (known = table_next(&identities->known, &at));) {
        note_refused(known, clock_ms());
        if (known->identity.uses == 0 && (!least || is_rather_spared(least, known)))
            least = known;
    }
    if (least)
        drop(identities, least);
    return least != NULL;
}

static struct known *add(struct identities *identities, const char *digest, const struct key *key)
{
    struct known *known = calloc(1, sizeof(*known));
    if (!known)
        return NULL;
    known->key = *key;
    snprintf(known->digest, sizeof(known->digest), "%s", digest);
    if (open_known(identities, known, &known->key) &&
        table_put(&identities->known, slice_from_str(known->digest), known))
        return known;
    shut(known);
    free(known);
    return NULL;
}

static struct known *find_known(struct identities *identities, const char *token, int *status, const char **why)
{
    char digest[DIGEST_SIZE];
    struct key key;
    struct fail fail;
    digest_of(slice_from_str(token), digest);
    struct known *known = table_find(&identities->known, slice_from_str(digest));
    *status = 401;
    *why = "the broker does not know the key of this token";
    if (known)
        note_refused(known, clock_ms());
    if (known)
        return known->refused_until_ms ? NULL : known;
    *why = "this is no token of Sluice (`sluice keys token FILE` tells that of a key file)";
    if (token_parse(token, &key, &fail) < 0)
        return NULL;
    memcpy(key.broker_text, identities->plan.own->broker_text, sizeof(key.broker_text));
    *status = 503;
    *why = "too many keys are in use at a time";
    known = make_room(identities) ? add(identities, digest, &key) : NULL;
    key_wipe(&key);
    return known;
}

struct identity *identities_find(struct identities *identities, const char *token, int *status, const char **why)
{
    struct known *known = NULL;
    *status = 401;
    *why =
        "a token is asked for: say `Authorization: Bearer TOKEN` (`sluice keys token FILE` tells that of a key file)";
    if (!identities->plan.own)
        known = &identities->own; /* the broker asks nobody for a key */
    else if (token)
        known = find_known(identities, token, status, why);
    else if (identities->plan.anonymous)
        known = &identities->anonymous;
    if (!known)
        return NULL;
    known->used_ms = clock_ms();
    known->identity.uses++;
    return &known->identity;
}

void identities_give_back(struct identities *identities, struct identity *identity)
{
    (void)identities;
    struct known *known = container_of(identity, struct known, identity);
    known->used_ms = clock_ms();
    identity->uses--;
}

struct identity *identities_own(struct identities *identities) { return &identities->own.identity; }

/* ---- all of them -------------------------------------------------------------------------------------- */

static void work(struct known *known)
{
    if (known->identity.caller)
        caller_work(known->identity.caller);
    if (known->identity.topics)
        topics_work(known->identity.topics);
}

void identities_work(struct identities *identities)
{
    size_t at = 0;
    work(&identities->own);
    work(&identities->anonymous);
    for (struct known *known; (known = table_next(&identities->known, &at));)
        work(known);
}

struct identities *identities_open(const struct identities_plan *plan)
{
    struct identities *identities = calloc(1, sizeof(*identities));
    if (!identities)
        return NULL;
    identities->plan = *plan;
    identities->sweep = loop_after(plan->loop, SWEEP_MS, on_sweep, identities);
    if (!identities->sweep || !open_known(identities, &identities->own, plan->own) ||
        (plan->anonymous && !open_known(identities, &identities->anonymous, plan->anonymous)))
        identities_close(&identities);
    return identities;
}

void identities_close(struct identities **handle)
{
    struct identities *identities = take_ptr(handle);
    size_t at = 0;
    if (!identities)
        return;
    for (struct known *known; (known = table_next(&identities->known, &at)); at = 0)
        drop(identities, known);
    table_finish(&identities->known);
    shut(&identities->own);
    shut(&identities->anonymous);
    loop_cancel(identities->plan.loop, &identities->sweep);
    free(identities);
}
