#include "broker/core/state.h"

#include <stdio.h>
#include <stdlib.h>

const struct trouble *job_trouble(const struct job *job)
{
    static const struct trouble none;
    return job->trouble ? job->trouble : &none;
}

void job_clear(struct job *job)
{
    free(job->trouble);
    job->trouble = NULL;
    issued_clear(job);
}

/* ---- its history ------------------------------------------------------------------- */

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

/* The job's trouble with `sentence` as its history's newest line; NULL when out of memory. */
static struct trouble *append(struct core *core, struct job *job, struct slice sentence)
{
    const struct trouble *old = job_trouble(job);
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
    struct trouble *trouble = core_alloc(core, 1, sizeof(*trouble) + len);
    if (!trouble)
        return NULL;
    *trouble = *old;
    if (!job->trouble)
        trouble->first_ms = core->now_ms;
    trouble->len = (uint16_t)len;
    memcpy(trouble->history, text, len);
    free(job->trouble);
    job->trouble = trouble;
    return trouble;
}

/* A line's beginning and how much of `words`, of one line, still fits. */
static struct trouble *note(struct core *core, struct job *job, const char *what,
                            struct slice words)
{
    char sentence[SENTENCE_MAX + 1];
    int64_t since_ms = core->now_ms - (job->trouble ? job->trouble->first_ms : core->now_ms);
    int begun = snprintf(sentence, sizeof(sentence), "+%lld s %s%s", (long long)since_ms / 1000,
                         what, words.len ? ": " : "");
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

static struct trouble *note_failure(struct core *core, struct job *job,
                                    const struct failure *failure)
{
    const struct rollout *rollout = job_rollout(job);
    char what[SENTENCE_MAX];
    struct slice at_fault = slice_from_str(fault_wire(failure->fault));
    struct slice engine = failure->fault == FAULT_ENGINE && rollout ? engine_url(rollout->engine)
                                                                    : slice_of(NULL, 0);
    snprintf(what, sizeof(what), "%s on %.*s%s%.*s%s%.*s", outcome_wire(failure->outcome),
             SLICE_ARG(fit(failure->worker, 64)), at_fault.len ? ", " : "", SLICE_ARG(at_fault),
             engine.len ? " " : "", SLICE_ARG(fit(engine, 64)));
    return note(core, job, what, failure->detail);
}

/* ---- on disk ----------------------------------------------------------------------- */

static void persist_trouble(struct core *core, const struct job *job)
{
    const struct trouble *trouble = job_trouble(job);
    struct core_trouble row = {
        .job = job_name(core, job),
        .attempt = job->attempt,
        .infras = trouble->infras,
        .faults = trouble->tasks,
        .blames = trouble->blames,
        .deaths = trouble->deaths,
        .history = effect_copy(core, slice_of(trouble->history, trouble->len)),
        .spent = trouble->spent,
    };
    struct effect *persist = effect_push(core, PERSIST_TROUBLE);
    persist->group = group_id(job->group);
    persist->stage = job->stage;
    persist->sample = job->sample;
    persist->job = row.job;
    persist->trouble = row;
}

static uint64_t at_most(uint64_t number, uint64_t most) { return number < most ? number : most; }

bool core_restore_trouble(struct core *core, const struct core_trouble *row)
{
    static const char again[] = "the broker was started again; times count from here";
    struct job *job = job_find(core, row->job);
    if (!job || job->trouble)
        return true;
    struct slice history = fit(row->history, HISTORY_MAX);
    struct trouble *trouble = append(core, job, slice_of(NULL, 0));
    if (!trouble)
        return false;
    trouble->infras = (uint16_t)at_most(row->infras, UINT16_MAX);
    trouble->tasks = (uint16_t)at_most(row->faults, UINT16_MAX);
    trouble->blames = (uint16_t)at_most(row->blames, UINT16_MAX);
    trouble->deaths = (uint8_t)at_most(row->deaths, UINT8_MAX);
    job->attempt = (uint32_t)at_most(row->attempt, ATTEMPTS_MAX);
    trouble->spent = at_most(row->spent, core->epoch << 32); /* below this start's tokens */
    issued_spend(job, trouble->spent);
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

/* ---- budgets ----------------------------------------------------------------------- */

struct slice job_epitaph(struct core *core, const struct job *job, struct slice words)
{
    enum { DETAIL_MAX = 4096, WORDS_MAX = 2048 };
    const struct core_settings *settings = &core->settings;
    const struct trouble *trouble = job_trouble(job);
    char text[DETAIL_MAX];
    if (trouble->infras + trouble->tasks + trouble->deaths < 2)
        return words;
    int len = snprintf(
        text, sizeof(text),
        "%.*s\nset aside: %u of %llu infra outcomes, %u of %llu task outcomes, %u of %llu workers "
        "lost while it ran alone, %u lost in all\n%.*s",
        SLICE_ARG(fit(words, WORDS_MAX)), trouble->infras,
        (unsigned long long)settings->infra_budget, trouble->tasks,
        (unsigned long long)settings->task_budget, trouble->blames,
        (unsigned long long)settings->blame_budget, trouble->deaths, (int)trouble->len,
        trouble->history);
    return effect_copy(core, slice_of(text, (size_t)len));
}

static void set_aside(struct core *core, struct job *job, const struct failure *failure)
{
    job_end(core, job,
            &(struct ending){.outcome = failure->outcome,
                             .detail = job_epitaph(core, job, failure->detail),
                             .record = failure->record,
                             .eval_ms = failure->eval_ms});
}

static int64_t back_off_ms(const struct core *core, uint32_t failures)
{
    int64_t wait_ms = core->settings.retry_first_ms;
    for (uint32_t i = 1; i < failures && wait_ms < core->settings.retry_last_ms; i++)
        wait_ms *= 2;
    return wait_ms < core->settings.retry_last_ms ? wait_ms : core->settings.retry_last_ms;
}

/* The dispatch at hand is over: it is never adopted, and its failure never counts, again. */
static void spend(struct job *job)
{
    issued_spend(job, job->token);
    if (job->trouble && job->token > job->trouble->spent)
        job->trouble->spent = job->token;
}

/* Out of its place, with the failure in its history; NULL when out of memory. */
static struct trouble *take_failed(struct core *core, struct job *job,
                                   const struct failure *failure)
{
    struct rollout *rollout = job_rollout(job);
    job_leave(core, job);
    core->counters.infra += failure->outcome == OUTCOME_INFRA;
    core->counters.task += failure->outcome == OUTCOME_TASK;
    if (rollout && job->stage == STAGE_RUN && failure->outcome == OUTCOME_INFRA)
        rollout->avoids_engine = true;
    struct trouble *trouble = note_failure(core, job, failure);
    spend(job);
    return trouble;
}

/* What its run left cannot be read, whoever tried: the run is done again, once, from init's layer. */
static bool must_run_again(struct job *job, const struct failure *failure)
{
    return job->stage == STAGE_EVAL && failure->outcome == OUTCOME_INFRA &&
           failure->fault == FAULT_STORE && !job_rollout(job)->is_run_again;
}

/* Of the first run and its evaluations nothing counts any more, on disk neither. */
static void run_again(struct core *core, struct job *job)
{
    struct rollout *rollout = job_rollout(job);
    struct slice rollout_id = effect_print(core, "%s/%u", job->group->id, job->sample);
    struct effect *persist = effect_push(core, PERSIST_AGAIN);
    persist->group = group_id(job->group);
    persist->rollout = rollout_id;
    persist->sample = job->sample;
    rollout->is_run_again = true;
    rollout->record_bytes = 0;
    free(rollout->detail);
    rollout->detail = NULL;
    core->counters.run_again++;
    job_begin_stage(job, STAGE_RUN);
    job_queue(core, job, false);
}

void job_fail(struct core *core, struct job *job, const struct failure *failure)
{
    struct trouble *trouble = take_failed(core, job, failure);
    if (!trouble)
        return;
    bool is_task = failure->outcome == OUTCOME_TASK;
    uint16_t *count = is_task ? &trouble->tasks : &trouble->infras;
    *count += *count < UINT16_MAX;
    if (*count >= (is_task ? core->settings.task_budget : core->settings.infra_budget)) {
        if (must_run_again(job, failure))
            run_again(core, job);
        else
            set_aside(core, job, failure);
        return;
    }
    persist_trouble(core, job);
    job_delay(core, job, back_off_ms(core, *count));
}

void job_excuse(struct core *core, struct job *job, const struct failure *failure)
{
    core->counters.excused++;
    if (take_failed(core, job, failure))
        job_queue(core, job, false); /* others try first what it has failed at */
}

static void begin_again(struct core *core, struct job *job)
{
    job_leave(core, job);
    spend(job);
    job_queue(core, job, true);
}

void job_vanish(struct core *core, struct job *job)
{
    struct trouble *trouble = job->trouble ? job->trouble : append(core, job, slice_of(NULL, 0));
    core->counters.vanished++;
    if (!trouble)
        return;
    trouble->vanished += trouble->vanished < UINT8_MAX;
    if (trouble->vanished > core->settings.infra_budget || trouble->vanished == UINT8_MAX) {
        static const char why[] = "it was handed out again and again, and no worker kept it";
        job_fail(core, job, &(struct failure){.outcome = OUTCOME_INFRA,
                                              .worker = slice_from_str("no worker"),
                                              .detail = slice_from_str(why)});
        return;
    }
    begin_again(core, job);
}

void job_return(struct core *core, struct job *job)
{
    core->counters.returned++;
    begin_again(core, job);
}

void job_evict(struct core *core, struct job *job)
{
    core->counters.mixed++;
    job_withdraw(core, job);
    begin_again(core, job);
}

void job_refresh(struct core *core, struct job *job)
{
    core->counters.refreshed++;
    begin_again(core, job);
}

void job_outlive(struct core *core, struct job *job, struct slice worker, bool alone)
{
    job_leave(core, job);
    struct slice name = effect_copy(core, worker);
    struct trouble *trouble = note(core, job, alone ? "its worker was lost, it ran there alone"
                                                    : "its worker was lost", name);
    core->counters.suspects++;
    if (!trouble)
        return;
    trouble->deaths += trouble->deaths < UINT8_MAX;
    if (alone) {
        core->counters.blamed++;
        trouble->blames += trouble->blames < UINT16_MAX;
    }
    if (trouble->blames < core->settings.blame_budget) {
        persist_trouble(core, job);
        job_queue(core, job, true);
        return;
    }
    struct slice why = effect_print(core, "its worker %.*s was lost while it ran there alone",
                                    SLICE_ARG(name));
    set_aside(core, job, &(struct failure){.outcome = OUTCOME_INFRA, .detail = why});
}
