/*
 * The core against a simulated world (core_model.h): a thousand random steps a
 * seed, core_check after each, then calm: everything that was accepted must have
 * ended exactly once, with numbers that have no gaps. CORE_MODEL_SEED tries one seed,
 * CORE_MODEL_SEEDS so many: 1000 are a million steps.
 */
#include "tests/broker/core/core_model.h"

enum { SEEDS = 150, STEPS = 1000, CALM_STEPS = 3000 };

/* It is of a run that was done again since. */
static void count_crossed(struct model *model, const struct letter *letter)
{
    const struct row_rollout *rollout = find_rollout(model, slice_from_str(letter->job + 5 - (letter->job[0] == 'r')));
    bool is_first = strcmp(letter->outcome, "ok") == 0 && letter->mark != rollout->mark;
    model->crossed += is_first && letter->job[0] == 'e' && !rollout->ended;
}

/* Whether a run's group is bound to something else than it was sampled with. */
static bool is_other(struct model *model, struct slice rollout, char serves)
{
    const struct row_group *group = find_group(model, slice_of(rollout.data, rollout.len - 2));
    return group && group->serves && group->serves != serves;
}

/* The same of every copy of a result, as it would be. */
static void add_evaluation(struct model *model, const struct letter *letter, struct msg_job_result *in)
{
    static const char *const ends[] = {"ok", "ok", "ok", "task", "agent", "odd"};
    const struct slice rollout = slice_from_str(letter->job + strlen("run:"));
    const bool has_ended = strcmp(letter->outcome, "ok") == 0 || strcmp(letter->outcome, "agent") == 0;
    if (!has_ended || !is_evaluated_there(slice_of(rollout.data, rollout.len - 2)))
        return;
    in->eval_outcome = slice_from_str(ends[letter->mark % (sizeof(ends) / sizeof(*ends))]);
    in->eval_detail = slice_from_str("judged there");
    in->has_eval_outcome = in->has_eval_detail = true;
    in->has_reward = slice_is(in->eval_outcome, "ok");
    model->there++;
}

/* An evaluation that a teacher scored: its record is the run's, with the run's mark. */
static bool is_taught(const struct letter *letter)
{
    return letter->mark % 3 == 1 && strcmp(letter->outcome, "ok") == 0;
}

static void deliver_letters(struct model *model)
{
    for (size_t i = 0; i < model->wire_count;) {
        struct letter letter = model->wire[i];
        if (letter.due_ms > model->now_ms) {
            i++;
            continue;
        }
        model->wire[i] = model->wire[--model->wire_count];
        bool is_eval = strncmp(letter.job, "eval", 4) == 0, is_init = strncmp(letter.job, "init", 4) == 0;
        char *record = model->records[model->record_count];
        record[0] = '\0';
        if (!is_init)
            count_crossed(model, &letter);
        if (!is_init && (!is_eval || is_taught(&letter)))
            snprintf(model->records[model->record_count++], sizeof(model->records[0]), "%u", letter.mark);
        struct msg_job_result in = {.worker = slice_from_str(letter.worker),
                                    .job = slice_from_str(letter.job),
                                    .token = letter.token,
                                    .outcome = slice_from_str(letter.outcome),
                                    .ms = 10,
                                    .fault = slice_from_str(letter.fault),
                                    .has_fault = letter.fault,
                                    .detail = slice_from_str("so it was"),
                                    .has_detail = true,
                                    .record = slice_from_str(record),
                                    .has_record = record[0] != 0,
                                    .reward = letter.mark,
                                    .has_reward = is_eval,
                                    .raw_reward = letter.mark % 3 == 0,
                                    .has_raw_reward = is_eval,
                                    .sampled_tokens = letter.mark % 50,
                                    .has_sampled_tokens = !is_init && !is_eval,
                                    .oldest_version = letter.mark % 5,
                                    .has_oldest_version = !is_init && !is_eval && letter.mark % 5};
        if (record[0] && letter.serves && !is_eval) {
            const size_t len = strlen(record);
            record[len] = letter.serves;
            record[len + 1] = '\0';
            model->mixed += is_other(model, slice_from_str(letter.job + strlen("run:")), letter.serves);
            in.record = slice_from_str(record);
            in.tokenizer_digest = in.template_digest = slice_of(record + len, 1);
            in.has_template_digest = true;
        }
        if (!is_init && !is_eval)
            add_evaluation(model, &letter, &in);
        core_handle(model->core, model->now_ms, wall_of(model),
                    &(struct caller){.name = slice_from_str(key_of(letter.worker))}, MSG_job_result, &in, NULL, 0);
    }
}

