/* What has gone wrong with a job so far: its counts and, as sentences, its history. */
#include "broker/core/queue/history.h"
#include "broker/core/queue/fencing_tokens.h"
#include "broker/core/state/effects.h"
#include "broker/core/state/state.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- its history ------------------------------------------------------------------- */

const struct job_failures *job_failures(const struct job *job)
{
    static const struct job_failures none;
    return job->course->failures ? job->course->failures : &none;
}

void job_clear(struct job *job)
{
    if (job->course == &job_course_empty)
        return;
    struct job_course *course = job_course(job);
    job->course = &job_course_empty;
    fencing_tokens_clear(course);
    free(course->failures);
    free(course);
}

/* The most of `text` that fits into `size` bytes without cutting a character. */
static struct slice fit(struct slice text, size_t size)
{
    if (text.len <= size)
        return text;
    while (size > 0 && (text.data[size] & 0xc0) == 0x80)
        size--;
    return slice_of(text.data, size);
}

/* Takes out the oldest line but for the first, and leaves dots for it. False if there is none. */
static bool drop_line(char *text, size_t *len)
{
    static const char dots[] = "...\n";
    char *first = memchr(text, '\n', *len), *end = text + *len;
    if (!first)
        return false;
    char *line = first + 1;
    bool has_dots = (size_t)(end - line) >= strlen(dots) && !memcmp(line, dots, strlen(dots));
    line += has_dots ? strlen(dots) : 0;
    char *next = memchr(line, '\n', (size_t)(end - line));
    if (!next)
        return false;
    char *to = has_dots ? line : line + strlen(dots);
    memmove(to, next + 1, (size_t)(end - next - 1));
    memcpy(to - strlen(dots), dots, strlen(dots));
    *len = (size_t)(to - text) + (size_t)(end - next - 1);
    return true;
}

/* The job's failures with `sentence` as its history's newest line; NULL when out of memory. */
static struct job_failures *append(struct core *core, struct job *job, struct slice sentence)
{
    const struct job_failures *old = job_failures(job);
    char text[HISTORY_MAX + SENTENCE_MAX + 8];
    size_t len = old->len;
    memcpy(text, old->history, len);
    if (len && sentence.len)
        text[len++] = '\n';
    if (sentence.len)
        memcpy(text + len, sentence.data, sentence.len);
    len += sentence.len;
    while (len > HISTORY_MAX && drop_line(text, &len))
        ;
    len = fit(slice_of(text, len), HISTORY_MAX).len;
    struct job_course *course = job_course_open(core, job);
    struct job_failures *failures = course ? core_alloc(core, 1, sizeof(*failures) + len) : NULL;
    if (!failures)
        return NULL;
    *failures = *old;
    if (!course->failures)
        failures->first_ms = core->now_ms;
    failures->len = (uint16_t)len;
    memcpy(failures->history, text, len);
    free(course->failures);
    course->failures = failures;
    return failures;
}

struct job_failures *history_open(struct core *core, struct job *job)
{
    return job->course->failures ? job->course->failures : append(core, job, slice_of(NULL, 0));
}

struct job_failures *history_note(struct core *core, struct job *job, const char *what, struct slice words)
{
    char sentence[SENTENCE_MAX + 1];
    int64_t since_ms = core->now_ms - (job->course->failures ? job->course->failures->first_ms : core->now_ms);
    int begun = snprintf(sentence, sizeof(sentence), "+%lld s %s%s", (long long)since_ms / 1000, what,
                         words.len ? ": " : "");
    size_t len = begun < SENTENCE_MAX ? (size_t)begun : SENTENCE_MAX;
    words = fit(words, SENTENCE_MAX - len);
    if (words.len)
        memcpy(sentence + len, words.data, words.len);
    len += words.len;
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)sentence[i] < ' ')
            sentence[i] = ' ';
    return append(core, job, fit(slice_of(sentence, len), SENTENCE_MAX));
}

