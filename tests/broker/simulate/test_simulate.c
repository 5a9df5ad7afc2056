/* sluice simulate: what it says where a pencil says it too, and that it is of bounded size. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "broker/simulate/agenda.h"
#include "broker/simulate/gauge.h"
#include "broker/simulate/prefix.h"
#include "broker/simulate/report/verdict.h"
#include "broker/simulate/trainer/trainer.h"
#include "common/base/prng.h"
#include "common/base/clock.h"

/* A fleet that is short of nothing: what a test wants short it takes away. */
static struct fleet plenty(void)
{
    return (struct fleet){
        .slots = {64, 64, 64}, .workers = {1, 1, 1}, .engines = 4, .speed = {100000, 50, 1000000, 65536, 1u << 30}};
}

static struct figures simulated(const struct fleet *fleet, const char *tasks, uint64_t samples, double per_hour,
                                struct verdict *verdict)
{
    struct shape shape;
    struct figures figures;
    struct fail fail = {0};
    const struct sampling none = {0};
    uint64_t rollouts = simulate_enough(fleet->slots[STAGE_RUN] * fleet->workers[STAGE_RUN], samples, &none);
    if (shape_parse(&shape, tasks, &fail) < 0)
        fail_msg("%s", fail.text);
    struct load load = {.shape = &shape,
                        .samples = samples,
                        .groups = (rollouts + samples - 1) / samples,
                        .seed = 1,
                        .per_hour = per_hour};
    assert_int_equal(simulate(fleet, &load, NULL, NULL, &figures, &fail), 0);
    *verdict = figures_judge(&figures, &load);
    shape_finish(&shape);
    return figures;
}

static void assert_near(double got, double wanted, double percent)
{
    if (fabs(got - wanted) > wanted * percent / 100)
        fail_msg("%.10g is not %.10g to %g %%", got, wanted, percent);
}

/* Four calls of 100 tokens at 50 a second, and 1 s between them: 11 s. */
#define ELEVEN_SECONDS "turns=4,sampled=100,tool=1s"

static void one_engine_and_one_slot_do_what_a_pencil_says(void **state)
{
    (void)state;
    struct fleet fleet = plenty();
    struct verdict verdict;
    fleet.engines = 1;
    fleet.slots[STAGE_RUN] = 1;
    struct figures figures = simulated(&fleet, ELEVEN_SECONDS ",init=2s,eval=3s", 1, 0, &verdict);
    assert_near(figures.per_hour, 3600 / 11.0, 0.001);
    assert_near(figures.run_s, 11, 0.001);
    assert_near(figures.parts[PART_RUN].busy, 1, 0.001);
    assert_near(figures.parts[PART_EVAL].busy, 3 / 11.0 / 64, 0.5);
    assert_near(figures.call_tokens_per_s, 50, 0.001);
    assert_int_equal(verdict.first, PART_RUN);
    assert_non_null(strstr(verdict.text, "run slots: with 1 at most 327 rollouts/hour. Add run slots"));
}

static void prompts_are_read_once_a_group_and_then_cached(void **state)
{
    (void)state;
    struct fleet fleet = plenty();
    struct verdict verdict;
    fleet.engines = 1;
    fleet.slots[STAGE_RUN] = 1;
    fleet.speed.prefill_per_s = 1000;
    /* 2 s of prompt for the first of four; then each call finds all but what the tool said, 0.5 s */
    struct figures figures = simulated(&fleet, "turns=2,prompt=2000,sampled=100,said=500", 4, 0, &verdict);
    assert_near(figures.run_s, 2 + 2 + 0.5 + 2.0 / 4, 0.1);
    double prompted = 2000 + 2600, read = 2000 / 4.0 + 500;
    assert_near(figures.cached, 1 - read / prompted, 0.1);
}

