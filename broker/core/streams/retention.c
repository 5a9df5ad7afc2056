/*
 * What trajectories a stream keeps. Of each that is not acknowledged the core knows
 * its weight and its age (a ring of 16 bytes each, by number). Where a setting bounds
 * them, the oldest beyond are forgotten as by an acknowledgement, once a head period
 * and never before they were published: only numbers that were there a period ago.
 */
#include "broker/core/streams/retention.h"
#include "broker/core/state/effects.h"
#include "broker/core/state/state.h"
#include "broker/core/streams/quotas.h"

#include <stdlib.h>

struct kept {
    uint64_t bytes;    /* of its record */
    uint64_t ended_ms; /* by the ledger's clock */
};

enum { RING_LEAST = 64 };

static struct kept *kept_at(const struct stream *stream, uint64_t seq)
{
    return &stream->kept[seq & (stream->kept_capacity - 1)];
}

static uint64_t weigh(const struct stream *stream, uint64_t seq) { return RESULT_BYTES + kept_at(stream, seq)->bytes; }

/* ---- the ring ---------------------------------------------------------------------- */

/* Numbers from stream->first on keep their place; as many are moved as either ring holds. */
static bool resize(struct core *core, struct stream *stream, size_t capacity)
{
    struct kept *ring = core_alloc(core, capacity, sizeof(*ring));
    if (!ring)
        return false;
    size_t moved = capacity < stream->kept_capacity ? capacity : stream->kept_capacity;
    for (uint64_t seq = stream->first; seq < stream->first + moved; seq++)
        ring[seq & (capacity - 1)] = *kept_at(stream, seq);
    free(stream->kept);
    stream->kept = ring;
    stream->kept_capacity = capacity;
    return true;
}

static bool make_room(struct core *core, struct stream *stream, uint64_t seq)
{
    size_t capacity = stream->kept_capacity ? stream->kept_capacity : RING_LEAST;
    while (capacity < seq - stream->first + 1 && capacity < SIZE_MAX / 2)
        capacity *= 2;
    return capacity == stream->kept_capacity || resize(core, stream, capacity);
}

static void shrink(struct core *core, struct stream *stream)
{
    uint64_t count = stream->head + 1 - stream->first;
    if (!count && stream->kept_capacity > RING_LEAST) {
        free(stream->kept);
        stream->kept = NULL;
        stream->kept_capacity = 0;
    } else if (stream->kept_capacity > RING_LEAST && count < stream->kept_capacity / 8) {
        resize(core, stream, stream->kept_capacity / 4);
    }
}

/* ---- coming and going -------------------------------------------------------------- */

void retention_note(struct core *core, struct stream *stream, uint64_t seq, uint64_t bytes, uint64_t ended_ms)
{
    if (seq >= stream->first && make_room(core, stream, seq))
        *kept_at(stream, seq) = (struct kept){bytes, ended_ms};
}

static void take(struct core *core, struct stream *stream, uint64_t seq)
{
    stream->kept_bytes += weigh(stream, seq);
    quota_take(core, stream->owner, QUOTA_RESULTS, 1);
    quota_take(core, stream->owner, QUOTA_RESULTS_BYTES, weigh(stream, seq));
}

void retention_keep(struct core *core, struct stream *stream, uint64_t bytes)
{
    retention_note(core, stream, stream->head, bytes, (uint64_t)core_clock_ms(core));
    if (!core->failed)
        take(core, stream, stream->head);
}

void retention_restore(struct core *core, struct stream *stream)
{
    if (stream->head < stream->first || !make_room(core, stream, stream->head))
        return;
    for (uint64_t seq = stream->first; seq <= stream->head; seq++)
        take(core, stream, seq);
}

void retention_drop(struct core *core, struct stream *stream, uint64_t seq)
{
    uint64_t bytes = 0, count = 0;
    for (uint64_t at = stream->first; at <= seq && !core->failed; at++, count++)
        bytes += weigh(stream, at);
    stream->kept_bytes -= bytes;
    quota_release(core, stream->owner, QUOTA_RESULTS, count);
    quota_release(core, stream->owner, QUOTA_RESULTS_BYTES, bytes);
    stream->first += count;
    shrink(core, stream);
}

uint64_t retention_weigh(const struct stream *stream)
{
    uint64_t bytes = 0;
    for (uint64_t seq = stream->first; seq <= stream->head; seq++)
        bytes += weigh(stream, seq);
    return bytes;
}

/* ---- what is too much -------------------------------------------------------------- */

static bool is_beyond(const struct core *core, const struct stream *stream, uint64_t oldest, uint64_t bytes)
{
    const struct core_settings *keep = &core->settings;
    uint64_t count = stream->head + 1 - oldest;
    int64_t age_ms = core_age_ms(core, kept_at(stream, oldest)->ended_ms);
    return (keep->keep_count && count > keep->keep_count) || (keep->keep_bytes && bytes > keep->keep_bytes) ||
           (keep->keep_time_ms && age_ms > keep->keep_time_ms);
}

struct slice retention_words(struct core *core, const struct stream *stream, uint64_t seq)
{
    static const char acknowledged[] = "acknowledged";
    if (seq > stream->expired_to)
        return slice_from_str(acknowledged);
    return effect_print(core,
                        "forgotten by the broker's --keep-count, --keep-bytes or --keep-time (the "
                        "last of them was %llu)",
                        (unsigned long long)stream->expired_to);
}

uint64_t retention_excess(const struct core *core, struct stream *stream)
{
    uint64_t seq = stream->first, bytes = stream->kept_bytes;
    for (; seq <= stream->ripe && is_beyond(core, stream, seq, bytes); seq++)
        bytes -= weigh(stream, seq);
    stream->ripe = stream->head;
    return seq - 1;
}
