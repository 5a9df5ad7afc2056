#include "workers/engines/resumed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"

/* ---- versions ------------------------------------------------------------------------------------ */

/* The spans of a part that does not tell them are one, of its version. */
static size_t span_count(const struct generation *part) { return part->span_count ? part->span_count : 1; }

static struct record_span span_at(const struct generation *part, size_t i)
{
    struct record_span span = {.length = (uint32_t)part->sampled.count};
    if (part->span_count)
        return part->spans[i];
    snprintf(span.version, sizeof(span.version), "%.*s", (int)sizeof(span.version) - 1, part->version);
    return span;
}

/* One more; what goes on with the same version lengthens the last. False: no room for it. */
static bool add_span(struct generation *to, const struct record_span *span, uint32_t offset)
{
    struct record_span *last = to->span_count ? &to->spans[to->span_count - 1] : NULL;
    if (last && strcmp(last->version, span->version) == 0) {
        last->length += span->length;
        return true;
    }
    if (to->span_count == RECORD_SPANS_MAX)
        return false;
    to->spans[to->span_count] = *span;
    to->spans[to->span_count++].offset = offset + span->offset;
    return true;
}

static void forget_spans(struct generation *of)
{
    free(take_ptr(&of->spans));
    of->span_count = 0;
}

/* Of both in a row; none where one has no version, there is but one, or they are too many. */
static bool join_spans(struct generation *before, const struct generation *part)
{
    struct generation joined = {.spans = calloc(RECORD_SPANS_MAX, sizeof(*joined.spans))};
    const struct generation *const parts[] = {before, part};
    const uint32_t offsets[] = {0, (uint32_t)before->sampled.count};
    bool is_known = joined.spans && before->version[0] && part->version[0];
    for (size_t i = 0; i < 2; i++)
        for (size_t k = 0; k < span_count(parts[i]) && is_known; k++) {
            const struct record_span span = span_at(parts[i], k);
            is_known = add_span(&joined, &span, offsets[i]);
        }
    const bool has_memory = joined.spans;
    if (!is_known || joined.span_count < 2)
        forget_spans(&joined);
    forget_spans(before);
    before->spans = joined.spans;
    before->span_count = joined.span_count;
    return has_memory;
}

/* One name of all: each once, as it came. */
static void join_versions(struct generation *before, const struct generation *part)
{
    const size_t len = strlen(before->version), more = strlen(part->version);
    if (more == 0 || strstr(before->version, part->version))
        return;
    if (len + 1 + more < sizeof(before->version))
        snprintf(before->version + len, sizeof(before->version) - len, "%s%s", len ? "+" : "", part->version);
}

/* ---- parts --------------------------------------------------------------------------------------- */

static bool join_logprobs(struct generation *before, const struct generation *part)
{
    const size_t count = before->sampled.count, more = part->sampled.count;
    float *logprobs = realloc(before->logprobs, (count + more) * sizeof(*logprobs));
    if (!logprobs)
        return false;
    memcpy(logprobs + count, part->logprobs, more * sizeof(*logprobs));
    before->logprobs = logprobs;
    return true;
}

/* Behind what there is; what is of the whole call is of the last one. */
static bool join(struct generation *before, const struct generation *part)
{
    if (!join_spans(before, part) || !join_logprobs(before, part) ||
        !tokens_append(&before->sampled, part->sampled.ids, part->sampled.count))
        return false;
    join_versions(before, part);
    free(take_ptr(&before->text));
    before->seconds += part->seconds;
    before->queue_seconds = part->queue_seconds;
    before->prefill_seconds = part->prefill_seconds;
    before->decode_seconds = part->decode_seconds;
    memcpy(before->finish, part->finish, sizeof(before->finish));
    return true;
}

bool resumed_add(struct resumed *resumed, const struct tokens *prompt, struct generation *part)
{
    if (resumed->prompt.count == 0 && !tokens_append(&resumed->prompt, prompt->ids, prompt->count))
        return false;
    if (!tokens_append(&resumed->prompt, part->sampled.ids, part->sampled.count))
        return false;
    if (resumed->before.sampled.count > 0)
        return join(&resumed->before, part);
    resumed->before = *part;
    *part = (struct generation){0};
    return true;
}

bool resumed_join(struct resumed *resumed, const struct tokens *prompt, struct generation *last)
{
    if (resumed->before.sampled.count == 0)
        return true;
    if (last->sampled.count > 0 && !join(&resumed->before, last))
        return false;
    generation_finish(last);
    *last = resumed->before;
    last->prompt_tokens = (uint32_t)prompt->count;
    resumed->before = (struct generation){0};
    return true;
}

void resumed_finish(struct resumed *resumed)
{
    tokens_finish(&resumed->prompt);
    generation_finish(&resumed->before);
}