static void a_cache_that_is_too_small_has_every_prompt_read_again(void **state)
{
    (void)state;
    struct fleet fleet = plenty();
    struct verdict verdict;
    fleet.engines = 1;
    fleet.speed.cache_tokens = 0;
    fleet.speed.prefill_per_s = 10000;
    struct figures figures = simulated(&fleet, "turns=2,prompt=2000,sampled=100", 4, 0, &verdict);
    assert_true(figures.cached < 0.01);
    assert_int_equal(verdict.first, PART_PROMPTS);
    assert_near(figures.per_hour, 10000 / 4100.0 * 3600, 2);
    assert_non_null(strstr(verdict.text, "engines, or ones with more cache"));
}

static void each_part_is_named_where_it_is_short(void **state)
{
    (void)state;
    static const struct {
        enum part part, next;
        const char *tasks, *words;
        uint64_t slots[STAGE_COUNT], samples;
        double tokens_per_s, per_hour;
    } cases[] = {
        {PART_INIT,
         PART_RUN,
         ELEVEN_SECONDS ",init=10s",
         "Add init slots: from 15 on",
         {2, 64, 64},
         4,
         1e6,
         2 / 10.0 * 4 * 3600},
        {PART_RUN,
         PART_EVAL,
         ELEVEN_SECONDS ",eval=1s",
         "Add run slots: from 704 on",
         {64, 5, 64},
         1,
         1e6,
         5 / 11.0 * 3600},
        {PART_EVAL,
         PART_RUN,
         ELEVEN_SECONDS ",eval=10s",
         "Add eval slots: from 59 on",
         {64, 64, 3},
         1,
         1e6,
         3 / 10.0 * 3600},
        {PART_SAMPLING,
         PART_RUN,
         "turns=4,prompt=500,sampled=50..150,tool=0.1..1.9s",
         "Add engines, or faster ones: from ",
         {64, 64, 64},
         1,
         250,
         4 * 250 / 400.0 * 3600},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct fleet fleet = plenty();
        struct verdict verdict;
        memcpy(fleet.slots, cases[i].slots, sizeof(fleet.slots));
        fleet.speed.tokens_per_s = cases[i].tokens_per_s;
        struct figures figures = simulated(&fleet, cases[i].tasks, cases[i].samples, 0, &verdict);
        assert_int_equal(verdict.first, cases[i].part);
        assert_int_equal(verdict.next, cases[i].next);
        assert_near(figures.parts[cases[i].part].per_hour, cases[i].per_hour, 2);
        assert_near(figures.per_hour, cases[i].per_hour, 4);
        if (!strstr(verdict.text, cases[i].words))
            fail_msg("'%s' does not say '%s'", verdict.text, cases[i].words);
    }
}

static void what_is_added_makes_the_next_part_the_bottleneck(void **state)
{
    (void)state;
    struct fleet fleet = plenty();
    struct verdict before, after;
    fleet.slots[STAGE_INIT] = 1;
    fleet.slots[STAGE_RUN] = 10;
    simulated(&fleet, ELEVEN_SECONDS ",init=10s", 4, 0, &before);
    assert_int_equal(before.first, PART_INIT);
    fleet.slots[STAGE_INIT] = before.wanted;
    struct figures figures = simulated(&fleet, ELEVEN_SECONDS ",init=10s", 4, 0, &after);
    assert_int_equal(after.first, before.next);
    assert_near(figures.per_hour, 10 / 11.0 * 3600, 2);
}

static void calls_beyond_an_engines_limit_wait_there(void **state)
{
    (void)state;
    struct fleet fleet = plenty();
    struct verdict verdict;
    fleet.engines = 1;
    fleet.slots[STAGE_RUN] = 8;
    fleet.speed.calls_max = 2;
    struct figures figures = simulated(&fleet, "sampled=100", 1, 0, &verdict);
    assert_int_equal(verdict.first, PART_SAMPLING);
    assert_near(figures.calls, 2, 0.1);
    assert_near(figures.per_hour, 3600, 0.5); /* two calls of 2 s at a time */
    assert_near(figures.run_s, 8, 0.5);       /* of four pairs in turn */
    assert_near(figures.parts[PART_PROMPTS].wait_p50_s, 6, 3);
}

