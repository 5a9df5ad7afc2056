#include "client/gateway/broker/identities.h"

#include <stdlib.h>

#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/containers/table.h"
#include "common/digest/digest.h"
#include "common/net/token.h"

enum { SWEEP_MS = 1000 };

enum standing {
    STANDING_ASKED,
    STANDING_KNOWN,
    STANDING_REFUSED, /* it has no connection */
    STANDINGS
};

static const size_t most[STANDINGS] = {
    [STANDING_ASKED] = IDENTITIES_ASKED_MAX, [STANDING_KNOWN] = IDENTITIES_MAX, [STANDING_REFUSED] = IDENTITIES_MAX};

/* An identity and how it is found. */
struct known {
    struct identity identity;
    char digest[DIGEST_SIZE]; /* of its token; "": the gateway's own, or that of who brings none */
    enum standing standing;
    struct list link; /* of its standing, those last that were used last */
    int64_t used_ms;  /* or refused */
    struct key key;
};

struct identities {
    struct identities_plan plan;
    struct known own, anonymous;
    struct table known; /* by the token's digest */
    struct list standing[STANDINGS];
    size_t counts[STANDINGS];
    struct loop_timer *sweep;
};

static bool open_known(struct identities *identities, struct known *known, const struct key *key)
{
    const struct caller_plan plan = {.loop = identities->plan.loop,
                                     .url = identities->plan.url,
                                     .key = key,
                                     .allow_plaintext = identities->plan.allow_plaintext};
    list_init(&known->link);
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
    list_remove(&known->link);
    identities->counts[known->standing]--;
    shut(known);
    key_wipe(&known->key);
    free(known);
}

/* ---- standings ---------------------------------------------------------------------------------- */

/* Of those of the same standing it is the one that was used last. */
static void note_used(struct identities *identities, struct known *known)
{
    known->used_ms = clock_ms();
    if (!known->digest[0])
        return;
    list_remove(&known->link);
    list_push_back(&identities->standing[known->standing], &known->link);
}

/* Of those that nobody uses now, the one that was used last the longest ago; NULL. */
static struct known *find_idle(const struct identities *identities, enum standing standing)
{
    struct known *known;
    LIST_EACH(known, &identities->standing[standing], link)
        if (known->identity.uses == 0)
            return known;
    return NULL;
}

/* As many as may be there, and so many fewer. False: more are in use. */
static bool make_room(struct identities *identities, enum standing standing, size_t fewer)
{
    struct known *idle;
    while (identities->counts[standing] + fewer > most[standing] && (idle = find_idle(identities, standing)))
        drop(identities, idle);
    return identities->counts[standing] + fewer <= most[standing];
}

static void set_standing(struct identities *identities, struct known *known, enum standing standing)
{
    identities->counts[known->standing]--;
    identities->counts[known->standing = standing]++;
    note_used(identities, known);
}

static void note_refused(struct identities *identities, struct known *known)
{
    if (known->identity.uses > 0 || !known->identity.caller || !caller_refused(known->identity.caller))
        return;
    set_standing(identities, known, STANDING_REFUSED);
    known->identity.is_known = false;
    shut(known);
}

/* Another one that has to go for it goes once nobody is in the middle of anything. */
void identities_know(struct identities *identities, struct identity *identity, const char *name, bool is_admin)
{
    struct known *known = container_of(identity, struct known, identity);
    if (known->digest[0])
        set_standing(identities, known, STANDING_KNOWN);
    identity->is_known = true;
    identity->is_admin = is_admin;
    snprintf(identity->name, sizeof(identity->name), "%s", name);
}

/* ---- sweeping ----------------------------------------------------------------------------------- */

static bool is_over(const struct known *known, int64_t now_ms)
{
    const int64_t kept_ms = known->standing == STANDING_REFUSED ? IDENTITY_REFUSED_MS : IDENTITY_IDLE_MS;
    return known->identity.uses == 0 && now_ms - known->used_ms > kept_ms;
}

