#include "workers/engines/server/identity.h"

#include <errno.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "workers/engines/server/discovery.h"
#include "workers/runtime/fiber.h"
#include "common/loop/loop_now.h"

enum { PROVE_TRIES = 4, LINE_IDLE_MS = 5000 };

/* ---- connections ------------------------------------------------------------------------- */

static void line_destroy(struct engine_connections *list, struct engine_connection *line)
{
    TAILQ_REMOVE(list, line, links);
    http_line_close(&line->http);
    free(line);
}

static struct engine_connection *line_create(struct engine *engine)
{
    AUTO_FREE struct engine_connection *line = calloc(1, sizeof(*line));
    if (!line || !(line->http = http_line_open()))
        return NULL;
    TAILQ_INSERT_HEAD(&engine->idle, line, links);
    return take_ptr(&line);
}

/* For the current fiber, until connection_give_back. NULL: out of memory. */
static struct engine_connection *connection_take(struct engine *engine)
{
    struct engine_connection *line = TAILQ_FIRST(&engine->idle);
    if (!line && !(line = line_create(engine)))
        return NULL;
    TAILQ_REMOVE(&engine->idle, line, links);
    TAILQ_INSERT_HEAD(&engine->busy, line, links);
    line->fiber = fiber_current();
    line->trusts = false;
    return line;
}

static void connection_give_back(struct engine *engine, struct engine_connection *line)
{
    struct engine_connection *last;
    TAILQ_REMOVE(&engine->busy, line, links);
    TAILQ_INSERT_HEAD(&engine->idle, line, links);
    line->fiber = NULL;
    line->used_ms = loop_now_ms();
    while ((last = TAILQ_LAST(&engine->idle, engine_connections)) != line &&
           line->used_ms - last->used_ms > LINE_IDLE_MS)
        line_destroy(&engine->idle, last);
}

/* The current fiber's; NULL: it is in no act. */
static struct engine_connection *connection_current(const struct engine *engine)
{
    const struct fiber *fiber = fiber_current();
    struct engine_connection *line;
    TAILQ_FOREACH(line, &engine->busy, links)
    if (line->fiber == fiber)
        return line;
    return NULL;
}

struct http_line *engine_connection_http(const struct engine *engine)
{
    const struct engine_connection *line = connection_current(engine);
    return line ? line->http : NULL;
}

void engine_connections_finish(struct engine *engine)
{
    struct engine_connection *line;
    while ((line = TAILQ_FIRST(&engine->busy)))
        line_destroy(&engine->busy, line);
    while ((line = TAILQ_FIRST(&engine->idle)))
        line_destroy(&engine->idle, line);
}

/* ---- proofs ------------------------------------------------------------------------------ */

static struct engine_connection_proof proof_now(const struct engine *engine, const struct engine_connection *line)
{
    return (struct engine_connection_proof){.info = engine->number,
                                            .doubts = engine->doubts,
                                            .connects = http_line_connects(line->http),
                                            .requests = http_line_requests(line->http),
                                            .policy = engine->policy.number,
                                            .at_ms = loop_now_ms()};
}

/* The current line's other end is proven to be who the facts tell of. */
static void note_proof(struct engine *engine)
{
    struct engine_connection *line = connection_current(engine);
    if (line)
        line->proof = proof_now(engine, line);
    engine->steady.is_owed = false;
}

/* Who was there then is there still, for all that is known without asking. */
static bool is_proven(const struct engine *engine, const struct engine_connection *line)
{
    if (!line)
        return true;
    const struct engine_connection_proof now = proof_now(engine, line), *then = &line->proof;
    return then->info == now.info && then->doubts == now.doubts && then->connects == now.connects;
}

/* Whoever refuses to say who it is, is at fault itself, not who asked. */
static int as_fault(int error) { return error == -EINVAL || error == -E2BIG ? -EPROTO : error; }

static void count_mark(struct engine_steadiness *steady, const struct engine_mark *mark)
{
    const bool is_same = mark->has_start && strcmp(steady->mark, mark->text) == 0;
    steady->proofs = is_same ? steady->proofs + 1 : 0;
    memcpy(steady->mark, mark->text, sizeof(steady->mark));
}

/* 0 and *ret, whether who is there gave a mark that is known. */
static int recognize(struct engine *engine, bool *ret, struct fail *fail)
{
    struct engine_mark mark = {0};
    int error = engine->dialect->identify(engine, &mark, fail);
    if (error == 0)
        count_mark(&engine->steady, &mark);
    *ret = error == 0 && engine_has_mark(engine, &mark);
    return error == -ENOTSUP ? 0 : as_fault(error); /* some other kind of server */
}

static int describe(void *arg, struct fail *fail)
{
    struct engine *engine = arg;
    int error = engine_discover(engine, fail);
    if (error == 0)
        note_proof(engine);
    return error;
}

int engine_learn(struct engine *engine, struct fail *fail)
{
    return single_flight_run(&engine->described, describe, engine, fail);
}

