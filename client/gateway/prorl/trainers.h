/*
 * trainers.h - what ProRL's server knows of those who ask it, each by its own key: whether it was started, the engines
 * that it was told of, and the calls that wait. None can stop another's, nor clear its engines.
 *
 * Engines that are cleared are paused, and those that are added again go on as another version of the policy: that is
 * what trainers mean by it. An engine that was cleared and is not added again is removed by the next job.
 *
 * It is on disk (PATH.prorl beside the ids), so that a gateway that was killed goes on; one that ends in order begins
 * anew, as a server of ProRL's does.
 */
#ifndef SLUICE_CLIENT_GATEWAY_PRORL_TRAINERS_H
#define SLUICE_CLIENT_GATEWAY_PRORL_TRAINERS_H

#include "client/gateway/prorl/engine_steps.h"
#include "common/containers/list.h"

enum { TRAINER_ENGINES_MAX = 1024, CLEARED_MS = 30000 /* in which jobs wait for engines to be added again */ };

struct trainer_engine {
    char url[URL_MAX + 1];
    bool is_known;   /* to the broker */
    bool is_cleared; /* and not added again */
};

struct trainer {
    struct trainers *trainers;
    char name[64]; /* of its key; "" without one */
    bool is_started;
    char version[STEP_VERSION_SIZE]; /* since the last clear; "": there was none */
    int64_t cleared_ms;
    struct trainer_engine *engines;
    size_t count, room;
    struct list jobs; /* that wait for their answer: struct job of job.h */
    size_t job_count;
    struct list link;
};

/* NULL: out of memory. */
struct trainers *trainers_open(const char *state_path);
/* In order: it forgets what was on disk. */
void trainers_close(struct trainers **trainers);
/* Who asks; NULL: it is not known. */
struct trainer *trainers_find(const struct trainers *trainers, const struct identity *identity);
/*
 * The same once the broker has answered its key, so that nobody is taken for another by a name; `known` is called then.
 * A NULL trainer: out of memory.
 */
void trainers_admit(struct http_call *call, void (*known)(struct http_call *call, const struct answer *answer));
struct trainer *trainers_get(struct trainers *trainers, const struct identity *identity);
void trainers_save(struct trainers *trainers);

/* What of an address of ProRL's is an engine's URL: without /v1, and of http where it says nothing. */
bool trainer_engine_url(const char *address, char ret[URL_MAX + 1]);
/* NULL: there are too many, or no memory. */
struct trainer_engine *trainer_add(struct trainer *trainer, const char *url);
/* It is not wanted: the broker did not take it. */
void trainer_remove(struct trainer *trainer, const char *url);
/* All are cleared; those that the broker does not know are forgotten. */
void trainer_clear(struct trainer *trainer);
/* What makes the broker know this engine, or all that it does not. */
void trainer_tell(struct trainer *trainer, const struct trainer_engine *engine, struct engine_steps *ret);
void trainer_tell_all(struct trainer *trainer, struct engine_steps *ret);
/* The broker may have another ledger: all are to be told again. */
void trainer_doubt_engines(struct trainer *trainer);
/* Those that were told are known; steps: what was done. */
void trainer_told(struct trainer *trainer, const struct engine_steps *steps);
/* Engines that were cleared, and are not awaited any more, are forgotten, and go. */
void trainer_drop_cleared(struct trainer *trainer, struct engine_steps *ret);

#endif