/* An admin asks, which renews no lease. */
static void ask_standing(struct model *model, unsigned stream, char ret[STANDING_MAX])
{
    const struct caller admin = {.route = slice_from_str("route"), .name = slice_from_str("root"), .is_admin = true};
    struct msg_sampler_get in = {.tag = 1, .stream = slice_from_str(stream_names[stream])};
    core_handle(model->core, model->now_ms, wall_of(model), &admin, MSG_sampler_get, &in, NULL, 0);
    read_standing(model->core, ret);
}

/* A cycle's end; the broker may die before its commit, or between it and its sends. */
static void settle(struct model *model, unsigned seed)
{
    core_dispatch(model->core, model->now_ms);
    const char *broken = core_check(model->core);
    if (broken)
        fail_msg("seed %u: %s", seed, broken);
    bool crash = prng(model, 400), committed = prng(model, 2);
    static char before[STREAMS][STANDING_MAX];
    for (unsigned s = 0; crash && s < STREAMS; s++)
        ask_standing(model, s, before[s]);
    struct effects effects = core_effects(model->core);
    for (size_t i = 0; i < effects.count && (!crash || committed); i++)
        if (effects.items[i].kind <= PERSIST_EPOCH)
            persist(model, &effects.items[i]);
    for (size_t i = 0; i < effects.count && !crash; i++)
        if (effects.items[i].kind > PERSIST_EPOCH)
            deliver(model, &effects.items[i]);
    core_effects_clear(model->core);
    model->record_count = 0;
    if (crash) {
        model->restarts++;
        model->session_told = model->session_asked; /* whoever waited asks again */
        start_broker(model);
    }
    for (unsigned s = 0; crash && committed && s < STREAMS; s++) {
        static char after[STANDING_MAX];
        ask_standing(model, s, after);
        assert_string_equal(after, before[s]);
    }
}

/* ---- what may happen --------------------------------------------------------------- */

static void choose_offers(struct model *model, struct sim_worker *worker)
{
    const unsigned choice = model->calm ? OFFER_CHOICES - 1 : roll(model, OFFER_CHOICES);
    worker->offers = worker->stage[0] == 'r'   ? run_offers[choice]
                     : worker->stage[0] == 'e' ? eval_offers[choice]
                                               : NULL;
}

/* A handler starts or dies. */
static void change_offers(struct model *model)
{
    struct sim_worker *worker = &model->workers[roll(model, WORKERS_MAX)];
    if (!worker->alive)
        return;
    choose_offers(model, worker);
    model->withheld++;
}

static void hire(struct model *model)
{
    static const char *const stages[] = {"init", "run", "eval"};
    struct sim_worker *worker = &model->workers[roll(model, WORKERS_MAX)];
    if (worker->alive)
        return;
    uint64_t name = ++model->names;
    *worker = (struct sim_worker){
        .stage = stages[name % 3], .slots = 1 + roll(model, 4), .alive = true, .beat_ms = model->now_ms};
    choose_offers(model, worker);
    snprintf(worker->id, sizeof(worker->id), "w%llu", (unsigned long long)name);
}

static void harm(struct model *model)
{
    struct sim_worker *worker = &model->workers[roll(model, WORKERS_MAX)];
    if (!worker->alive)
        return;
    switch (roll(model, 8)) {
    case 0:
        worker->alive = false;
        model->deaths++;
        break;
    case 6: worker->cut_ms = model->now_ms + roll(model, 40000); break;
    case 1: worker->hung = !worker->hung; break;
    case 2: worker->draining = !worker->draining; break;
    case 3: worker->slots = 1 + roll(model, 4); break;
    case 4: core_lane_waits(model->core, model->now_ms, slice_from_str(worker->id), slice_from_str("asked")); break;
    case 5: core_lane_waits(model->core, model->now_ms, slice_from_str(worker->id), slice_from_str("")); break;
    default: core_lane_broke(model->core, model->now_ms, slice_from_str(worker->id)); break;
    }
}

