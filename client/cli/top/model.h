/*
 * model.h - what `sluice top` knows: the broker's last answers, and enough of the ones before for rates. Pure: answers
 * and times come in. It owns what it is given.
 */
#ifndef SLUICE_CLIENT_CLI_TOP_MODEL_H
#define SLUICE_CLIENT_CLI_TOP_MODEL_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schemas/messages/message.h"

enum { MODEL_SAMPLES = 16, MODEL_AWAY_SIZE = 512 };

/* What the broker had counted at a time by its own clock. */
struct model_sample {
    int64_t uptime_ms;
    int64_t ended[OUTCOME_COUNT];
    int64_t tokens; /* sampled; -1: not told */
};

struct model {                                  /* all zero at first */
    json_t *status, *list;                      /* NULL until heard */
    struct model_sample samples[MODEL_SAMPLES]; /* the newest last */
    size_t sample_count;
    int64_t epoch;
    int64_t heard_ms;           /* when it last answered, by the caller's clock */
    char away[MODEL_AWAY_SIZE]; /* why there is no newer answer; "" when the last request was answered */
};

/* Answers of status.get and rollout.list (NULL: not asked), which the model owns then. What is no object is as none. */
void model_hear(struct model *model, json_t *status, json_t *list, int64_t now_ms);
/* After it: what the broker's metrics (docs/metrics.md) say of tokens. */
void model_hear_metrics(struct model *model, const char *metrics);
/* No answer; what was heard before stays. */
void model_miss(struct model *model, const char *why);
void model_finish(struct model *model);

/* Rollouts a second over the last samples: of an outcome, or of all. -1: not known yet. */
double model_rate(const struct model *model, enum outcome outcome);
double model_rate_of_all(const struct model *model);
/* Tokens that were sampled, a second, as runs end; -1: not known. */
double model_token_rate(const struct model *model);

/* A part of the status; NULL where the broker did not tell. */
const json_t *model_part(const struct model *model, const char *key);

#endif
