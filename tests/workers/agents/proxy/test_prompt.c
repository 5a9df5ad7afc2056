/* Where a harness's requests go on, over a scripted engine: behind what was sampled, or in a prompt anew, and why. */
#include "tests/workers/agents/proxy/said_world.h"

#include "tests/workers/engines/engine_world.h"
#include "workers/agents/proxy/proxy.h"

enum { STEPS_MAX = 5 };

/*
 * Requests one after the other, with bash on offer. A line "@1" is the first turn as it was told, and "@1=words" the
 * same in other words.
 */
struct walk {
    const char *what, *script, *more; /* of the task's agent */
    struct line steps[STEPS_MAX][LINES_MAX];
    const char *traces;  /* each as "reason: turns", by their first letters; NULL: the last step is refused */
    const char *refusal; /* its words */
    /* What came of it. */
    struct record record;
    char refused[512];
};

#define SCRIPT(template)                                                                                               \
    "{'template': '" template "', 'rules': [{'if': 'do call', 'reply': 'I look.\\n<tool_call>\\n{\\\"name\\\": "       \
                              "\\\"bash\\\", \\\"arguments\\\": {\\\"command\\\": \\\"ls\\\"}}\\n</tool_call>'}, "     \
                              "{'if': 'think', 'reply': '<think>\\nhm\\n</think>\\n\\nThought.'}, {'reply': 'fine'}]}"
#define PLAIN SCRIPT("qwen")
#define SHORT "{'context': 2000, 'template': 'qwen', 'rules': [{'reply': 'fine'}]}"
#define WORDS "word word word word word word word word word word "
#define MORE WORDS WORDS WORDS WORDS WORDS WORDS WORDS WORDS WORDS WORDS
#define TOO_LONG MORE MORE MORE MORE MORE

static struct walk walks[] = {
    {"the first request is a prompt", PLAIN, "", {{{SAID_USER, "hi"}}}, ": p a"},
    {"a reply that is given back is gone on from",
     PLAIN,
     "",
     {{{SAID_USER, "hi"}}, {{SAID_USER, "hi"}, {SAID_ASSISTANT, "@1"}, {SAID_USER, "and?"}}},
     ": p a u a"},
    {"blanks behind it are none",
     PLAIN,
     "",
     {{{SAID_USER, "hi"}}, {{SAID_USER, "hi"}, {SAID_ASSISTANT, "@1=fine \n"}, {SAID_USER, "and?"}}},
     ": p a u a"},
    {"a call's result is the tool's",
     PLAIN,
     "",
     {{{SAID_USER, "do call"}}, {{SAID_USER, "do call"}, {SAID_ASSISTANT, "@1"}, {SAID_TOOL, "x"}}},
     ": p a t a"},
    {"a result and words are the user's",
     PLAIN,
     "",
     {{{SAID_USER, "do call"}},
      {{SAID_USER, "do call"}, {SAID_ASSISTANT, "@1"}, {SAID_TOOL, "x"}, {SAID_USER, "and?"}}},
     ": p a t a"},
    {"the same request again is another turn behind the same prompt",
     PLAIN,
     "",
     {{{SAID_USER, "hi"}}, {{SAID_USER, "hi"}}},
     ": p a; branch: p a"},
    {"another conversation", PLAIN, "", {{{SAID_USER, "hi"}}, {{SAID_USER, "a title"}}}, ": p a; branch: p a"},
    {"other words behind a reply",
     PLAIN,
     "",
     {{{SAID_USER, "hi"}},
      {{SAID_USER, "hi"}, {SAID_ASSISTANT, "@1"}, {SAID_USER, "and?"}},
      {{SAID_USER, "hi"}, {SAID_ASSISTANT, "@1"}, {SAID_USER, "or?"}}},
     ": p a u a; branch: p u a"},
    {"a reply in other words",
     PLAIN,
     "",
     {{{SAID_USER, "do call"}}, {{SAID_USER, "do call"}, {SAID_ASSISTANT, "@1=No."}, {SAID_TOOL, "x"}}},
     ": p a; rewrite: p a"},
    {"a reply that nobody sampled",
     PLAIN,
     "",
     {{{SAID_USER, "hi"}}, {{SAID_USER, "hi"}, {SAID_ASSISTANT, "made up"}, {SAID_USER, "and?"}}},
     ": p a; history: p a"},
    {"a compaction, whose summary is the user's",
     PLAIN,
     "",
     {{{SAID_SYSTEM, "S"}, {SAID_USER, "hi"}}, {{SAID_SYSTEM, "S"}, {SAID_USER, "in short: hi"}}},
     ": p a; branch: p a"},
    {"thinking that the template leaves out of history",
     SCRIPT("qwen3"),
     "",
     {{{SAID_USER, "think"}}, {{SAID_USER, "think"}, {SAID_ASSISTANT, "@1"}, {SAID_USER, "and?"}}},
     ": p a; rewrite: p a"},
    {"a reply that was cut",
     PLAIN,
     ", 'max_traces': 2}, 'sampling': {'max_tokens': 2",
     {{{SAID_USER, "hi"}}, {{SAID_USER, "hi"}, {SAID_ASSISTANT, "@1"}, {SAID_USER, "and?"}}},
     ": p a; cut: p a"},
    {"a trace more than there may be",
     PLAIN,
     ", 'max_traces': 1",
     {{{SAID_USER, "hi"}}, {{SAID_USER, "a title"}}},
     NULL,
     "agent.max_traces is 1"},
    {"a prompt that is too long leaves nothing behind",
     SHORT,
     "",
     {{{SAID_USER, "hi"}}, {{SAID_USER, TOO_LONG}}},
     ": p a",
     "leaves no room in 2000"},
    {"so does what is too long behind a reply",
     SHORT,
     "",
     {{{SAID_USER, "hi"}}, {{SAID_USER, "hi"}, {SAID_ASSISTANT, "@1"}, {SAID_USER, TOO_LONG}}},
     ": p a",
     "leaves no room in 2000"},
    {"what the template refuses",
     PLAIN,
     "",
     {{{SAID_USER, "template raises"}}},
     NULL,
     "the model's chat template refuses the conversation: no such thing"},
};