static void what_comes_slower_than_it_is_done_has_no_bottleneck(void **state)
{
    (void)state;
    struct fleet fleet = plenty();
    struct verdict verdict;
    struct figures figures = simulated(&fleet, ELEVEN_SECONDS ",init=1s,eval=1s", 1, 2000, &verdict);
    assert_true(verdict.keeps_up);
    assert_near(figures.per_hour, 2000, 15); /* they come at random times */
    assert_true(figures.parts[PART_RUN].wait_p99_s < 0.01);
    assert_non_null(strstr(verdict.text, "nothing: it keeps up with 2,000 rollouts/hour"));
}

static void the_same_seed_gives_the_same_figures(void **state)
{
    (void)state;
    struct fleet fleet = plenty();
    struct verdict verdict;
    struct figures one = simulated(&fleet, "swe", 8, 0, &verdict);
    struct figures other = simulated(&fleet, "swe", 8, 0, &verdict);
    assert_memory_equal(&one, &other, sizeof(one));
}

static void too_few_are_measured_from_start_to_end(void **state)
{
    (void)state;
    struct fleet fleet = plenty();
    struct shape shape;
    struct figures figures;
    struct fail fail = {0};
    assert_int_equal(shape_parse(&shape, ELEVEN_SECONDS ",init=2s,eval=3s", &fail), 0);
    struct load load = {.shape = &shape, .samples = 1, .groups = 10, .seed = 1};
    assert_int_equal(simulate(&fleet, &load, NULL, NULL, &figures, &fail), 0);
    assert_true(figures.is_whole);
    assert_int_equal(figures.ended, 10);
    assert_near(figures.to_s, 16, 0.001);
}

/* A thousand nodes, a hundred thousand live rollouts, a million queued. */
static void a_large_fleet_takes_bounded_memory(void **state)
{
    (void)state;
#ifdef __SANITIZE_THREAD__
    enum { MEMORY_MAX_MIB = 4096 }; /* it keeps several times what is used */
#else
    enum { MEMORY_MAX_MIB = 1024 }; /* with all that other sanitizers keep */
#endif
    struct fleet fleet = plenty();
    struct shape shape;
    struct figures figures;
    struct fail fail = {0};
    struct rusage usage;
    fleet.slots[STAGE_RUN] = 100;
    fleet.workers[STAGE_INIT] = fleet.workers[STAGE_RUN] = fleet.workers[STAGE_EVAL] = 1000;
    fleet.engines = 100;
    assert_int_equal(shape_parse(&shape, "sampled=~50..200,init=1s,eval=1s", &fail), 0);
    struct load load = {.shape = &shape, .samples = 8, .groups = 125000, .seed = 1};
    int64_t began_ms = clock_ms();
    assert_int_equal(simulate(&fleet, &load, NULL, NULL, &figures, &fail), 0);
    getrusage(RUSAGE_SELF, &usage);
    print_message("%.1f s, %ld MiB\n", (double)(clock_ms() - began_ms) / 1000, usage.ru_maxrss / 1024);
    assert_true(figures.looked_at >= 150000);
    assert_near(figures.parts[PART_RUN].busy, 1, 1);
    assert_true(usage.ru_maxrss / 1024 < MEMORY_MAX_MIB);
}

/* ---- what it stands on ----------------------------------------------------------------------- */

static void an_agenda_gives_the_earliest_first(void **state)
{
    (void)state;
    struct agenda agenda = {0};
    uint64_t prng = 7;
    for (uint32_t i = 0; i < 1000; i++)
        assert_true(agenda_push(&agenda, (struct due){prng_uniform(&prng), i, 0}));
    for (double before = 0; agenda.count; before = agenda_pop(&agenda).at)
        assert_true(agenda.items[0].at >= before);
    agenda_finish(&agenda);
}

