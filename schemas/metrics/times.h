/*
 * times.h - what a job's time went to, as text: the field `times` of job.result.
 *
 *     engine=4100:6x2,7x1 tool:bash=812:1x2,4x1
 *
 * Entries with blanks between. Each is a name, the milliseconds of all that it counts, and how many of them were of
 * which class of observed_seconds, CLASSxCOUNT. Nothing is written of what did not happen. What a worker of another
 * version says beside that is passed over.
 */
#ifndef SLUICE_SCHEMAS_METRICS_TIMES_H
#define SLUICE_SCHEMAS_METRICS_TIMES_H

#include "common/base/buffer.h"
#include "common/metrics/observed.h"

#define TIMES_ENGINE "engine"
#define TIMES_SANDBOX "sandbox"
#define TIMES_TOOL "tool:" /* and the tool's name */

struct times_entry {
    struct slice name;
    struct observed times;
};

/* `prefix` and `name` together are the name; what in `name` would end an entry becomes '_'. */
void times_append(struct buffer *out, const char *prefix, const char *name, const struct observed *times);
/* The next entry from *at on, which begins at 0; false: there is none. What cannot be read is none. */
bool times_next(struct slice text, size_t *at, struct times_entry *ret);

/* The field `traces`, "first=1 cut=2", likewise. */
void traces_append(struct buffer *out, struct slice reason, uint64_t count);
bool traces_next(struct slice text, size_t *at, struct slice *ret_reason, uint64_t *ret_count);

#endif
