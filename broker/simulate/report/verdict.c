#include "broker/simulate/report/verdict.h"

#include <math.h>
#include <stdio.h>

#include "broker/simulate/report/numbers.h"

enum { KEEPS_UP_PERCENT = 95 };

static const struct {
    const char *key, *words, *remedy;
} parts[] = {
#define X(name, key, words, remedy) {key, words, remedy},
    PARTS(X)
#undef X
};

const char *part_key(enum part part) { return parts[part].key; }
const char *part_words(enum part part) { return parts[part].words; }

static bool is_engine(enum part part) { return part == PART_SAMPLING || part == PART_PROMPTS; }

/* The part that can do least, of those that more of `but` would not help; PART_COUNT: none takes time. */
static enum part least(const struct figures *figures, enum part but)
{
    enum part best = PART_COUNT;
    for (enum part part = 0; part < PART_COUNT; part++) {
        double per_hour = figures->parts[part].per_hour;
        if (part == but || (but < PART_COUNT && is_engine(part) && is_engine(but)) || isinf(per_hour))
            continue;
        if (best == PART_COUNT || per_hour < figures->parts[best].per_hour)
            best = part;
    }
    return best;
}

static void write_text(struct verdict *verdict, const struct figures *figures, const struct load *load)
{
    const struct part_figures *first = &figures->parts[verdict->first];
    char has[32], can[32], wanted[32], then[32], submitted[32];
    print_count((double)first->has, has);
    print_count(first->per_hour, can);
    print_count(load->per_hour, submitted);
    int len = verdict->keeps_up
                  ? snprintf(verdict->text, sizeof(verdict->text),
                             "nothing: it keeps up with %s rollouts/hour. First short would be %s: with %s at "
                             "most %s rollouts/hour.",
                             submitted, parts[verdict->first].words, has, can)
                  : snprintf(verdict->text, sizeof(verdict->text), "%s: with %s at most %s rollouts/hour.",
                             parts[verdict->first].words, has, can);
    if (!verdict->has_next)
        return;
    print_count((double)verdict->wanted, wanted);
    print_count(figures->parts[verdict->next].per_hour, then);
    snprintf(verdict->text + len, sizeof(verdict->text) - (size_t)len,
             " Add %s: from %s on%s, the next bottleneck is %s, at %s rollouts/hour.", parts[verdict->first].remedy,
             wanted, verdict->first == PART_PROMPTS ? " (fewer, as more of them also cache more)" : "",
             parts[verdict->next].words, then);
}

struct verdict figures_judge(const struct figures *figures, const struct load *load)
{
    struct verdict verdict = {.first = least(figures, PART_COUNT)};
    const struct part_figures *first = &figures->parts[verdict.first];
    verdict.next = least(figures, verdict.first);
    verdict.has_next = verdict.next < PART_COUNT;
    verdict.keeps_up = load->per_hour > 0 && load->per_hour * 100 < first->per_hour * KEEPS_UP_PERCENT;
    if (verdict.has_next)
        verdict.wanted = (uint64_t)ceil((double)first->has * figures->parts[verdict.next].per_hour / first->per_hour);
    write_text(&verdict, figures, load);
    return verdict;
}