static void a_full_cache_lets_go_of_what_was_used_least_recently(void **state)
{
    (void)state;
    struct prefix_cache cache;
    struct prefix a = {0}, b = {0}, c = {0};
    prefix_cache_init(&cache, 100);
    prefix_keep(&cache, &a, 40);
    prefix_keep(&cache, &b, 40);
    prefix_keep(&cache, &a, 50);
    prefix_keep(&cache, &c, 40);
    a.in_use = 1;
    prefix_make_room(&cache);
    assert_int_equal(b.tokens, 0);
    assert_int_equal(cache.used_tokens, 90);
    prefix_keep(&cache, &b, 60);
    prefix_make_room(&cache); /* a is older than c, but in use */
    assert_int_equal(a.tokens, 50);
    assert_int_equal(c.tokens, 0);
    assert_int_equal(b.tokens, 0); /* and b has no room beside it */
}

static void a_spread_tells_percentiles_to_two_per_cent(void **state)
{
    (void)state;
    static struct spread spread;
    assert_true(spread_at(&spread, 0.5) == 0);
    for (int i = 1; i <= 1000; i++)
        spread_add(&spread, i * 0.01);
    assert_near(spread_at(&spread, 0.5), 5, 2.5);
    assert_near(spread_at(&spread, 0.99), 9.9, 2.5);
}

static void a_lognormal_has_a_twentieth_on_either_side(void **state)
{
    (void)state;
    struct shape shape;
    struct fail fail = {0};
    assert_int_equal(shape_parse(&shape, "sampled=~100..1600", &fail), 0);
    int below = 0, above = 0;
    for (uint64_t i = 0; i < 20000; i++) {
        struct walk walk = shape_walk(&shape, 1, i, 0);
        struct turn turn;
        assert_true(shape_turn(&shape, &walk, &turn));
        below += turn.sampled < 100;
        above += turn.sampled > 1600;
        assert_false(shape_turn(&shape, &walk, &turn));
    }
    assert_near(below / 20000.0, 0.05, 10);
    assert_near(above / 20000.0, 0.05, 10);
}

/* Of a chance that is uniform from 0 to 1, four rollouts are all alike in 2 of 5 groups. */
static struct figures sampled(double train_s, uint64_t ahead)
{
    struct shape shape;
    struct figures figures;
    struct fail fail = {0};
    const struct fleet fleet = plenty();
    struct load load = {
        .shape = &shape,
        .samples = 4,
        .seed = 1,
        .sampling = {.groups = 16, .ahead = ahead, .train_s = train_s, .solved = {{0, 1}}, .solved_count = 1}};
    assert_int_equal(shape_parse(&shape, ELEVEN_SECONDS, &fail), 0);
    load.groups = simulate_enough(64, load.samples, &load.sampling) / load.samples;
    assert_int_equal(simulate(&fleet, &load, NULL, NULL, &figures, &fail), 0);
    shape_finish(&shape);
    return figures;
}

static void a_sampler_tells_batches_of_what_is_kept(void **state)
{
    (void)state;
    struct figures figures = sampled(0, 1);
    const double hours = (figures.to_s - figures.from_s) / 3600;
    assert_near(figures.kept, 0.6, 10);
    assert_near((double)figures.batches / hours, figures.per_hour * 0.6 / (16 * 4), 15);
    assert_true(figures.batches >= 8);
}

static void a_trainer_that_learns_long_waits_for_no_batch_that_is_made_ahead(void **state)
{
    (void)state;
    struct figures ahead = sampled(600, 1), none = sampled(600, 0);
    assert_true(ahead.learning > 0.95);
    assert_true(none.learning < ahead.learning);
}

/* ---- the ways to get batches ------------------------------------------------------------------- */

static struct figures got_by(enum sampling_way way, const char *tasks, uint64_t samples, struct sampling sampling)
{
    struct shape shape;
    struct figures figures;
    struct fail fail = {0};
    const struct fleet fleet = plenty();
    struct load load = {.shape = &shape, .samples = samples, .seed = 1, .sampling = sampling};
    load.sampling.way = way;
    load.sampling.round = sampling.round ? sampling.round : sampling.groups;
    load.sampling.ahead = way == SAMPLING_SAMPLER;
    assert_int_equal(shape_parse(&shape, tasks, &fail), 0);
    load.groups = simulate_enough(64, samples, &load.sampling) / samples;
    assert_int_equal(simulate(&fleet, &load, NULL, NULL, &figures, &fail), 0);
    assert_false(figures.is_whole);
    shape_finish(&shape);
    return figures;
}