struct job_failures *history_note_failure(struct core *core, struct job *job, const struct failure *failure)
{
    char what[SENTENCE_MAX];
    struct slice at_fault = slice_from_str(fault_wire(failure->fault));
    struct slice engine = failure->fault == FAULT_ENGINE ? engine_url(job_engine(job)) : slice_of(NULL, 0);
    snprintf(what, sizeof(what), "%s on %.*s%s%.*s%s%.*s", outcome_wire(failure->outcome),
             SLICE_ARG(fit(failure->worker, 64)), at_fault.len ? ", " : "", SLICE_ARG(at_fault), engine.len ? " " : "",
             SLICE_ARG(fit(engine, 64)));
    struct job_failures *failures = history_note(core, job, what, failure->detail);
    if (failures)
        failures->by_handler = failure->fault == FAULT_HANDLER;
    return failures;
}

void history_persist(struct core *core, const struct job *job)
{
    const struct job_failures *failures = job_failures(job);
    struct core_failures row = {
        .job = job_name(core, job),
        .attempt = job->course->attempt,
        .infras = failures->infras,
        .faults = failures->tasks,
        .blames = failures->blames,
        .deaths = failures->deaths,
        .missing = failures->missing,
        .history = effect_copy(core, slice_of(failures->history, failures->len)),
        .fenced_up_to = failures->fenced_up_to,
    };
    struct effect *persist = effect_push(core, PERSIST_FAILURES);
    persist->group = effect_copy(core, group_id(job->group));
    persist->stage = job->stage;
    persist->sample = job->sample;
    persist->job = row.job;
    persist->failures = row;
}

static uint64_t at_most(uint64_t number, uint64_t most) { return number < most ? number : most; }

bool history_restore(struct core *core, struct job *job, const struct core_failures *row)
{
    static const char again[] = "the broker was started again; times count from here";
    struct slice history = fit(row->history, HISTORY_MAX);
    struct job_failures *failures = append(core, job, slice_of(NULL, 0));
    if (!failures)
        return false;
    failures->infras = (uint16_t)at_most(row->infras, UINT16_MAX);
    failures->tasks = (uint16_t)at_most(row->faults, UINT16_MAX);
    failures->blames = (uint16_t)at_most(row->blames, UINT16_MAX);
    failures->deaths = (uint8_t)at_most(row->deaths, UINT8_MAX);
    failures->missing = (uint8_t)at_most(row->missing, UINT8_MAX);
    job_course(job)->attempt = (uint32_t)at_most(row->attempt, ATTEMPTS_MAX);
    failures->fenced_up_to = at_most(row->fenced_up_to, core->epoch << 32); /* below this start's tokens */
    fencing_tokens_fence(job, failures->fenced_up_to);
    while (history.len) { /* line by line: a sentence's length is bounded again */
        const uint8_t *end = memchr(history.data, '\n', history.len);
        size_t len = end ? (size_t)(end - history.data) : history.len;
        if (!append(core, job, fit(slice_of(history.data, len), SENTENCE_MAX)))
            return false;
        len += end != NULL;
        history = slice_of(history.data + len, history.len - len);
    }
    return append(core, job, slice_from_str(again)) != NULL;
}

struct slice failure_summary(struct core *core, const struct job *job, struct slice words)
{
    enum { DETAIL_MAX = 4096, WORDS_MAX = 2048 };
    const struct core_settings *settings = &core->settings;
    const struct job_failures *failures = job_failures(job);
    char text[DETAIL_MAX];
    if (failures->infras + failures->tasks + failures->deaths < 2)
        return words;
    int len = snprintf(text, sizeof(text),
                       "%.*s\nset aside: %u of %llu infra outcomes, %u of %llu task outcomes, %u of %llu workers "
                       "lost while it ran alone, %u lost in all\n%.*s",
                       SLICE_ARG(fit(words, WORDS_MAX)), failures->infras, (unsigned long long)settings->infra_budget,
                       failures->tasks, (unsigned long long)settings->task_budget, failures->blames,
                       (unsigned long long)settings->blame_budget, failures->deaths, (int)failures->len,
                       failures->history);
    return effect_copy(core, slice_of(text, (size_t)len));
}
