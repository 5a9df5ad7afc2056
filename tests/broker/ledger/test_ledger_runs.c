/* Runs in hand: what is sent of them is, byte for byte, what their rows give. */
#include "tests/broker/ledger/ledger_world.h"

#include "broker/ledger/inner.h"

/* ---- both ways ------------------------------------------------------------------------------------- */

static int reads_of(struct ledger *ledger, enum ledger_statement statement)
{
    return sqlite3_stmt_status(ledger->statements[statement], SQLITE_STMTSTATUS_RUN, 0);
}

static void encode(enum message_id id, const void *message, struct buffer *ret)
{
    struct refusal no;
    buffer_clear(ret);
    if (!message_encode(id, message, ret, &no))
        fail_msg("%s", no.text);
}

static void assert_same(const struct buffer *a, const struct buffer *b)
{
    assert_int_equal(a->len, b->len);
    assert_memory_equal(a->data, b->data, a->len);
}

/* Whether it was made without its row. */
static bool publish(struct world *world, const struct effect *end, struct buffer *ret)
{
    struct effect effect = *end;
    struct msg_trajectory message;
    effect.kind = PUBLISH_TRAJECTORY;
    const int before = reads_of(world->ledger, LEDGER_LOAD_END);
    assert_int_equal(ledger_read_begin(world->ledger, NULL), 0);
    assert_int_equal(ledger_load_published(world->ledger, &effect, &message, NULL), 0);
    encode(MSG_trajectory, &message, ret);
    assert_int_equal(ledger_read_end(world->ledger, NULL), 0);
    return reads_of(world->ledger, LEDGER_LOAD_END) == before;
}

static void read_back(struct world *world, const struct effect *end, struct buffer *ret)
{
    struct msg_trajectory message;
    assert_int_equal(ledger_read_begin(world->ledger, NULL), 0);
    assert_int_equal(ledger_load_trajectory(world->ledger, end->end.stream, end->end.seq, &message, NULL), 0);
    encode(MSG_trajectory, &message, ret);
    assert_int_equal(ledger_read_end(world->ledger, NULL), 0);
}

static struct effect eval_of(const char *rollout, uint64_t sample, bool reads_record)
{
    return (struct effect){.kind = LANE_JOB,
                           .stage = STAGE_EVAL,
                           .job = S("eval:a/0"),
                           .group = S("a"),
                           .rollout = S(rollout),
                           .sample = sample,
                           .attempt = 1,
                           .token = 1,
                           .reads_record = reads_record};
}

/* Whether it was made without the run's row. */
static bool start(struct world *world, const struct effect *job, struct buffer *ret)
{
    struct msg_job_start message;
    const enum ledger_statement run = job->reads_record ? LEDGER_LOAD_RUN_RECORD : LEDGER_LOAD_RUN;
    const int before = reads_of(world->ledger, run);
    assert_int_equal(ledger_read_begin(world->ledger, NULL), 0);
    assert_int_equal(ledger_load_job(world->ledger, job, &message, NULL), 0);
    encode(MSG_job_start, &message, ret);
    assert_int_equal(ledger_read_end(world->ledger, NULL), 0);
    return reads_of(world->ledger, run) == before;
}

static struct effect end_of_sample(uint64_t seq, uint64_t sample, const char *rollout)
{
    struct effect end = end_of("train", seq, "a", rollout);
    end.end.sample = sample;
    end.end.group_ended = seq;
    return end;
}

/* ---- tests ------------------------------------------------------------------------------------------ */

/* Runs and ends of every shape, of one group. */
enum { SHAPES = 7 };