/* Each group has 64 rollouts of chance 1/2, and is mixed. */
static void a_batch_takes_as_long_as_a_pencil_says(void **state)
{
    (void)state;
    static const double seconds[] = {[SAMPLING_SAMPLER] = 11, [SAMPLING_ROUNDS] = 16, [SAMPLING_CARRY_PROMPTS] = 16};
    /* When the first of 64 rollouts has ended a slot is free, and another group begins; it is cancelled at once. */
    static const uint64_t asked[] = {[SAMPLING_SAMPLER] = 16, [SAMPLING_ROUNDS] = 16, [SAMPLING_CARRY_PROMPTS] = 32};
    for (enum sampling_way way = SAMPLING_SAMPLER; way <= SAMPLING_CARRY_PROMPTS; way++) {
        struct figures figures = got_by(
            way, ELEVEN_SECONDS, 64,
            (struct sampling){.groups = 1, .train_s = 5, .solved = {{0.5, 0.5}}, .solved_count = 1});
        assert_int_equal(figures.batches, 16);
        assert_near((figures.to_s - figures.from_s) / 16, seconds[way], 0.01);
        assert_int_equal(figures.asked, asked[way]);
        assert_int_equal(figures.taken, 16);
        assert_int_equal(figures.tokens_taken, 16 * 64 * 400);
        assert_int_equal(figures.tokens_wasted, 0);
    }
}

#define UNEVEN "turns=2,sampled=20..200,tool=0.1..2s"

/* Of four batches, from the start on. */
static const struct sampling harder = {
    .groups = 8, .round = 12, .train_s = 3, .solved = {{0.2, 0.8}, {0, 1}, {0, 0.3}, {0, 0.1}}, .solved_count = 4};

static void what_is_asked_for_is_in_a_batch_filtered_or_thrown_away(void **state)
{
    (void)state;
    struct figures rounds = got_by(SAMPLING_ROUNDS, UNEVEN, 4, harder);
    struct figures carry = got_by(SAMPLING_CARRY_PROMPTS, UNEVEN, 4, harder);
    struct figures sampler = got_by(SAMPLING_SAMPLER, UNEVEN, 4, harder);
    assert_int_equal(rounds.asked, rounds.taken + rounds.filtered + rounds.wasted);
    assert_int_equal(rounds.asked % 12, 0);
    assert_true(rounds.wasted > 0);
    assert_int_equal(rounds.tokens, rounds.tokens_taken + rounds.tokens_filtered + rounds.tokens_wasted);
    assert_true(carry.asked <= carry.taken + carry.filtered + carry.wasted); /* some are cancelled before they begin */
    assert_true(carry.asked > carry.taken + carry.filtered);
    assert_int_equal(carry.tokens, carry.tokens_taken + carry.tokens_filtered + carry.tokens_wasted);
    assert_int_equal(sampler.wasted, 0);
    assert_int_equal(sampler.tokens_wasted, 0);
    assert_true(sampler.asked >= sampler.taken + sampler.filtered);
    const struct figures *all[] = {&rounds, &carry, &sampler};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(all[i]->batches, 4);
        assert_int_equal(all[i]->taken, 4 * 8);
        assert_true(all[i]->tokens_taken > 0 && all[i]->tokens_filtered > 0);
    }
    assert_true(rounds.age == 0 && carry.age == 0 && sampler.age > 0);
}

/* What engines sample is counted there by time, and here by call. */
static void no_token_is_counted_twice_or_lost_where_calls_are_cancelled(void **state)
{
    (void)state;
    for (enum sampling_way way = SAMPLING_ROUNDS; way <= SAMPLING_CARRY_PROMPTS; way++) {
        struct figures figures = got_by(way, UNEVEN, 4, harder);
        const double sampled = figures.parts[PART_SAMPLING].busy * (figures.to_s - figures.from_s) * 4 * 100000;
        assert_near((double)figures.tokens, sampled, 0.5);
    }
}

