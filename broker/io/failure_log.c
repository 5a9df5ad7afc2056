/*
 * What failed, in the log: rollouts that ended as task or infra, and engines and images that fail or are well again.
 * There may be a million of them: each of these three has a line_budget. So a day of nothing else is less than 30 MB
 * of log; `sluice list` has all.
 */
#include "broker/io/inner.h"

#include <stdio.h>

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/text.h"

enum { WORDS_MAX = 500 /* bytes */ };

/* Of why a rollout ended that was set aside after retries: without their history, which the trajectory has. */
static struct slice without_history(struct slice detail)
{
    static const char mark[] = "\nset aside: ";
    const uint8_t *at = memmem(detail.data, detail.len, mark, strlen(mark));
    return at ? slice_of(detail.data, (size_t)(at - detail.data)) : detail;
}

/* What a value in double quotes may hold: no quote, and of several lines one. */
static const char *quotable(struct slice words, char text[WORDS_MAX + 1])
{
    const struct slice fits = text_cut_slice(words, WORDS_MAX);
    snprintf(text, WORDS_MAX + 1, "%.*s", SLICE_ARG(fits));
    for (char *at = text; *at; at++)
        *at = *at == '"' ? '\'' : *at == '\n' ? ' ' : *at;
    return text;
}

static void log_end(struct io *io, const struct core_end *end, int64_t now_ms)
{
    const bool is_infra = end->outcome == OUTCOME_INFRA;
    char words[WORDS_MAX + 1];
    uint64_t unsaid;
    if (!line_budget_take(is_infra ? &io->infra_lines : &io->task_lines, now_ms, &unsaid))
        return;
    log_event(is_infra ? LOG_WARN : LOG_INFO, "rollout.failed",
              "outcome=%s rollout=%.*s stream=%.*s seq=%llu attempt=%llu engine=\"%.*s\" why=\"%s\" unsaid=%llu",
              outcome_wire(end->outcome), SLICE_ARG(end->rollout), SLICE_ARG(end->stream), (unsigned long long)end->seq,
              (unsigned long long)end->attempt, SLICE_ARG(end->engine), quotable(without_history(end->detail), words),
              (unsigned long long)unsaid);
}

void io_log_ends(struct io *io, struct effects effects, int64_t now_ms)
{
    for (size_t i = 0; i < effects.count; i++) {
        const struct effect *effect = &effects.items[i];
        if (effect->kind == PERSIST_END &&
            (effect->end.outcome == OUTCOME_TASK || effect->end.outcome == OUTCOME_INFRA))
            log_end(io, &effect->end, now_ms);
    }
}

int io_log_health(struct io *io, const struct effect *effect, struct fail *fail)
{
    (void)fail;
    const struct core_health *health = &effect->health;
    const bool is_well = strcmp(health->news, "healthy") == 0;
    char words[WORDS_MAX + 1];
    uint64_t unsaid;
    if (line_budget_take(&io->health_lines, clock_ms(), &unsaid))
        log_event(is_well ? LOG_INFO : LOG_WARN, health->is_image ? "image.health" : "engine.health",
                  "of=\"%.*s\" news=%s faults=%llu retry_in_ms=%llu why=\"%s\" unsaid=%llu", SLICE_ARG(health->name),
                  health->news, (unsigned long long)health->faults, (unsigned long long)health->retry_ms,
                  quotable(effect->detail, words), (unsigned long long)unsaid);
    return 0;
}