static const struct said *turn_of(const struct tree *tree, size_t which)
{
    for (size_t i = 0; i < tree->count; i++)
        if (tree->nodes[i].is_sampled && --which == 0)
            return &tree->nodes[i].messages[0];
    fail_msg("there is no such turn");
    return NULL;
}

static void give_back(struct said_request *request, const struct said *told, const char *words)
{
    struct said *said = say_line(request, &(struct line){SAID_ASSISTANT, words ? words : told->text});
    said->thinking = told->thinking ? strdup(told->thinking) : NULL;
    for (size_t i = 0; i < told->call_count; i++) {
        struct said_call *call = said_add_call(said);
        call->id = strdup(told->calls[i].id);
        call->name = strdup(told->calls[i].name);
        call->arguments = json_deep_copy(told->calls[i].arguments);
    }
}

/* A result names the call that was made last. */
static void answer_call(struct said *result, const struct said_request *request)
{
    for (size_t i = 0; i < request->count; i++)
        if (request->messages[i].call_count > 0) {
            free(result->call_id);
            result->call_id = strdup(request->messages[i].calls[0].id);
        }
}

static void make_step(const struct tree *tree, const struct line *lines, struct said_request *ret)
{
    *ret = (struct said_request){0};
    for (size_t i = 0; i < LINES_MAX && lines[i].text; i++) {
        const char *text = lines[i].text;
        if (*text == '@')
            give_back(ret, turn_of(tree, (size_t)(text[1] - '0')), text[2] ? text + 3 : NULL);
        else if (lines[i].role == SAID_TOOL)
            answer_call(say_line(ret, &lines[i]), ret);
        else
            say_line(ret, &lines[i]);
    }
    offer_bash(ret);
}

static bool take_step(struct proxy *proxy, const struct line *lines, struct fail *fail)
{
    struct said_request request;
    struct proxy_turn turn = {0};
    enum reply_error why;
    make_step(&proxy->tree, lines, &request);
    const bool is_taken = proxy_take_turn(proxy, &request, NULL, &turn, &why, fail);
    if (is_taken)
        proxy_note_delivered(proxy, turn.node);
    proxy_turn_finish(&turn);
    said_request_finish(&request);
    return is_taken;
}

static struct task *task_of(const struct walk *walk)
{
    AUTO_BUFFER json = {0};
    struct refusal no = {0};
    buffer_printf(&json,
                  "{'task': 't', 'prompt': 'x', 'agent': {'kind': 'harness', 'command': 'true', 'form': 'hermes'%s}}",
                  walk->more);
    for (size_t i = 0; i < json.len; i++)
        json.data[i] = json.data[i] == '\'' ? '"' : json.data[i];
    struct task *task = task_parse(buffer_peek(&json), &no);
    if (!task)
        fail_msg("%s: %s", no.field, no.text);
    return task;
}

