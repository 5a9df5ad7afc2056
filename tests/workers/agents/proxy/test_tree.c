/* The tree of turns: harnesses that go on, go back, edit and begin anew, at random; and what its traces then hold. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "schemas/labels.h"
#include "workers/agents/proxy/traces/traces.h"

enum { WALKS = 200, STEPS = 40, LINES_MAX = 2 * STEPS + 8, IDS_MAX = 1 << 16 };

/* A message of a harness's history. */
struct line {
    enum said_role role;
    char text[24], handle[24];
};

struct walk {
    struct tree tree;
    unsigned seed;
    uint32_t next_id;
    bool is_sampled[IDS_MAX];
    struct line lines[LINES_MAX]; /* the conversation that the harness is in */
    size_t count;
};

static unsigned draw(struct walk *walk, unsigned below)
{
    walk->seed = walk->seed * 1103515245 + 12345;
    return (walk->seed >> 16) % below;
}

static void say(struct walk *walk, enum said_role role, unsigned what)
{
    struct line *line = &walk->lines[walk->count++];
    *line = (struct line){.role = role};
    snprintf(line->text, sizeof(line->text), "words %u", what);
}

static void make_request(const struct walk *walk, struct said_request *ret)
{
    *ret = (struct said_request){0};
    for (size_t i = 0; i < walk->count; i++) {
        struct said *said = said_add(ret, walk->lines[i].role);
        said->text = strdup(walk->lines[i].text);
        said->handle = *walk->lines[i].handle ? strdup(walk->lines[i].handle) : NULL;
    }
}

static void put_ids(struct walk *walk, struct tree_node *node)
{
    for (unsigned i = 1 + draw(walk, 4); i > 0; i--) {
        walk->is_sampled[walk->next_id] = node->is_sampled;
        assert_true(tokens_append(&node->ids, &walk->next_id, 1));
        assert_true(++walk->next_id < IDS_MAX);
    }
}

static size_t show(struct walk *walk, struct said_request *request, const struct tree_match *match)
{
    if (match->node != TREE_NONE && !walk->tree.nodes[match->node].is_sampled)
        return match->node;
    struct tree_node *node = tree_add(&walk->tree, match->node);
    node->reason = strdup(walk->tree.count == 1 ? "" : "branch");
    assert_true(tree_take_messages(node, request, match->node == TREE_NONE ? 0 : match->taken));
    put_ids(walk, node);
    return walk->tree.count - 1;
}

static void sample(struct walk *walk, size_t shown)
{
    struct tree_node *node = tree_add(&walk->tree, shown);
    node->is_sampled = node->is_delivered = true;
    node->turn = (struct record_turn){.role = "assistant", .finish = "stop"};
    put_ids(walk, node);
    node->logprobs = calloc(node->ids.count, sizeof(*node->logprobs));
    say(walk, SAID_ASSISTANT, walk->next_id);
    struct line *line = &walk->lines[walk->count - 1];
    snprintf(line->handle, sizeof(line->handle), "turn %u", walk->next_id);
    node->messages = calloc(1, sizeof(*node->messages));
    node->messages[0] = (struct said){
        .role = SAID_ASSISTANT, .text = strdup(line->text), .handle = strdup(line->handle)};
    node->text = strdup(line->text);
    node->count = 1;
}

/* All that the request says is on the path to where its turn is sampled, and nothing else. */
static void assert_told(const struct walk *walk, size_t node)
{
    size_t left = walk->count;
    for (size_t at = node; at != TREE_NONE; at = walk->tree.nodes[at].parent)
        for (size_t i = walk->tree.nodes[at].count; i > 0; i--) {
            const struct said *said = &walk->tree.nodes[at].messages[i - 1];
            assert_true(left > 0);
            assert_string_equal(said->text, walk->lines[--left].text);
            assert_int_equal(said->role, walk->lines[left].role);
            if (walk->tree.nodes[at].is_sampled != (said->role == SAID_ASSISTANT))
                assert_int_equal(walk->tree.nodes[at].parent, TREE_NONE); /* a root shows history as well */
        }
    assert_int_equal(left, 0);
}

