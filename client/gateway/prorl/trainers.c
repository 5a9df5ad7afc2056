#include "client/gateway/prorl/trainers.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <unistd.h>

#include "client/gateway/broker/caller.h"
#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/log.h"

struct trainers {
    char path[4110];
    struct list each;
};

/* ---- engines ---------------------------------------------------------------------------------------- */

bool trainer_engine_url(const char *address, char ret[URL_MAX + 1])
{
    const char *scheme = strstr(address, "://") ? "" : "http://";
    if (snprintf(ret, URL_MAX + 1, "%s%s", scheme, address) > URL_MAX)
        return false;
    for (size_t len = strlen(ret); len > 0 && ret[len - 1] == '/';)
        ret[--len] = '\0';
    const size_t len = strlen(ret);
    if (len > 3 && strcmp(ret + len - 3, "/v1") == 0)
        ret[len - 3] = '\0';
    return true;
}

static struct trainer_engine *find_engine(const struct trainer *trainer, const char *url)
{
    for (size_t i = 0; i < trainer->count; i++)
        if (strcmp(trainer->engines[i].url, url) == 0)
            return &trainer->engines[i];
    return NULL;
}

struct trainer_engine *trainer_add(struct trainer *trainer, const char *url)
{
    struct trainer_engine *engine = find_engine(trainer, url);
    if (engine) {
        engine->is_known &= !engine->is_cleared; /* told again: its version, and that it goes on */
        engine->is_cleared = false;
        return engine;
    }
    if (trainer->count == TRAINER_ENGINES_MAX)
        return NULL;
    if (trainer->count == trainer->room) {
        struct trainer_engine *more = realloc(trainer->engines, (trainer->room * 2 + 4) * sizeof(*more));
        if (!more)
            return NULL;
        trainer->engines = more;
        trainer->room = trainer->room * 2 + 4;
    }
    engine = &trainer->engines[trainer->count++];
    *engine = (struct trainer_engine){.is_known = false};
    snprintf(engine->url, sizeof(engine->url), "%s", url);
    return engine;
}

static void remove_engine(struct trainer *trainer, size_t i)
{
    memmove(&trainer->engines[i], &trainer->engines[i + 1], (--trainer->count - i) * sizeof(*trainer->engines));
}

void trainer_remove(struct trainer *trainer, const char *url)
{
    const struct trainer_engine *engine = find_engine(trainer, url);
    if (engine)
        remove_engine(trainer, (size_t)(engine - trainer->engines));
}

void trainer_clear(struct trainer *trainer)
{
    trainer->cleared_ms = clock_ms();
    snprintf(trainer->version, sizeof(trainer->version), "prorl-%lld", (long long)clock_wall_ms());
    for (size_t i = trainer->count; i-- > 0;) {
        trainer->engines[i].is_cleared = true;
        if (!trainer->engines[i].is_known)
            remove_engine(trainer, i);
    }
}

void trainer_tell(struct trainer *trainer, const struct trainer_engine *engine, struct engine_steps *ret)
{
    engine_steps_add(ret, MSG_engine_add, engine->url, "");
    if (!*trainer->version)
        return;
    engine_steps_add(ret, MSG_policy_set, engine->url, trainer->version);
    engine_steps_add(ret, MSG_policy_resume, engine->url, "");
}

void trainer_tell_all(struct trainer *trainer, struct engine_steps *ret)
{
    for (size_t i = 0; i < trainer->count; i++)
        if (!trainer->engines[i].is_known)
            trainer_tell(trainer, &trainer->engines[i], ret);
}

void trainer_doubt_engines(struct trainer *trainer)
{
    for (size_t i = 0; i < trainer->count; i++)
        trainer->engines[i].is_known &= trainer->engines[i].is_cleared;
}

void trainer_told(struct trainer *trainer, const struct engine_steps *steps)
{
    for (size_t i = 0; i < steps->at; i++) {
        struct trainer_engine *engine = find_engine(trainer, steps->of[i].url);
        if (engine && steps->of[i].id == MSG_engine_add)
            engine->is_known = true;
    }
}

void trainer_drop_cleared(struct trainer *trainer, struct engine_steps *ret)
{
    bool is_awaited = clock_ms() - trainer->cleared_ms < CLEARED_MS;
    for (size_t i = 0; i < trainer->count; i++)
        is_awaited &= trainer->engines[i].is_cleared;
    for (size_t i = trainer->count; i-- > 0 && !is_awaited;)
        if (trainer->engines[i].is_cleared) {
            engine_steps_add(ret, MSG_engine_remove, trainer->engines[i].url, "");
            remove_engine(trainer, i);
        }
}

