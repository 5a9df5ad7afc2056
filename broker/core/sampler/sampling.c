#include "broker/core/sampler/sampling.h"
#include "broker/core/queue/forgetting.h"
#include "broker/core/queue/groups.h"
#include "broker/core/sampled/sampled.h"
#include "broker/core/state/effects.h"
#include "broker/core/state/state.h"

/* ---- verdicts ------------------------------------------------------------------------------ */

static void drop(struct core *core, struct sampled *sampled, enum sampler_count verdict)
{
    struct sampler *sampler = sampled->sampler;
    sampled->row.verdict = verdict;
    sampler_count(sampler, verdict, 1);
    sampler_count(sampler, verdict == SAMPLER_CANCELLED ? SAMPLER_TOKENS_CANCELLED : SAMPLER_TOKENS_DROPPED,
                  sampled->row.tokens);
    sampled_move(core, sampled, SAMPLED_DROPPED);
}

static void conclude(struct core *core, struct sampled *sampled)
{
    const enum sampler_count verdict = sampled_judge(core, sampled);
    sampler_remember(sampled->sampler, verdict);
    if (verdict != SAMPLER_KEPT) {
        drop(core, sampled, verdict);
        return;
    }
    sampled->row.verdict = SAMPLER_KEPT;
    sampled_move(core, sampled, SAMPLED_READY);
}

/* Of those that something was noted of. They stay noted: what became of them is written at the end. */
static void judge(struct core *core, struct sampler *sampler)
{
    struct sampled *sampled;
    LIST_EACH(sampled, &sampler->changed, noted) {
        const bool is_open = sampled->row.state == SAMPLED_HELD || sampled->row.state == SAMPLED_LIVE;
        if (is_open && !sampled->group)
            conclude(core, sampled);
        else if (sampled->row.state == SAMPLED_LIVE)
            sampled_rank(core, sampled);
    }
}

/* Those that were good and are so no longer. */
static void drop_spoiled(struct core *core, struct sampler *sampler)
{
    struct sampled *sampled;
    if (!sampler->is_spoiled)
        return;
    sampler->is_spoiled = false;
    LIST_EACH(sampled, &sampler->groups[SAMPLED_READY], link) {
        if (!sampled->row.is_forgotten && !sampled_is_stale(core, sampled))
            continue;
        drop(core, sampled, sampled->row.is_forgotten ? SAMPLER_FORGOTTEN : SAMPLER_STALE);
    }
}

/* Of more than an answer may name, the earliest are only counted. */
static void trim_dropped(struct core *core, struct sampler *sampler)
{
    while (sampler->counts[SAMPLED_DROPPED] > SAMPLER_LISTED_MAX) {
        sampler->row.unlisted++;
        sampler->is_changed = true;
        sampled_remove(core, container_of(sampler->groups[SAMPLED_DROPPED].next, struct sampled, link));
    }
}

/* ---- what is no longer needed ------------------------------------------------------------------ */

static void let_go(struct core *core, struct sampler *sampler)
{
    const struct heap_node *first = heap_peek(&sampler->needed);
    const uint64_t up_to = first ? (uint64_t)first->key - 1 : sampler->stream->head;
    if (up_to >= sampler->stream->first)
        stream_acknowledge(core, sampler->stream, up_to);
}

/* ---- answers -------------------------------------------------------------------------------------- */

static void send_waits(struct core *core, const struct sampler *sampler)
{
    char why[SAMPLER_WHY_MAX + 1];
    sampler_why(core, sampler, why);
    struct msg_sampler_waits waits = {.tag = sampler->wait.tag,
                                      .stream = stream_name(sampler->stream),
                                      .batch = sampler->row.batch + 1,
                                      .ready = sampler->counts[SAMPLED_READY],
                                      .live = sampler->counts[SAMPLED_LIVE],
                                      .held = sampler->counts[SAMPLED_HELD],
                                      .submitted = sampler->row.submitted,
                                      .why = slice_from_str(why)};
    send_client(core, slice_of(sampler->wait.client, sampler->wait.client_len), MSG_sampler_waits, &waits);
}

static struct call waiting_call(const struct sampler *sampler)
{
    const struct sampler_wait *wait = &sampler->wait;
    return (struct call){.client = slice_of(wait->client, wait->client_len),
                         .id = sampler->row.is_closing ? MSG_sampler_close : MSG_sampler_next,
                         .tag = wait->tag};
}

/* Another client closes it, too, and waits from now on. */
static void send_closing(struct core *core, const struct sampler *sampler)
{
    const struct call call = waiting_call(sampler);
    send_refused(core, &call, REFUSAL_QUEUE_FULL, "stream", RETRY_AFTER_MS,
                 "the sampler of %s is being closed for another client; try again later", sampler->stream->name);
}

void sampler_end_wait(struct core *core, struct sampler *sampler)
{
    if (sampler->wait.is_waiting && sampler->row.is_closing)
        send_closing(core, sampler);
    else if (sampler->wait.is_waiting)
        send_waits(core, sampler);
    sampler_stop_waiting(core, sampler);
}