static void each_way_gives_the_same_figures_for_the_same_seed(void **state)
{
    (void)state;
    for (enum sampling_way way = SAMPLING_SAMPLER; way <= SAMPLING_CARRY_PROMPTS; way++) {
        struct figures one = got_by(way, UNEVEN, 4, harder), other = got_by(way, UNEVEN, 4, harder);
        assert_memory_equal(&one, &other, sizeof(one));
    }
}

static void acceptance_is_what_an_integral_says(void **state)
{
    (void)state;
    const struct sampling any = {.solved = {{0, 1}}, .solved_count = 1};
    const struct sampling even = {.solved = {{0, 1}, {0.5, 0.5}, {0, 0}}, .solved_count = 2};
    const struct sampling none = {.solved = {{0, 1}, {0, 0}}, .solved_count = 2};
    assert_near(sampling_acceptance(&any, 4), 0.6, 0.001);
    assert_near(sampling_acceptance(&even, 2), 1 / 3.0, 0.001);
    assert_true(sampling_acceptance(&none, 8) < 1e-9);
}

static void what_is_taken_out_of_an_agenda_is_gone_and_the_rest_in_order(void **state)
{
    (void)state;
    struct agenda agenda = {0};
    struct due due;
    uint64_t prng = 7;
    for (uint32_t i = 0; i < 1000; i++)
        assert_true(agenda_push(&agenda, (struct due){prng_uniform(&prng), i, i % 2}));
    for (uint32_t i = 0; i < 1000; i += 3) {
        assert_false(agenda_remove(&agenda, i, 1 - i % 2, &due));
        assert_true(agenda_remove(&agenda, i, i % 2, &due));
        assert_int_equal(due.what, i);
    }
    assert_int_equal(agenda.count, 666);
    for (double before = 0; agenda.count; before = due.at) {
        due = agenda_pop(&agenda);
        assert_true(due.at >= before && due.what % 3 > 0);
    }
    agenda_finish(&agenda);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_engine_and_one_slot_do_what_a_pencil_says),
        cmocka_unit_test(prompts_are_read_once_a_group_and_then_cached),
        cmocka_unit_test(a_cache_that_is_too_small_has_every_prompt_read_again),
        cmocka_unit_test(each_part_is_named_where_it_is_short),
        cmocka_unit_test(what_is_added_makes_the_next_part_the_bottleneck),
        cmocka_unit_test(calls_beyond_an_engines_limit_wait_there),
        cmocka_unit_test(what_comes_slower_than_it_is_done_has_no_bottleneck),
        cmocka_unit_test(the_same_seed_gives_the_same_figures),
        cmocka_unit_test(too_few_are_measured_from_start_to_end),
        cmocka_unit_test(a_large_fleet_takes_bounded_memory),
        cmocka_unit_test(an_agenda_gives_the_earliest_first),
        cmocka_unit_test(a_full_cache_lets_go_of_what_was_used_least_recently),
        cmocka_unit_test(a_spread_tells_percentiles_to_two_per_cent),
        cmocka_unit_test(a_lognormal_has_a_twentieth_on_either_side),
        cmocka_unit_test(a_sampler_tells_batches_of_what_is_kept),
        cmocka_unit_test(a_batch_takes_as_long_as_a_pencil_says),
        cmocka_unit_test(what_is_asked_for_is_in_a_batch_filtered_or_thrown_away),
        cmocka_unit_test(no_token_is_counted_twice_or_lost_where_calls_are_cancelled),
        cmocka_unit_test(each_way_gives_the_same_figures_for_the_same_seed),
        cmocka_unit_test(acceptance_is_what_an_integral_says),
        cmocka_unit_test(what_is_taken_out_of_an_agenda_is_gone_and_the_rest_in_order),
        cmocka_unit_test(a_trainer_that_learns_long_waits_for_no_batch_that_is_made_ahead),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