/* `who` is a client's name, or NULL for an admin's. */
static void say(struct model *model, const char *who, enum message_id id, const void *in)
{
    struct caller caller = {slice_from_str("route"), slice_from_str(who ? who : "root"), !who};
    struct core_task task = {0};
    if (id == MSG_group_submit)
        task = task_of(((const struct msg_group_submit *)in)->group);
    core_handle(model->core, model->now_ms, wall_of(model), &caller, id, in, id == MSG_group_submit ? &task : NULL, 1);
}

/* Of another client: it is answered, and nothing else happens. */
static void say_in_vain(struct model *model, const char *owner, enum message_id id, const void *in)
{
    static const char *const clients[] = {"alice", "bob", "carol", "mallory"};
    const char *who = clients[roll(model, 4)];
    if (strcmp(who, owner) == 0)
        return;
    size_t before = core_effects(model->core).count;
    say(model, who, id, in);
    assert_int_equal(core_effects(model->core).count, before + 1);
    assert_int_equal(core_effects(model->core).items[before].kind, SEND_CLIENT);
    model->foreign++;
}

/* By the owner, now and then by an admin, and now and then by somebody else. */
static void ask(struct model *model, const char *owner, enum message_id id, const void *in)
{
    if (roll(model, 10) == 0)
        say_in_vain(model, owner, id, in);
    say(model, roll(model, 10) ? owner : NULL, id, in);
}

static void submit(struct model *model)
{
    char group[32];
    if (model->group_count + 4 >= GROUPS_MAX)
        return;
    unsigned number = roll(model, 300); /* some ids come again, as another content too */
    snprintf(group, sizeof(group), "g%u", number);
    struct msg_group_submit in = {.tag = 1,
                                  .group = slice_from_str(group),
                                  .stream = slice_from_str(stream_names[number % STREAMS]),
                                  .has_priority = true,
                                  .priority = roll(model, 10),
                                  .samples = 1 + roll(model, SAMPLES),
                                  .task = slice_from_str("{}"),
                                  .has_lease_ms = number % 5 == 0,
                                  .lease_ms = 1000 + 50 * number};
    if (roll(model, 10) == 0)
        say_in_vain(model, stream_owners[number % STREAMS], MSG_group_submit, &in);
    say(model, stream_owners[number % STREAMS], MSG_group_submit, &in);
}

static void cancel(struct model *model)
{
    char group[32], rollout[40];
    unsigned number = roll(model, 300), kind = roll(model, 20);
    snprintf(group, sizeof(group), "g%u", number);
    snprintf(rollout, sizeof(rollout), "%s/%u", group, roll(model, SAMPLES));
    const char *owner = stream_owners[number % STREAMS];
    struct msg_rollout_cancel in = {.tag = 2,
                                    .rollout = slice_from_str(rollout),
                                    .group = slice_from_str(group),
                                    .stream = slice_from_str(stream_names[number % STREAMS]),
                                    .has_rollout = kind > 5,
                                    .has_group = kind > 0 && kind <= 5,
                                    .has_stream = kind == 0};
    if (kind == 0 || find_group(model, in.group)) /* another's may be an early cancel of its own */
        say_in_vain(model, owner, MSG_rollout_cancel, &in);
    say(model, owner, MSG_rollout_cancel, &in);
}

static void change_engine(struct model *model)
{
    struct msg_engine_add in = {.tag = 3, .url = slice_from_str(roll(model, 2) ? "http://e0" : "http://e1")};
    struct msg_engine_remove out = {.tag = 3, .url = in.url};
    struct msg_engine_drain drain = {.tag = 3, .url = in.url};
    unsigned what = roll(model, 6);
    in.has_policy = roll(model, 4) == 0;
    in.policy = slice_from_str(in.has_policy ? policy_names[roll(model, 2)] : NULL);
    in.has_runs_max = roll(model, 2);
    in.runs_max = roll(model, 4);
    if (what == 0)
        say(model, NULL, MSG_engine_drain, &drain);
    else if (what < 4)
        say(model, NULL, MSG_engine_add, &in);
    else
        say(model, NULL, MSG_engine_remove, &out);
}

/* An engine is started again with another tokenizer and template. */
static void swap_engine(struct model *model)
{
    if (roll(model, 4) == 0)
        model->serves[roll(model, ENGINES)] = "ab"[roll(model, 2)];
}

