/* What the paths of a tree are, which of their turns train, and what was said in them. */
#include "tests/workers/agents/proxy/said_world.h"

#include "schemas/labels.h"
#include "workers/agents/proxy/traces/traces.h"

enum { NODES_MAX = 12 };
enum { TOOLS = 1, UNREAD = 2, BEHIND = 4 };

/*
 * A node of a tree: a root, by its system prompt; what was shown behind the sampled node `parent`; or what was sampled
 * behind the shown one. One without a kind ends the list. A root that is BEHIND shows a reply in words of its own.
 */
struct plan {
    enum { ROOT = 1, SHOWN, SAMPLED } kind;
    int parent, traits;
    const char *system;
};

static void grow(struct tree *tree, const struct plan *plan, uint32_t id)
{
    struct said_request request;
    struct line root[LINES_MAX] = {{SAID_SYSTEM, plan->system ? plan->system : ""}, {SAID_USER, "go"}};
    const struct line shown[LINES_MAX] = {{SAID_USER, "go on"}}, said[LINES_MAX] = {{SAID_ASSISTANT, "yes"}};
    if (plan->traits & BEHIND) {
        root[2] = (struct line){SAID_ASSISTANT, "well"};
        root[3] = (struct line){SAID_USER, "go on"};
    }
    make_request(plan->kind == ROOT ? root : plan->kind == SHOWN ? shown : said, &request);
    if (plan->traits & TOOLS)
        offer_bash(&request);
    struct tree_node *node = tree_add(tree, plan->kind == ROOT ? TREE_NONE : (size_t)plan->parent);
    assert_non_null(node);
    node->is_sampled = plan->kind == SAMPLED;
    node->is_delivered = !(plan->traits & UNREAD);
    node->reason = strdup(tree->count == 1 ? "" : "branch");
    assert_true(tree_take_messages(node, &request, 0) && tokens_append(&node->ids, &id, 1));
    assert_true(record_stretches_add(&node->said, id, 1));
    if (node->is_sampled) {
        node->turn = (struct record_turn){.role = "assistant", .finish = "stop"};
        node->logprobs = calloc(1, sizeof(*node->logprobs));
        node->logprobs[0] = -1;
    }
    said_request_finish(&request);
}

/* Of each trace its label and turns, by their first letters; a sampled one with + where it trains, or what masks it. */
static char *summary_of(const struct record *record)
{
    struct buffer out = {0};
    for (size_t i = 0; i < record->trace_count; i++) {
        const struct record_trace *trace = &record->traces[i];
        buffer_printf(&out, "%s%s:", i ? "; " : "", trace->label);
        for (size_t k = 0; k < trace->turn_count; k++) {
            const struct record_turn *turn = &trace->turns[k];
            buffer_printf(&out, " %c%s%s", turn->role[0], trace->mask[turn->offset] ? "+" : "", turn->masked);
        }
    }
    return buffer_take_str(&out);
}