static int prove(struct engine *engine, bool afresh, struct fail *fail)
{
    for (int tries = 0; tries < PROVE_TRIES; tries++) {
        bool is_known = engine->described.state == SINGLE_FLIGHT_DONE;
        if (is_known && !afresh && is_proven(engine, connection_current(engine)))
            return 0;
        int error = is_known ? recognize(engine, &is_known, fail) : 0;
        if (error < 0)
            return error;
        if (is_known) {
            note_proof(engine);
            return 0;
        }
        single_flight_reset(&engine->described);
        error = engine_learn(engine, fail);
        if (error < 0)
            return as_fault(error);
        afresh = false;
    }
    return fail_set(fail, -EAGAIN, "%s: who answers there changes from call to call", engine->url);
}

void engine_doubt(struct engine *engine)
{
    engine->doubts++;
    engine->start.asked_ms = 0;
    if (!engine->has_start)
        single_flight_reset(&engine->described);
}

/* ---- acts -------------------------------------------------------------------------------- */

void engine_trust(struct engine *engine)
{
    struct engine_connection *line = connection_current(engine);
    if (line)
        line->trusts = true;
}

static bool is_trusted(const struct engine *engine, const struct engine_connection *line)
{
    return line->trusts && engine->has_start && engine->steady.proofs >= STEADY_PROOFS && is_proven(engine, line) &&
           line->proof.policy == engine->policy.number && loop_now_ms() - line->proof.at_ms < TRUST_MS;
}

/* What was heard since is of those facts still. */
static int confirm(struct engine *engine, uint64_t number, const char *identity, bool succeeded, struct fail *fail)
{
    const struct engine_connection *line = connection_current(engine);
    const bool has_heard = line && http_line_requests(line->http) != line->proof.requests;
    int error = 0;
    if (has_heard && succeeded && is_trusted(engine, line))
        engine->steady.is_owed = true;
    else if (has_heard)
        error = prove(engine, true, fail);
    if (error < 0 || engine->number == number)
        return error;
    const bool is_same = strcmp(engine->info.identity, identity) == 0;
    return fail_set(fail, is_same ? -EAGAIN : -ESTALE,
                    "%s became another model, template or "
                    "tokenizer while it was asked%s",
                    engine->url, is_same ? ", and back" : "");
}

/* An answer as good as any, if it is of who was asked. */
static bool is_verdict(int error) { return error == 0 || error == -EINVAL || error == -E2BIG || error == -ENOTSUP; }

static int run_act(struct engine *engine, int (*act)(void *arg, struct fail *fail), void *arg, struct fail *fail)
{
    char identity[sizeof(engine->info.identity)];
    memcpy(identity, engine->info.identity, sizeof(identity));
    const uint64_t number = engine->number;
    struct fail unproven = {0};
    const int code = act(arg, fail);
    if (!is_verdict(code))
        return code;
    const int error = confirm(engine, number, identity, code == 0, &unproven);
    return error < 0 ? fail_set(fail, error, "%s", unproven.text) : code;
}

int engine_act(struct engine *engine, int (*act)(void *arg, struct fail *fail), void *arg, struct fail *fail)
{
    struct engine_connection *line = connection_take(engine);
    if (!line)
        return fail_memory(fail);
    int error = prove(engine, !act, fail);
    if (error == 0 && act)
        error = run_act(engine, act, arg, fail);
    connection_give_back(engine, line);
    return error;
}

int engine_settle(struct engine *engine, struct fail *fail)
{
    struct fail why = {0};
    const bool is_owed = engine->steady.is_owed && !engine->policy.is_paused;
    const int error = is_owed ? engine_act(engine, NULL, NULL, &why) : 0;
    const bool is_known = engine->described.state == SINGLE_FLIGHT_DONE;
    return error == 0 || is_known
               ? 0
               : fail_set(fail, -ESTALE, "%s is not who it was, and does not say who it is: %s", engine->url, why.text);
}

/* ---- what is learnt ---------------------------------------------------------------------- */

struct lesson {
    struct engine *engine;
    int (*make)(void *arg, struct fail *fail);
    void *arg;
};

/* It stays: what a server says of its start is asked for behind it, whatever that costs. */
static int teach(void *arg, struct fail *fail)
{
    const struct lesson *lesson = arg;
    int error = lesson->make(lesson->arg, fail);
    lesson->engine->start.asked_ms = 0;
    return error;
}

static int learn(void *arg, struct fail *fail)
{
    const struct lesson *lesson = arg;
    int error = run_act(lesson->engine, teach, arg, fail);
    return error == -ESTALE ? -EAGAIN : error; /* those who wait for it may have come later */
}

int engine_learn_once(struct engine *engine, struct single_flight *once, int (*make)(void *arg, struct fail *fail),
                      void *arg, struct fail *fail)
{
    struct lesson lesson = {engine, make, arg};
    return single_flight_run(once, learn, &lesson, fail);
}