static void on_sweep(void *arg)
{
    struct identities *identities = arg;
    struct known *known;
    const int64_t now_ms = clock_ms();
    identities->sweep = loop_after(identities->plan.loop, SWEEP_MS, on_sweep, identities);
    for (enum standing standing = 0; standing < STANDINGS; standing++)
        LIST_EACH(known, &identities->standing[standing], link)
            if (is_over(known, now_ms))
                drop(identities, known);
            else if (standing != STANDING_REFUSED)
                note_refused(identities, known);
}

/* ---- finding --------------------------------------------------------------------------------------- */

static struct known *add(struct identities *identities, const char *digest, const struct key *key)
{
    struct known *known = calloc(1, sizeof(*known));
    if (!known)
        return NULL;
    known->key = *key;
    snprintf(known->digest, sizeof(known->digest), "%s", digest);
    if (open_known(identities, known, &known->key) &&
        table_put(&identities->known, slice_from_str(known->digest), known)) {
        identities->counts[known->standing]++;
        note_used(identities, known);
        return known;
    }
    shut(known);
    key_wipe(&known->key);
    free(known);
    return NULL;
}

/* Whether there would be a place for one more, should the broker take its key. */
static bool may_be_known(const struct identities *identities)
{
    return identities->counts[STANDING_KNOWN] < most[STANDING_KNOWN] || find_idle(identities, STANDING_KNOWN);
}

static struct known *find_known(struct identities *identities, const char *token, int *status, const char **why)
{
    char digest[DIGEST_SIZE];
    struct key key;
    struct fail fail;
    *status = 503;
    *why = "out of memory";
    if (!digest_of(slice_from_str(token), digest))
        return NULL;
    struct known *known = table_find(&identities->known, slice_from_str(digest));
    *status = 401;
    *why = "the broker does not know the key of this token";
    if (known)
        note_refused(identities, known);
    if (known)
        return known->standing == STANDING_REFUSED ? NULL : known;
    *why = "this is no token of Sluice (`sluice keys token FILE` tells that of a key file)";
    if (token_parse(token, &key, &fail) < 0)
        return NULL;
    memcpy(key.broker_text, identities->plan.own->broker_text, sizeof(key.broker_text));
    *status = 503;
    *why = "too many keys are in use at a time";
    if (may_be_known(identities) && make_room(identities, STANDING_ASKED, 1))
        known = add(identities, digest, &key);
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
    note_used(identities, known);
    known->identity.uses++;
    return &known->identity;
}

void identities_give_back(struct identities *identities, struct identity *identity)
{
    struct known *known = container_of(identity, struct known, identity);
    note_used(identities, known);
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
    struct known *known;
    size_t at = 0;
    work(&identities->own);
    work(&identities->anonymous);
    while ((known = table_next(&identities->known, &at)))
        work(known);
    LIST_EACH(known, &identities->standing[STANDING_ASKED], link)
        note_refused(identities, known);
    make_room(identities, STANDING_KNOWN, 0);
    make_room(identities, STANDING_REFUSED, 0);
}

struct identities *identities_open(const struct identities_plan *plan)
{
    struct identities *identities = calloc(1, sizeof(*identities));
    if (!identities)
        return NULL;
    identities->plan = *plan;
    for (enum standing standing = 0; standing < STANDINGS; standing++)
        list_init(&identities->standing[standing]);
    identities->sweep = loop_after(plan->loop, SWEEP_MS, on_sweep, identities);
    if (!identities->sweep || !open_known(identities, &identities->own, plan->own) ||
        (plan->anonymous && !open_known(identities, &identities->anonymous, plan->anonymous)))
        identities_close(&identities);
    else if (!plan->own) /* all are one admin */
        identities->own.identity.is_known = identities->own.identity.is_admin = true;
    else if (plan->anonymous) /* of a file of the operator's */
        memcpy(identities->anonymous.identity.name, plan->anonymous->name, KEY_NAME_SIZE);
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