/* Trainers and admins say what engines serve, pause them, and forget to resume. */
static void change_policy(struct model *model)
{
    static const char *const calls[] = {"finish", "abort", "hold"};
    struct slice url = slice_from_str(roll(model, 2) ? "http://e0" : "http://e1");
    bool has_url = roll(model, 2);
    char version[16];
    snprintf(version, sizeof(version), "v%u", roll(model, 5));
    struct msg_policy_set set = {.tag = 8, .version = slice_from_str(version), .engine = url, .has_engine = has_url};
    struct msg_policy_pause pause = {.tag = 9,
                                     .calls = slice_from_str(calls[roll(model, 3)]),
                                     .bound_ms = 1000 + roll(model, 20000),
                                     .engine = url,
                                     .has_engine = has_url};
    struct msg_policy_resume resume = {.tag = 10, .engine = url, .has_engine = has_url};
    unsigned what = roll(model, 3);
    const char *who = roll(model, 2) ? "alice" : NULL;
    if (what == 0)
        say(model, who, MSG_policy_set, &set);
    else if (what == 1)
        say(model, who, MSG_policy_pause, &pause);
    else
        say(model, who, MSG_policy_resume, &resume);
}

static void read_stream(struct model *model)
{
    unsigned stream = roll(model, STREAMS);
    uint64_t head = model->head[stream], first = model->first[stream];
    struct msg_stream_ack ack = {
        .tag = 4, .stream = slice_from_str(stream_names[stream]), .seq = first + roll(model, 8)};
    struct msg_stream_fetch fetch = {.tag = 5, .stream = ack.stream, .from = first};
    if (ack.seq <= head)
        ask(model, stream_owners[stream], MSG_stream_ack, &ack);
    else
        ask(model, stream_owners[stream], MSG_stream_fetch, &fetch);
}

static void renew(struct model *model)
{
    unsigned stream = roll(model, STREAMS);
    struct msg_stream_renew in = {.tag = 6, .stream = slice_from_str(stream_names[stream])};
    ask(model, stream_owners[stream], MSG_stream_renew, &in);
}

static void drain(struct model *model)
{
    const struct sim_worker *worker = &model->workers[roll(model, WORKERS_MAX)];
    struct msg_worker_drain in = {.tag = 7, .worker = slice_from_str(worker->id), .has_worker = true};
    if (!worker->alive)
        return;
    model->drained++;
    say(model, NULL, MSG_worker_drain, &in);
}

/* An engine or an image is bad for a while, or the wall clock jumps. */
static void spoil(struct model *model)
{
    static const int64_t year_ms = 31536000000;
    unsigned what = roll(model, 100);
    int64_t until_ms = model->now_ms + roll(model, 30000);
    if (what < 50)
        model->bad_engine_ms[what % ENGINES] = until_ms;
    else if (what < 98)
        model->bad_image_ms[what % IMAGES] = until_ms;
    else
        model->skew_ms = what == 98 ? -50 * year_ms : (int64_t)roll(model, 3) * year_ms;
}

/* A key of nobody's jobs says that it has ended one, or holds it, under an id of its own or of another's. */
static void forge(struct model *model)
{
    const struct sim_worker *victim = &model->workers[roll(model, WORKERS_MAX)];
    if (!victim->alive || !victim->count)
        return;
    const struct held *held = &victim->held[roll(model, (unsigned)victim->count)];
    bool has_its_id = roll(model, 2);
    struct msg_job_result in = {.worker = slice_from_str(has_its_id ? victim->id : "w-mallory"),
                                .job = slice_from_str(held->job),
                                .token = held->token + roll(model, 3) - 1,
                                .outcome = slice_from_str(pick_outcome(model)),
                                .reward = 99,
                                .has_reward = true};
    struct caller mallory = {.name = slice_from_str("mallory")};
    size_t before = core_effects(model->core).count;
    core_handle(model->core, model->now_ms, wall_of(model), &mallory, MSG_job_result, &in, NULL, 0);
    assert_int_equal(core_effects(model->core).count, before);
    model->forged++;
}

/* ---- samplers ----------------------------------------------------------------------- */

static const char *const trainers[] = {"t0", "t1"};