static void shape(struct effect runs[SHAPES], struct effect ends[SHAPES])
{
    static char names[SHAPES][16];
    for (uint64_t i = 0; i < SHAPES; i++) {
        snprintf(names[i], sizeof(names[i]), "a/%u", (unsigned)i);
        runs[i] = run_of(names[i], S("the record"));
        ends[i] = end_of_sample(i + 1, i, names[i]);
    }
    runs[1].layer_digest = runs[1].layer = runs[1].answer = runs[1].record = runs[1].detail = S("");
    ends[1].end.detail = ends[1].end.init_layer = ends[1].end.engine = S("");
    runs[2].has_length = runs[2].truncated = true;
    runs[2].sampled_tokens = 1220;
    ends[2].verdict = S("the verdict");
    ends[3].record = S("what the evaluation made of the record");
    ends[3].verdict = S("the verdict");
    ends[3].end.has_raw_reward = true;
    ends[3].end.raw_reward = -2.25;
    ends[4].end.reward = -0.0;
    ends[4].end.has_raw_reward = true;
    ends[4].end.raw_reward = -0.0;
    ends[5].end.has_reward = ends[5].end.trainable = false;
    ends[5].end.outcome = OUTCOME_INFRA;
    runs[6].has_length = true;
    ends[6].end.reward = 1e300;
    ends[6].end.ended_ms = UINT32_MAX + 5ull;
}

static void what_is_published_from_memory_is_what_the_row_gives(void **state)
{
    struct world *world = *state;
    struct buffer held[SHAPES] = {0}, row = {0};
    struct effect asked = group("a", "train", SHAPES), runs[SHAPES], ends[SHAPES];
    asked.task = S("{\"task\":\"t\",\"metadata\": {\"k\": [1, 2] } }");
    shape(runs, ends);
    commit_one(world, asked);
    commit(world, runs, SHAPES);
    commit(world, ends, SHAPES);
    for (int i = 0; i < SHAPES; i++) {
        assert_true(publish(world, &ends[i], &held[i]));
        read_back(world, &ends[i], &row);
        assert_same(&held[i], &row);
    }
    assert_int_equal(world->ledger->runs_bytes, 0); /* none is kept for longer */
    reopen(world);
    for (int i = 0; i < SHAPES; i++) {
        assert_false(publish(world, &ends[i], &row));
        assert_same(&held[i], &row);
        buffer_finish(&held[i]);
    }
    buffer_finish(&row);
}

static uint64_t bytes_told; /* of all ended rollouts' records */

static bool add_bytes(void *context, const struct core_rollout_row *row)
{
    (void)context;
    bytes_told += row->ended ? row->record_bytes : 0;
    return true;
}

static uint64_t record_bytes(struct world *world)
{
    struct ledger_reader reader = text_reader(&world->told);
    reader.rollout = add_bytes;
    bytes_told = 0;
    buffer_clear(&world->told);
    assert_int_equal(ledger_restore(world->ledger, &reader, NULL), 0);
    return bytes_told;
}

static void how_large_a_record_is_is_known_from_memory_and_from_the_row(void **state)
{
    struct world *world = *state;
    struct effect runs[SHAPES], ends[SHAPES];
    shape(runs, ends);
    const size_t record = S("the record").len, verdict = S("the verdict").len;
    const size_t all = 5 * record + S("what the evaluation made of the record").len + 2 * verdict;
    commit_one(world, group("a", "train", SHAPES));
    commit(world, runs, SHAPES);
    commit(world, ends, SHAPES);
    assert_int_equal(record_bytes(world), all);
    struct effect other = group("b", "train", 1);
    commit_one(world, other);
    commit_one(world, run_of("b/0", S("12345")));
    reopen(world);
    commit_one(world, end_of("train", SHAPES + 1, "b", "b/0"));
    assert_int_equal(record_bytes(world), all + 5);
}

static void an_evaluation_gets_from_memory_what_the_row_gives(void **state)
{
    struct world *world = *state;
    struct buffer held[2 * SHAPES] = {0}, row = {0};
    struct effect runs[SHAPES], ends[SHAPES];
    shape(runs, ends);
    const struct effect before[] = {group("a", "train", SHAPES), init_of("a", S(""), S(""))};
    commit(world, before, 2);
    commit(world, runs, SHAPES);
    for (int is_reopened = 0; is_reopened < 2; is_reopened++) {
        for (unsigned i = 0; i < 2 * SHAPES; i++) {
            char name[16];
            snprintf(name, sizeof(name), "a/%u", i / 2);
            const struct effect job = eval_of(name, i / 2, i % 2);
            assert_int_equal(start(world, &job, is_reopened ? &row : &held[i]), !is_reopened);
            if (is_reopened)
                assert_same(&held[i], &row);
        }
        reopen(world);
    }
    for (unsigned i = 0; i < 2 * SHAPES; i++)
        buffer_finish(&held[i]);
    buffer_finish(&row);
}