/* ---- on disk ------------------------------------------------------------------------------------------- */

static json_t *describe(const struct trainer *trainer)
{
    json_t *engines = json_array();
    for (size_t i = 0; i < trainer->count; i++)
        json_array_append_new(engines,
                              json_pack("{s:s,s:b,s:b}", "url", trainer->engines[i].url, "known",
                                        trainer->engines[i].is_known, "cleared", trainer->engines[i].is_cleared));
    return json_pack("{s:b,s:s,s:o}", "started", trainer->is_started, "version", trainer->version, "engines", engines);
}

void trainers_save(struct trainers *trainers)
{
    char path[sizeof(trainers->path) + 8];
    struct trainer *trainer;
    json_t *all = json_object();
    LIST_EACH(trainer, &trainers->each, link)
        json_object_set_new(all, trainer->name, describe(trainer));
    snprintf(path, sizeof(path), "%s.new", trainers->path);
    if (!all || json_dump_file(all, path, JSON_COMPACT) < 0 || rename(path, trainers->path) < 0)
        log_event(LOG_WARN, "prorl.state", "path=\"%s\" action=kept-in-memory", trainers->path);
    json_decref(all);
}

static struct trainer *add(struct trainers *trainers, const char *name)
{
    struct trainer *trainer = calloc(1, sizeof(*trainer));
    if (!trainer)
        return NULL;
    trainer->trainers = trainers;
    list_init(&trainer->jobs);
    snprintf(trainer->name, sizeof(trainer->name), "%s", name);
    list_push_back(&trainers->each, &trainer->link);
    return trainer;
}

static void read_one(struct trainers *trainers, const char *name, const json_t *told)
{
    struct trainer *trainer = add(trainers, name);
    const char *version = json_string_value(json_object_get(told, "version"));
    size_t i;
    json_t *each;
    if (!trainer)
        return;
    trainer->is_started = json_is_true(json_object_get(told, "started"));
    trainer->cleared_ms = clock_ms();
    snprintf(trainer->version, sizeof(trainer->version), "%s", version ? version : "");
    json_array_foreach(json_object_get(told, "engines"), i, each)
    {
        const char *url = json_string_value(json_object_get(each, "url"));
        struct trainer_engine *engine = url && strlen(url) <= URL_MAX ? trainer_add(trainer, url) : NULL;
        if (engine)
            engine->is_known = json_is_true(json_object_get(each, "known"));
        if (engine)
            engine->is_cleared = json_is_true(json_object_get(each, "cleared"));
    }
}

struct trainers *trainers_open(const char *state_path)
{
    struct trainers *trainers = calloc(1, sizeof(*trainers));
    json_error_t error;
    const char *name;
    json_t *told;
    if (!trainers)
        return NULL;
    list_init(&trainers->each);
    snprintf(trainers->path, sizeof(trainers->path), "%s.prorl", state_path);
    json_t *all = json_load_file(trainers->path, 0, &error);
    json_object_foreach(all, name, told) read_one(trainers, name, told);
    json_decref(all);
    return trainers;
}

void trainers_close(struct trainers **handle)
{
    struct trainers *trainers = take_ptr(handle);
    struct trainer *trainer;
    if (!trainers)
        return;
    LIST_EACH(trainer, &trainers->each, link) {
        free(trainer->engines);
        free(trainer);
    }
    unlink(trainers->path);
    free(trainers);
}

/* ---- who asks -------------------------------------------------------------------------------------------- */

struct trainer *trainers_find(const struct trainers *trainers, const struct identity *identity)
{
    const char *name = caller_public(identity->caller);
    struct trainer *trainer;
    LIST_EACH(trainer, &trainers->each, link)
        if (strcmp(trainer->name, name) == 0)
            return trainer;
    return NULL;
}

struct trainer *trainers_get(struct trainers *trainers, const struct identity *identity)
{
    struct trainer *trainer = trainers_find(trainers, identity);
    return trainer ? trainer : add(trainers, caller_public(identity->caller));
}

/* A question that costs the broker nothing: there is no such rollout. */
void trainers_admit(struct http_call *call, void (*known)(struct http_call *call, const struct answer *answer))
{
    struct msg_rollout_get in = {.rollout = slice_from_str("-/0")};
    if (*caller_public(call->identity->caller)) {
        call->takes_refusals = true;
        http_call_ask(call, MSG_rollout_get, &in, known);
    } else {
        known(call, NULL);
    }
}