/* Were it told to ask again, the two would take the sampler from each other as fast as they can. */
void sampler_refuse_wait(struct core *core, struct sampler *sampler)
{
    const struct call call = waiting_call(sampler);
    if (sampler->wait.is_waiting && !sampler->row.is_closing)
        send_refused(core, &call, REFUSAL_NOT_ALLOWED, "trainer", 0,
                     "another process that calls itself %s, too, has asked for a batch of %s since: one trainer asks "
                     "at a time; give each process another trainer name, and a stream of its own",
                     sampler->trainer, sampler->stream->name);
    else
        sampler_end_wait(core, sampler);
    sampler_stop_waiting(core, sampler);
}

static void answer(struct core *core, struct sampler *sampler, bool is_made, bool ran_dry)
{
    struct sampler_wait *wait = &sampler->wait;
    if (!wait->is_waiting || sampler->row.is_closing || (!is_made && !ran_dry && wait->due.key > core->now_ms))
        return;
    if (is_made)
        sampler_send_batch(core, sampler, slice_of(wait->client, wait->client_len), wait->tag);
    else
        send_waits(core, sampler);
    sampler_stop_waiting(core, sampler);
}

/* ---- a step's end ------------------------------------------------------------------------------------ */

static void write_rows(struct core *core, struct sampler *sampler)
{
    while (!list_is_empty(&sampler->changed)) {
        struct sampled *sampled = container_of(sampler->changed.next, struct sampled, noted);
        list_remove(&sampled->noted);
        sampled_persist(core, sampled, true);
    }
    if (sampler->is_changed)
        sampler_persist(core, sampler);
    sampler->is_changed = false;
}

static void settle_one(struct core *core, struct sampler *sampler)
{
    const bool had_some = sampler->counts[SAMPLED_HELD] > 0;
    bool is_made = false;
    do { /* again where a full batch has cancelled what was left */
        judge(core, sampler);
        drop_spoiled(core, sampler);
    } while (sampler_make_batch(core, sampler) && (is_made = true));
    if (!sampler->row.is_closing)
        sampler_release(core, sampler);
    trim_dropped(core, sampler);
    const bool ran_dry = had_some && !sampler->counts[SAMPLED_HELD] &&
                         sampler->counts[SAMPLED_LIVE] < sampler_wanted(sampler);
    answer(core, sampler, is_made, ran_dry);
    let_go(core, sampler);
    write_rows(core, sampler);
}

void samplers_settle(struct core *core)
{
    while (!list_is_empty(&core->noted_samplers)) {
        struct sampler *sampler = container_of(core->noted_samplers.next, struct sampler, noted);
        settle_one(core, sampler);
        list_remove(&sampler->noted);
    }
}

/* ---- times --------------------------------------------------------------------------------------------- */

static const struct ending closed = {.outcome = OUTCOME_CANCELLED};

/* The oldest of its groups that the close still has to cancel, or NULL. */
static struct sampled *next_to_close(const struct sampler *sampler)
{
    const unsigned states[] = {SAMPLED_HELD, SAMPLED_LIVE};
    for (size_t i = 0; i < (sampler->row.cancels ? 2 : 1); i++)
        if (!list_is_empty(&sampler->groups[states[i]]))
            return container_of(sampler->groups[states[i]].next, struct sampled, link);
    return NULL;
}

/* In slices, as there may be very many. */
static void close_step(struct core *core, struct sampler *sampler)
{
    struct sampled *sampled;
    const uint64_t before = sampler->row.close_count;
    while ((sampled = next_to_close(sampler)) && sampler->row.close_count - before < SWEEP_SLICE) {
        sampler->row.close_count += sampled->group ? sampled->group->work->live : 0;
        if (sampled->group)
            group_end(core, sampled->group, &closed);
        conclude(core, sampled);
    }
    sampler->is_changed = true;
    sampler_note(core, sampler);
    if (sampled)
        return;
    const struct sampler_wait *wait = &sampler->wait;
    struct msg_done done = {.tag = wait->tag, .count = sampler->row.close_count};
    if (wait->is_waiting)
        send_client(core, slice_of(wait->client, wait->client_len), MSG_done, &done);
    sampler_persist_removed(core, sampler);
    sampler_destroy(core, sampler);
}

void samplers_tick(struct core *core)
{
    struct heap_node *first;
    while ((first = heap_peek(&core->sampler_waits)) && first->key <= core->now_ms) {
        struct sampler *sampler = container_of(first, struct sampler, wait.due);
        heap_remove(&core->sampler_waits, first);
        sampler_note(core, sampler);
    }
    struct sampler *sampler;
    LIST_EACH(sampler, &core->samplers, link)
        if (sampler->row.is_closing) {
            close_step(core, sampler);
            return;
        }
}

int64_t samplers_due(const struct core *core)
{
    const struct sampler *sampler;
    LIST_EACH(sampler, &core->samplers, link)
        if (sampler->row.is_closing)
            return core->now_ms;
    const struct heap_node *first = heap_peek(&core->sampler_waits);
    return first ? first->key : INT64_MAX;
}