#define DEFAULT 0
static const struct {
    const char *what;
    uint32_t trained; /* DEFAULT: where the task says nothing */
    struct plan nodes[NODES_MAX];
    const char *traces;
} cases[] = {
    {"a linear run", DEFAULT, {{ROOT, 0, TOOLS, "S"}, {SAMPLED, 0}, {SHOWN, 1}, {SAMPLED, 2}}, "main: p a+ u a+"},
    {"one that nobody answered", DEFAULT, {{ROOT, 0, TOOLS, "S"}}, "main: p"},
    {"a title before the main conversation",
     DEFAULT,
     {{ROOT, 0, 0, "Titles."}, {SAMPLED, 0}, {ROOT, 0, TOOLS, "S"}, {SAMPLED, 2}},
     "auxiliary: p aauxiliary; main: p a+"},
    {"one without tools under the main prompt, as a summary is",
     DEFAULT,
     {{ROOT, 0, TOOLS, "S"}, {SAMPLED, 0}, {ROOT, 0, 0, "S"}, {SAMPLED, 2}, {ROOT, 0, TOOLS, "S"}, {SAMPLED, 4}},
     "main: p a+; main: p a+; main: p a+"},
    {"a summary under a prompt of its own, and what goes on from it",
     DEFAULT,
     {{ROOT, 0, TOOLS, "S"},
      {SAMPLED, 0},
      {SHOWN, 1},
      {SAMPLED, 2},
      {ROOT, 0, BEHIND, "Sum up."},
      {SAMPLED, 4},
      {ROOT, 0, TOOLS, "S"},
      {SAMPLED, 6}},
     "main: p a+ u a+; auxiliary: p aauxiliary; main: p a+"},
    {"a loop without tools, and one request that has some",
     DEFAULT,
     {{ROOT, 0, 0, "S"}, {SAMPLED, 0}, {ROOT, 0, TOOLS, "Extract."}, {SAMPLED, 2}, {SHOWN, 1}, {SAMPLED, 4}},
     "main: p a+ u a+; sub-agent: p a+"},
    {"a loop without tools behind a request that has some",
     1u << LABEL_MAIN,
     {{ROOT, 0, TOOLS, "Route."}, {SAMPLED, 0}, {ROOT, 0, 0, "S"}, {SAMPLED, 2}, {SHOWN, 3}, {SAMPLED, 4}},
     "sub-agent: p asub-agent; main: p a+ u a+"},
    {"a loop without tools whose replies it changes, and one request that has some",
     DEFAULT,
     {{ROOT, 0, TOOLS, "Route."}, {SAMPLED, 0}, {ROOT, 0, 0, "S"}, {SAMPLED, 2}, {ROOT, 0, BEHIND, "S"}, {SAMPLED, 4}},
     "sub-agent: p a+; main: p a+; main: p a+"},
    {"a loop that asks anew each time, and one request that has tools",
     DEFAULT,
     {{ROOT, 0, TOOLS, "Route."}, {SAMPLED, 0}, {ROOT, 0, 0, "S"}, {SAMPLED, 2}, {ROOT, 0, 0, "S"}, {SAMPLED, 4}},
     "sub-agent: p a+; main: p a+; main: p a+"},
    {"a main conversation that gets its tools later",
     DEFAULT,
     {{ROOT, 0, 0, "S"},
      {SAMPLED, 0},
      {ROOT, 0, TOOLS | BEHIND, "S"},
      {SAMPLED, 2},
      {ROOT, 0, 0, "Titles."},
      {SAMPLED, 4}},
     "main: p a+; main: p a+; auxiliary: p aauxiliary"},
    {"one without tools that goes on, beside a main one with tools",
     DEFAULT,
     {{ROOT, 0, TOOLS, "S"},
      {SAMPLED, 0},
      {ROOT, 0, 0, "Plan."},
      {SAMPLED, 2},
      {SHOWN, 3},
      {SAMPLED, 4},
      {SHOWN, 1},
      {SAMPLED, 6}},
     "main: p a+ u a+; sub-agent: p a+ u a+"},
    {"a title that is called for by a tool",
     1u << LABEL_MAIN,
     {{ROOT, 0, TOOLS, "Titles."}, {SAMPLED, 0}, {ROOT, 0, TOOLS, "S"}, {SAMPLED, 2}, {SHOWN, 3}, {SAMPLED, 4}},
     "sub-agent: p asub-agent; main: p a+ u a+"},
    {"topics, more often than the main conversation had turns",
     DEFAULT,
     {{ROOT, 0, 0, "Topics."},
      {SAMPLED, 0},
      {ROOT, 0, 0, "Topics."},
      {SAMPLED, 2},
      {ROOT, 0, 0, "Topics."},
      {SAMPLED, 4},
      {ROOT, 0, TOOLS, "S"},
      {SAMPLED, 6},
      {SHOWN, 7},
      {SAMPLED, 8}},
     "auxiliary: p aauxiliary; auxiliary: p aauxiliary; auxiliary: p aauxiliary; main: p a+ u a+"},
    {"a sub-agent that takes more turns than the main conversation",
     DEFAULT,
     {{ROOT, 0, TOOLS, "S"},
      {SAMPLED, 0},
      {ROOT, 0, TOOLS, "T"},
      {SAMPLED, 2},
      {SHOWN, 3},
      {SAMPLED, 4},
      {SHOWN, 5},
      {SAMPLED, 6},
      {SHOWN, 1},
      {SAMPLED, 8}},
     "main: p a+ u a+; sub-agent: p a+ u a+ u a+"},
    {"a branch of a sub-agent is the sub-agent's",
     1u << LABEL_MAIN | 1u << LABEL_BRANCH,
     {{ROOT, 0, TOOLS, "S"},
      {SAMPLED, 0},
      {SHOWN, 1},
      {SAMPLED, 2},
      {ROOT, 0, TOOLS, "T"},
      {SAMPLED, 4},
      {SHOWN, 5},
      {SAMPLED, 6},
      {SHOWN, 5},
      {SAMPLED, 8}},
     "main: p a+ u a+; sub-agent: p asub-agent u asub-agent; sub-agent: p u asub-agent"},
    {"a history that was edited",
     DEFAULT,
     {{ROOT, 0, 0, "Titles."},
      {SAMPLED, 0},
      {ROOT, 0, TOOLS, "S"},
      {SAMPLED, 2},
      {ROOT, 0, TOOLS | BEHIND, "S"},
      {SAMPLED, 4}},
     "auxiliary: p aauxiliary; main: p a+; main: p a+"},
    {"a system prompt that is another each time",
     DEFAULT,
     {{ROOT, 0, 0, "Titles."},
      {SAMPLED, 0},
      {ROOT, 0, TOOLS, "It is one."},
      {SAMPLED, 2},
      {ROOT, 0, TOOLS | BEHIND, "It is two."},
      {SAMPLED, 4}},
     "auxiliary: p aauxiliary; main: p a+; sub-agent: p a+"},
    {"where nobody has tools the first is the main one",
     DEFAULT,
     {{ROOT, 0, 0, "S"}, {SAMPLED, 0}, {ROOT, 0, 0, "T"}, {SAMPLED, 2}},
     "main: p a+; sub-agent: p a+"},
    {"auxiliary ones that are asked for",
     1u << LABEL_AUXILIARY | 1u << LABEL_MAIN,
     {{ROOT, 0, 0, "Titles."}, {SAMPLED, 0}, {ROOT, 0, TOOLS, "S"}, {SAMPLED, 2}, {ROOT, 0, TOOLS, "T"}, {SAMPLED, 4}},
     "auxiliary: p a+; main: p a+; sub-agent: p asub-agent"},
    {"of two paths the one that was gone on with last is the first, and holds what both have",
     DEFAULT,
     {{ROOT, 0, TOOLS, "S"}, {SAMPLED, 0}, {SHOWN, 1}, {SAMPLED, 2}, {SHOWN, 1}, {SAMPLED, 4}},
     "main: p a+ u a+; branch: p u a+"},
    {"a turn at a path's end that nobody read",
     DEFAULT,
     {{ROOT, 0, TOOLS, "S"}, {SAMPLED, 0}, {SHOWN, 1}, {SAMPLED, 2, UNREAD}},
     "main: p a+ u aundelivered"},
    {"one that was asked for again",
     DEFAULT,
     {{ROOT, 0, TOOLS, "S"}, {SAMPLED, 0, UNREAD}, {SAMPLED, 0}, {SHOWN, 2}, {SAMPLED, 3}},
     "main: p a+ u a+; undelivered: p aundelivered"},
    {"a path that went far is the main one, though its last turn was not read",
     DEFAULT,
     {{ROOT, 0, TOOLS, "S"}, {SAMPLED, 0}, {SAMPLED, 0}, {SHOWN, 2}, {SAMPLED, 3, UNREAD}},
     "main: p a+ u aundelivered; branch: p a+"},
    {"turns that nobody read, where they train",
     1u << LABEL_UNDELIVERED | 1u << LABEL_MAIN,
     {{ROOT, 0, TOOLS, "S"}, {SAMPLED, 0, UNREAD}, {SAMPLED, 0}, {SAMPLED, 0}},
     "main: p a+; undelivered: p a+; branch: p abranch"},
    {"a title that nobody read",
     1u << LABEL_AUXILIARY,
     {{ROOT, 0, 0, "Titles."}, {SAMPLED, 0, UNREAD}, {ROOT, 0, TOOLS, "S"}, {SAMPLED, 2}},
     "auxiliary: p aundelivered; main: p amain"},
    {"none was read", DEFAULT, {{ROOT, 0, TOOLS, "S"}, {SAMPLED, 0, UNREAD}}, "undelivered: p aundelivered"},
};

