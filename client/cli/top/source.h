/*
 * source.h - asks the broker, in a thread of its own, so that keys are answered while the broker is not. One answer is
 * kept, the newest; who takes it is told by a descriptor. The client is the thread's alone from source_start on.
 */
#ifndef SLUICE_CLIENT_CLI_TOP_SOURCE_H
#define SLUICE_CLIENT_CLI_TOP_SOURCE_H

#include "client/cli/top/model.h"
#include "client/sluice.h"

struct source;

/* NULL when out of memory or threads. The caller closes the client after source_stop. */
struct source *source_start(struct sluice_client *client, int64_t interval_ms);
/* Waits for a request that is under way: at most SOURCE_ANSWER_MS. */
void source_stop(struct source **source);
/* Readable when there is an answer to take. */
int source_fd(const struct source *source);
/* Has the model hear, or miss, what came since; false: nothing did. */
bool source_take(struct source *source, struct model *model);
/* Asks nothing while paused; asks at once when that ends. */
void source_pause(struct source *source, bool yes);

enum { SOURCE_ANSWER_MS = 2000, SOURCE_ROLLOUTS = 500 };
/* One round of questions by the caller's own thread. *skips_metrics: false at first, and kept for the next one. */
void source_ask(struct sluice_client *client, bool *skips_metrics, struct model *model);

#endif
