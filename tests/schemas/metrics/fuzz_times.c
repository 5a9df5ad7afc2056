/* Whatever a worker says of a job's times and traces is read or passed over, and what is read is written the same. */
#include <stdlib.h>

#include "schemas/metrics/times.h"
#include "tests/fuzz.h"

/* As large as a number of the text may be: sums of several may be larger, and are no text again. */
static bool is_writable(const struct observed *times)
{
    for (size_t i = 0; i < OBSERVED_CLASSES_MAX; i++)
        if (times->counts[i] >= 1000000000000000)
            return false;
    return observed_count(times) > 0;
}

static void check_times(struct slice text)
{
    struct times_entry entry, again;
    struct buffer out = {0};
    for (size_t at = 0, from; times_next(text, &at, &entry);) {
        must(at <= text.len && entry.name.len > 0 && entry.times.sum >= 0);
        must(entry.name.data >= text.data && entry.name.data + entry.name.len <= text.data + text.len);
        char *name = strndup((const char *)entry.name.data, entry.name.len);
        must(name);
        buffer_clear(&out);
        times_append(&out, "", name, &entry.times);
        from = 0;
        if (is_writable(&entry.times) && strlen(name) > 0) {
            must(times_next(buffer_peek(&out), &from, &again));
            must(memcmp(again.times.counts, entry.times.counts, sizeof(again.times.counts)) == 0);
            must(again.times.sum - entry.times.sum < 0.001 && entry.times.sum - again.times.sum < 0.001);
        }
        free(name);
    }
    buffer_finish(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct slice text = slice_of(data, size);
    struct slice reason;
    uint64_t count;
    check_times(text);
    for (size_t at = 0; traces_next(text, &at, &reason, &count);)
        must(at <= text.len && reason.len > 0);
    return 0;
}