static void make_record_of(const struct plan *nodes, uint32_t trained, struct record *ret)
{
    struct tree tree = {0};
    struct refusal no;
    record_init(ret);
    for (uint32_t i = 0; i < NODES_MAX && nodes[i].kind; i++) {
        grow(&tree, &nodes[i], i);
        assert_true(record_say(ret, "user", slice_from_str("go"), NULL, 0));
    }
    assert_true(traces_write(&tree, trained, ret));
    if (!record_check(ret, &no))
        fail_msg("%s", no.text);
    tree_finish(&tree);
}

static void each_trace_says_what_it_is_and_trains_as_the_task_has_it(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct record record;
        make_record_of(cases[i].nodes, cases[i].trained == DEFAULT ? labels_trained() : cases[i].trained, &record);
        AUTO_FREE char *traces = summary_of(&record);
        if (strcmp(traces, cases[i].traces) != 0)
            fail_msg("%s: %s, not %s", cases[i].what, traces, cases[i].traces);
        record_finish(&record);
    }
}

/* Of each id its node's message; what a branch has in common it says as well. */
static void each_trace_says_which_messages_were_said_in_it(void **state)
{
    (void)state;
    static const struct plan nodes[NODES_MAX] = {{ROOT, 0, TOOLS, "S"}, {SAMPLED, 0}, {SHOWN, 1},
                                                 {SAMPLED, 2},          {SHOWN, 1},   {SAMPLED, 4}};
    struct record record;
    make_record_of(nodes, labels_trained(), &record);
    for (size_t i = 0; i < record.trace_count; i++) {
        const struct record_trace *trace = &record.traces[i];
        size_t at = 0;
        for (size_t k = 0; k < trace->messages.count; k++)
            for (uint32_t m = 0; m < trace->messages.runs[k].length; m++)
                assert_int_equal(trace->token_ids[at++], trace->messages.runs[k].offset + m);
        assert_int_equal(at, trace->token_count);
    }
    assert_int_equal(record.traces[0].messages.count, 2); /* the later of both paths, behind what both have */
    assert_int_equal(record.traces[1].messages.count, 1);
    record_finish(&record);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_trace_says_what_it_is_and_trains_as_the_task_has_it),
        cmocka_unit_test(each_trace_says_which_messages_were_said_in_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