static void take_step(struct walk *walk)
{
    struct said_request request;
    struct tree_match match;
    const unsigned what = draw(walk, 8);
    if (what == 0 || walk->count == 0)
        walk->count = 0;
    else if (what == 1)
        walk->count = draw(walk, (unsigned)walk->count + 1);
    else if (what == 2)
        snprintf(walk->lines[draw(walk, (unsigned)walk->count)].text, 24, "edited %u", draw(walk, 3));
    for (unsigned i = draw(walk, 2); i < 2 && (what != 3 || walk->count == 0); i++)
        say(walk, draw(walk, 3) ? SAID_USER : SAID_TOOL, draw(walk, 3));
    make_request(walk, &request);
    tree_match(&walk->tree, &request, &match);
    if (match.node != TREE_NONE && walk->tree.nodes[match.node].is_sampled && match.taken == request.count)
        fail_msg("there is nothing to be shown");
    const size_t shown = show(walk, &request, &match);
    assert_told(walk, shown);
    sample(walk, shown);
    said_request_finish(&request);
}

/* Each sampled token has mask 1 once, what was shown never. */
static void assert_masks(const struct walk *walk, const struct record *record)
{
    uint8_t *masks = calloc(walk->next_id, 1);
    for (size_t i = 0; i < record->trace_count; i++)
        for (size_t k = 0; k < record->traces[i].token_count; k++)
            masks[record->traces[i].token_ids[k]] += record->traces[i].mask[k];
    for (uint32_t id = 0; id < walk->next_id; id++)
        assert_int_equal(masks[id], walk->is_sampled[id]);
    free(masks);
}

static bool is_path(const struct tree *tree, size_t leaf, const struct record_trace *trace)
{
    struct tokens ids = {0};
    assert_true(tree_path(tree, leaf, &ids));
    const bool same = ids.count == trace->token_count &&
                      memcmp(ids.ids, trace->token_ids, ids.count * sizeof(*ids.ids)) == 0;
    tokens_finish(&ids);
    return same;
}

static void assert_record(const struct walk *walk)
{
    struct record record;
    struct refusal no;
    size_t tokens = 0;
    record_init(&record);
    assert_true(traces_write(&walk->tree, labels_trained(), &record));
    if (!record_check(&record, &no))
        fail_msg("%s", no.text);
    assert_masks(walk, &record);
    for (size_t i = 0; i < record.trace_count; i++) {
        size_t at = 0;
        while (at < walk->tree.count && !is_path(&walk->tree, at, &record.traces[i]))
            at++;
        assert_true(at < walk->tree.count && walk->tree.nodes[at].is_sampled);
        tokens += record.traces[i].token_count;
    }
    assert_int_equal(tokens, traces_tokens(&walk->tree));
    record_finish(&record);
}

static void each_sampled_token_counts_once_whatever_a_harness_does_to_its_history(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed <= WALKS; seed++) {
        struct walk *walk = calloc(1, sizeof(*walk));
        walk->seed = seed;
        for (size_t i = 0; i < STEPS && walk->count + 4 < LINES_MAX; i++)
            take_step(walk);
        assert_record(walk);
        tree_finish(&walk->tree);
        free(walk);
    }
}

static void match(const struct walk *walk, struct tree_match *ret)
{
    struct said_request request;
    make_request(walk, &request);
    tree_match(&walk->tree, &request, ret);
    said_request_finish(&request);
}

static void take_plain_turn(struct walk *walk)
{
    struct said_request request;
    struct tree_match found;
    say(walk, SAID_USER, 1);
    make_request(walk, &request);
    tree_match(&walk->tree, &request, &found);
    sample(walk, show(walk, &request, &found));
    said_request_finish(&request);
}

static void what_the_assistant_never_said_is_not_shown_behind_what_was_sampled(void **state)
{
    (void)state;
    struct walk *walk = calloc(1, sizeof(*walk));
    struct tree_match found;
    for (size_t i = 0; i < 3; i++)
        take_plain_turn(walk);
    say(walk, SAID_USER, 1);
    match(walk, &found);
    assert_int_equal(found.node, 5);
    assert_int_equal(found.taken, 6);
    strcpy(walk->lines[3].text, "edited");
    match(walk, &found);
    assert_int_equal(found.node, TREE_NONE);
    assert_true(found.is_rewrite && found.has_history);
    strcpy(walk->lines[3].handle, "");
    match(walk, &found);
    assert_true(found.node == TREE_NONE && !found.is_rewrite && found.has_history);
    walk->count = 3;
    match(walk, &found);
    assert_int_equal(found.node, 2);
    tree_finish(&walk->tree);
    free(walk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_sampled_token_counts_once_whatever_a_harness_does_to_its_history),
        cmocka_unit_test(what_the_assistant_never_said_is_not_shown_behind_what_was_sampled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