static void open_sampler(struct model *model, unsigned stream)
{
    const unsigned groups = 1 + roll(model, 3);
    struct msg_sampler_open in = {.tag = 11,
                                  .stream = slice_from_str(stream_names[stream]),
                                  .trainer = slice_from_str(trainers[roll(model, 2)]),
                                  .groups = groups,
                                  .has_filter = roll(model, 3) == 0,
                                  .filter = slice_from_str("none"),
                                  .has_staleness = roll(model, 3) == 0,
                                  .staleness = roll(model, 3),
                                  .has_window = roll(model, 2),
                                  .window = groups + roll(model, 4),
                                  .has_ahead = true,
                                  .ahead = roll(model, 3),
                                  .has_over_sample = roll(model, 3) == 0,
                                  .over_sample = 1000 + roll(model, 2000),
                                  .has_early = roll(model, 2),
                                  .early = roll(model, 3),
                                  .has_replace_max = roll(model, 2),
                                  .replace_max = roll(model, 3)};
    in.has_surplus = in.ahead == 0 && roll(model, 2);
    in.surplus = slice_from_str("cancel");
    if (roll(model, 10) == 0)
        say_in_vain(model, stream_owners[stream], MSG_sampler_open, &in);
    say(model, stream_owners[stream], MSG_sampler_open, &in);
}

/* The current one again, the next, or one that is neither; by whom it is, or not. */
static void ask_for_batch(struct model *model, unsigned stream)
{
    const struct row_sampler *sampler = &model->samplers[stream];
    struct msg_sampler_next in = {
        .tag = 12,
        .stream = slice_from_str(stream_names[stream]),
        .trainer = slice_from_str(roll(model, 8) || model->calm ? sampler->trainer : trainers[roll(model, 2)]),
        .batch = sampler->row.batch + (roll(model, 8) || model->calm ? 1 : roll(model, 3)),
        .has_wait_ms = roll(model, 2),
        .wait_ms = roll(model, 3000)};
    if (in.trainer.len && in.batch)
        say(model, stream_owners[stream], MSG_sampler_next, &in);
}

static void sample(struct model *model)
{
    const unsigned stream = roll(model, STREAMS), what = roll(model, 40);
    struct msg_sampler_get get = {.tag = 13, .stream = slice_from_str(stream_names[stream])};
    struct msg_sampler_close close = {.tag = 14, .stream = get.stream, .has_cancel = true, .cancel = roll(model, 2)};
    if (what < 3)
        open_sampler(model, stream);
    else if (what < 6)
        ask(model, stream_owners[stream], MSG_sampler_get, &get);
    else if (what == 6 && roll(model, 4) == 0)
        say(model, stream_owners[stream], MSG_sampler_close, &close);
    else
        ask_for_batch(model, stream);
}

/* Where a rollout's session is; the same request again is no other one. */
static void ask_for_session(struct model *model)
{
    char rollout[40];
    const unsigned number = roll(model, 4) ? 12 * roll(model, 25) + 11 : roll(model, 300); /* those need one */
    snprintf(rollout, sizeof(rollout), "g%u/%u", number, roll(model, SAMPLES));
    struct msg_session_get in = {.tag = ++model->session_tag,
                                 .rollout = slice_from_str(rollout),
                                 .has_after = roll(model, 4) == 0,
                                 .after = roll(model, 3),
                                 .has_wait_ms = true,
                                 .wait_ms = 1 + roll(model, 30000)};
    const char *owner = stream_owners[number % STREAMS];
    const uint64_t told = core_effects(model->core).count;
    model->session_asked++;
    say(model, owner, MSG_session_get, &in);
    if (core_effects(model->core).count == told) /* it waits */
        say(model, owner, MSG_session_get, &in);
}

static void (*const events[])(struct model *) = {
    ask_for_session, sample,      sample, submit, submit, submit,        hire,  hire,        harm,         harm, cancel,
    change_engine,   read_stream, renew,  spoil,  drain,  change_policy, forge, swap_engine, change_offers};

static void step(struct model *model, unsigned seed)
{
    model->now_ms += roll(model, 400);
    if (!model->calm)
        events[roll(model, sizeof(events) / sizeof(*events))](model);
    for (unsigned s = 0; model->calm && s < STREAMS; s++)
        ask_for_batch(model, s);
    for (unsigned i = 0; i < WORKERS_MAX; i++)
        work(model, &model->workers[i]);
    deliver_letters(model);
    int64_t due = core_tick(model->core, model->now_ms, wall_of(model));
    assert_true(due >= model->now_ms);
    settle(model, seed);
}