static void run_walk(void *arg)
{
    struct walk *walk = arg;
    struct task *task = task_of(walk);
    struct agent_run run = {.task = task, .engine = world_engine(fiber_world), .record = &walk->record};
    struct proxy proxy;
    struct fail fail = {0};
    record_init(&walk->record);
    assert_int_equal(proxy_open(&proxy, &run, &fail), 0);
    for (size_t i = 0; i < STEPS_MAX && walk->steps[i][0].text && !*walk->refused; i++)
        if (!take_step(&proxy, walk->steps[i], &fail))
            snprintf(walk->refused, sizeof(walk->refused), "%s", fail.text);
    assert_true(proxy_record(&proxy));
    proxy_close(&proxy);
    free(run.answer);
    task_destroy(task);
}

static char *reasons_of(const struct record *record)
{
    struct buffer out = {0};
    for (size_t i = 0; i < record->trace_count; i++) {
        const struct record_trace *trace = &record->traces[i];
        buffer_printf(&out, "%s%.*s:", i ? "; " : "", (int)strcspn(trace->reason, ":"), trace->reason);
        for (size_t k = 0; k < trace->turn_count; k++)
            buffer_printf(&out, " %c", trace->turns[k].role[0]);
    }
    return buffer_take_str(&out);
}

static void assert_walk(const struct walk *walk)
{
    struct refusal no;
    if (walk->refusal && !strstr(walk->refused, walk->refusal))
        fail_msg("%s: '%s', not '%s'", walk->what, walk->refused, walk->refusal);
    if (!walk->refusal && *walk->refused)
        fail_msg("%s: %s", walk->what, walk->refused);
    if (!record_check(&walk->record, &no))
        fail_msg("%s: %s", walk->what, no.text);
    AUTO_FREE char *traces = reasons_of(&walk->record);
    if (walk->traces && strcmp(traces, walk->traces) != 0)
        fail_msg("%s: %s, not %s", walk->what, traces, walk->traces);
}

static void a_request_goes_on_where_its_history_was_sampled_or_says_why_not(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(walks); i++) {
        struct world world;
        world_open(&world, walks[i].script, NULL);
        world_run(&world, run_walk, &walks[i], 0, 1);
        world_close(&world);
        assert_walk(&walks[i]);
        record_finish(&walks[i].record);
    }
}

/* ---- what the record says ------------------------------------------------------------------------------ */

/* Each trace's messages, as "role=content". */
static void assert_said(const struct record *record, size_t which, const char *expected)
{
    AUTO_BUFFER out = {0};
    const struct record_stretches *said = &record->traces[which].messages;
    for (size_t i = 0; i < said->count; i++)
        for (size_t k = 0; k < said->runs[i].length; k++) {
            const struct record_message *message = &record->messages[said->runs[i].offset + k];
            buffer_printf(&out, "%s%s=%s", out.len ? "; " : "", message->role, message->content);
        }
    if (!slice_is(buffer_peek(&out), expected))
        fail_msg("trace %zu says %.*s, not %s", which, SLICE_ARG(buffer_peek(&out)), expected);
}

/* The second edits a reply, the third what was told behind it: what both begin with is said once. */
static void what_a_prompt_begins_with_as_an_earlier_one_is_said_once(void **state)
{
    (void)state;
    struct walk walk = {
        .script = "{'rules': [{'reply': 'fine'}]}",
        .more = "",
        .steps = {{{SAID_SYSTEM, "S"}, {SAID_USER, "hi"}},
                  {{SAID_SYSTEM, "S"}, {SAID_USER, "hi"}, {SAID_ASSISTANT, "edited"}, {SAID_USER, "and?"}},
                  {{SAID_SYSTEM, "S"}, {SAID_USER, "hi"}, {SAID_ASSISTANT, "edited"}, {SAID_USER, "or?"}}}};
    struct world world;
    world_open(&world, walk.script, NULL);
    world_run(&world, run_walk, &walk, 0, 1);
    world_close(&world);
    const struct record *record = &walk.record;
    assert_int_equal(record->trace_count, 3);
    assert_int_equal(record->message_count, 8); /* system, hi, fine; edited, and?, fine; or?, fine */
    AUTO_BUFFER system = {0};
    buffer_printf(&system, "system=%s; user=hi; ", record->messages[0].content);
    static const char *const rest[] = {"assistant=fine", "assistant=edited; user=and?; assistant=fine",
                                       "assistant=edited; user=or?; assistant=fine"};
    for (size_t i = 0; i < COUNT(rest); i++) {
        struct buffer all = {0};
        buffer_printf(&all, "%.*s%s", SLICE_ARG(buffer_peek(&system)), rest[i]);
        AUTO_FREE char *expected = buffer_take_str(&all);
        assert_said(record, i, expected);
    }
    record_finish(&walk.record);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_goes_on_where_its_history_was_sampled_or_says_why_not),
        cmocka_unit_test(what_a_prompt_begins_with_as_an_earlier_one_is_said_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