static void a_run_that_is_to_be_done_again_is_not_in_hand_and_the_next_is(void **state)
{
    struct world *world = *state;
    struct buffer held = {0}, row = {0};
    struct effect again = {.kind = PERSIST_AGAIN, .rollout = S("a/0")};
    const struct effect end = end_of_sample(1, 0, "a/0"),
                        effects[] = {group("a", "train", 1), init_of("a", S(""), S("")), run_of("a/0", S("first")),
                                     again};
    commit(world, effects, 4);
    assert_int_equal(world->ledger->runs_bytes, 0);
    commit_one(world, run_of("a/0", S("second")));
    commit_one(world, run_of("a/0", S("third")));
    commit_one(world, end);
    assert_true(publish(world, &end, &held));
    read_back(world, &end, &row);
    assert_same(&held, &row);
    assert_non_null(memmem(held.data, held.len, "third", 5));
    buffer_finish(&held);
    buffer_finish(&row);
}

static void a_group_whose_id_is_taken_again_has_no_run_of_the_old(void **state)
{
    struct world *world = *state;
    const struct effect effects[] = {group("a", "train", 1), run_of("a/0", S("old")), end_of("train", 1, "a", "a/0"),
                                     ack("train", 1), group("a", "train", 1)};
    commit(world, effects, 3);
    assert_true(world->ledger->runs_bytes > 0);
    commit(world, effects + 3, 2);
    assert_int_equal(world->ledger->runs_bytes, 0);
    const struct effect job = eval_of("a/0", 0, false);
    struct msg_job_start message;
    commit_one(world, init_of("a", S(""), S("")));
    assert_int_equal(ledger_load_job(world->ledger, &job, &message, NULL), -ENOENT);
}

static void more_runs_than_there_is_room_for_are_read_from_their_rows_the_oldest_first(void **state)
{
    enum { RUNS = RUNS_BYTES_MAX / RUN_BYTES_MAX + 8 };
    struct world *world = *state;
    struct buffer from_memory = {0}, row = {0};
    char names[RUNS][16];
    AUTO_FREE uint8_t *record = malloc(RUN_BYTES_MAX);
    struct effect too_large = run_of("a/0", slice_of(record, RUN_BYTES_MAX));
    memset(record, 'r', RUN_BYTES_MAX);
    commit_one(world, group("a", "train", RUNS));
    commit_one(world, too_large);
    assert_int_equal(world->ledger->runs_bytes, 0);
    for (int i = 0; i < RUNS; i++) {
        snprintf(names[i], sizeof(names[i]), "a/%d", i);
        commit_one(world, run_of(names[i], slice_of(record, RUN_BYTES_MAX - 1024)));
        assert_true(world->ledger->runs_bytes <= RUNS_BYTES_MAX);
    }
    for (int i = 0; i < RUNS; i += RUNS - 1) {
        const struct effect end = end_of_sample((uint64_t)i + 1, (uint64_t)i, names[i]);
        commit_one(world, end);
        assert_int_equal(publish(world, &end, &from_memory), i > 0);
        read_back(world, &end, &row);
        assert_same(&from_memory, &row);
    }
    buffer_finish(&from_memory);
    buffer_finish(&row);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(what_is_published_from_memory_is_what_the_row_gives),
        TEST(how_large_a_record_is_is_known_from_memory_and_from_the_row),
        TEST(an_evaluation_gets_from_memory_what_the_row_gives),
        TEST(a_run_that_is_to_be_done_again_is_not_in_hand_and_the_next_is),
        TEST(a_group_whose_id_is_taken_again_has_no_run_of_the_old),
        TEST(more_runs_than_there_is_room_for_are_read_from_their_rows_the_oldest_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