/* ---- the end ----------------------------------------------------------------------- */

/* From now on nothing breaks: fresh workers, an engine, no losses. */
static void calm_down(struct model *model, unsigned seed)
{
    struct msg_engine_add in = {.tag = 3, .url = slice_from_str("http://e0"), .has_runs_max = true, .runs_max = 8};
    struct msg_engine_add other = {.tag = 3,
                                   .url = slice_from_str("http://e1"),
                                   .has_runs_max = true,
                                   .runs_max = 8,
                                   .has_policy = true,
                                   .policy = slice_from_str("other")};
    in.has_policy = true;
    in.policy = slice_from_str("default");
    model->calm = true;
    for (unsigned p = 0; p < POLICIES; p++) /* what their groups were sampled with is there again */
        model->serves[p] = model->policies[p] ? model->policies[p] : 'a';
    memset(model->bad_engine_ms, 0, sizeof(model->bad_engine_ms));
    memset(model->bad_image_ms, 0, sizeof(model->bad_image_ms));
    for (unsigned i = 0; i < WORKERS_MAX; i++) {
        model->workers[i].alive = false;
        hire(model);
    }
    for (unsigned i = 0; i < 200; i++)
        hire(model);
    say(model, NULL, MSG_engine_add, &in);
    say(model, NULL, MSG_engine_add, &other);
    say(model, NULL, MSG_policy_resume,
        &(struct msg_policy_resume){.tag = 3}); /* a clock's jump may have made it long */
    settle(model, seed);
}

static uint64_t count_open(const struct model *model)
{
    uint64_t open = 0;
    for (size_t i = 0; i < model->group_count; i++)
        for (unsigned k = 0; k < model->groups[i].samples; k++)
            open += !model->groups[i].rollouts[k].ended;
    return open;
}

/* Each number of each stream belongs to exactly one rollout. */
static void check_numbers(const struct model *model)
{
    uint64_t total = 0;
    for (unsigned s = 0; s < STREAMS; s++) {
        bool *taken = calloc(model->head[s] + 1, sizeof(*taken));
        for (size_t i = 0; i < model->group_count; i++) {
            const struct row_group *group = &model->groups[i];
            for (unsigned k = 0; k < group->samples && group->stream[1] == (char)('0' + s); k++) {
                uint64_t seq = group->rollouts[k].seq;
                assert_in_range(seq, 1, model->head[s]);
                assert_false(taken[seq]);
                taken[seq] = true;
            }
        }
        total += model->head[s];
        free(taken);
    }
    assert_int_equal(total, model->ends);
}

static void live_through(unsigned seed, struct model *model)
{
    *model = (struct model){.settings = core_settings_default(),
                            .random = seed * 2654435761u,
                            .now_ms = 5000,
                            .first = {1, 1, 1, 1},
                            .serves = {'a', 'b'}};
    model->settings.rollouts_max = 200;
    model->settings.client_percent = seed % 2 ? 100 : 60;
    model->settings.results_max = seed % 3 ? 1000 : 100;
    model->settings.keep_count = seed % 5 ? 0 : 20;
    model->settings.keep_time_ms = seed % 7 ? 0 : 60000;
    model->settings.infra_budget = 4;
    model->settings.task_budget = 2;
    model->settings.breaker_faults = 3;
    model->settings.breaker_last_ms = 8000;
    model->settings.overload_ms = 1;
    model->settings.engine_probe_interval_ms = 1000;
    model->settings.early_cancel_ms = 60000;
    model->settings.deadline_grace_ms = 2000;
    model->settings.retry_last_ms = 4000;
    start_broker(model);
    if (seed % 2) /* before there is anything in them */
        for (unsigned s = 1; s < STREAMS; s += 2)
            open_sampler(model, s);
    for (unsigned i = 0; i < STEPS; i++)
        step(model, seed);
    calm_down(model, seed);
    for (unsigned i = 0; i < CALM_STEPS && count_open(model); i++)
        step(model, seed);
    if (count_open(model))
        fail_msg("seed %u: %llu rollouts never ended", seed, (unsigned long long)count_open(model));
    check_numbers(model);
    step(model, seed);
    assert_int_equal(model->session_told, model->session_asked);
    for (unsigned s = 0; s < STREAMS; s++)
        forget_sampler(&model->samplers[s]);
    core_destroy(&model->core);
}

