#include "workers/jobs/trace_counts.h"

#include "schemas/metrics/metrics.h"
#include "schemas/metrics/times.h"

enum { WORDS_MAX = 16, WORD_MAX = 31 };

struct trace_counts {
    struct slice words[WORDS_MAX];
    uint64_t counts[WORDS_MAX];
    size_t used;
};

static struct slice word_of(const struct record_trace *trace)
{
    const char *colon = strchr(trace->reason, ':');
    const size_t len = colon ? (size_t)(colon - trace->reason) : strlen(trace->reason);
    return len == 0         ? slice_from_str("first")
           : len > WORD_MAX ? slice_from_str(METRIC_OTHER)
                            : slice_of(trace->reason, len);
}

static size_t find(const struct trace_counts *all, struct slice word)
{
    size_t at = 0;
    while (at < all->used && !slice_equal(all->words[at], word))
        at++;
    return at;
}

/* With all words in use, that of all others, for which the last place is kept. */
static size_t place_of(struct trace_counts *all, struct slice word)
{
    size_t at = find(all, word);
    if (at >= WORDS_MAX - 1 && at == all->used)
        at = find(all, word = slice_from_str(METRIC_OTHER));
    if (at == all->used)
        all->words[all->used++] = word;
    return at;
}

void trace_counts_write(const struct record *record, struct buffer *out)
{
    struct trace_counts all = {.used = 0};
    for (size_t i = 0; i < record->trace_count; i++)
        all.counts[place_of(&all, word_of(&record->traces[i]))]++;
    for (size_t i = 0; i < all.used; i++)
        traces_append(out, all.words[i], all.counts[i]);
}