static void whatever_happens_each_accepted_rollout_ends_exactly_once(void **state)
{
    (void)state;
    const char *only = getenv("CORE_MODEL_SEED"), *many = getenv("CORE_MODEL_SEEDS");
    struct model *model = calloc(1, sizeof(*model));
    uint64_t ends = 0, restarts = 0, deaths = 0, failures = 0;
    uint64_t foreign = 0, drained = 0, migrations = 0, mixed = 0;
    uint64_t again = 0, crossed = 0, forged = 0, offered = 0, withheld = 0, judged = 0, there = 0, taught = 0;
    uint64_t doomed = 0, overtime = 0, abandoned = 0, set_aside = 0;
    uint64_t sampled = 0, batches = 0, replaced = 0, closed = 0;
    uint64_t session_asked = 0, session_urls = 0;
    unsigned first = only ? (unsigned)atoi(only) : 1, last = only ? first : many ? (unsigned)atoi(many) : SEEDS;
    for (unsigned seed = first; seed <= last; seed++) {
        live_through(seed, model);
        ends += model->ends;
        restarts += model->restarts;
        deaths += model->deaths;
        failures += model->failures;
        foreign += model->foreign;
        drained += model->drained;
        migrations += model->migrations;
        again += model->again;
        crossed += model->crossed;
        forged += model->forged;
        there += model->there;
        mixed += model->mixed;
        offered += model->offered;
        withheld += model->withheld;
        judged += model->judged;
        taught += model->taught;
        doomed += model->doomed;
        overtime += model->overtime;
        abandoned += model->abandoned;
        set_aside += model->set_aside;
        sampled += model->sampled;
        batches += model->batches;
        replaced += model->replaced;
        closed += model->closed;
        session_asked += model->session_asked;
        session_urls += model->session_urls;
    }
    free(model);
    print_message("%llu rollouts ended, %llu restarts of the broker, %llu deaths of workers\n",
                  (unsigned long long)ends, (unsigned long long)restarts, (unsigned long long)deaths);
    print_message("%llu failures on disk; ends: %llu cancelled ahead, %llu overtime, %llu abandoned, "
                  "%llu set aside\n",
                  (unsigned long long)failures, (unsigned long long)doomed, (unsigned long long)overtime,
                  (unsigned long long)abandoned, (unsigned long long)set_aside);
    print_message("%llu runs done again, %llu rewards of a first run that came in the second, %llu "
                  "forged results, %llu runs evaluated there\n",
                  (unsigned long long)again, (unsigned long long)crossed, (unsigned long long)forged,
                  (unsigned long long)there);
    print_message("%llu jobs went to who offers what they need, %llu changes of what is offered\n",
                  (unsigned long long)offered, (unsigned long long)withheld);
    print_message("%llu evaluations were given an engine, %llu came with a teacher's record\n",
                  (unsigned long long)judged, (unsigned long long)taught);
    assert_true(only || (offered > 2000 && withheld > 1000 && judged > 1000 && taught > 1000));
    assert_true(only || (again > 100 && crossed > 4 && forged > 1000 && there > 100));
    print_message("%llu requests for what is another's, %llu drains, %llu migrations, %llu results "
                  "sampled with "
                  "another tokenizer\n",
                  (unsigned long long)foreign, (unsigned long long)drained, (unsigned long long)migrations,
                  (unsigned long long)mixed);
    print_message("%llu sessions were asked for, of %llu the URL was told\n", (unsigned long long)session_asked,
                  (unsigned long long)session_urls);
    assert_true(only || (session_asked > 1000 && session_urls > 10));
    print_message("%llu groups of samplers, %llu batches told, %llu rollouts replaced, %llu samplers closed\n",
                  (unsigned long long)sampled, (unsigned long long)batches, (unsigned long long)replaced,
                  (unsigned long long)closed);
    assert_true(only || (sampled > 1000 && batches > 150 && replaced > 25 && closed > 5));
    assert_true(only || (foreign > 1000 && drained > 100 && migrations > 100 && mixed > 40));
    assert_true(only || (ends > 10000 && restarts > 50 && deaths > 500));
    assert_true(only || (failures > 1000 && doomed > 100 && overtime > 100 && abandoned > 100 && set_aside > 100));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whatever_happens_each_accepted_rollout_ends_exactly_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
