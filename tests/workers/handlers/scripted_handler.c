/*
 * scripted_handler.c - a handler for tests: what an evaluator, an agent or a tool of it does says its name, and how the
 * process begins says its argument. It speaks frames, by the same tables as the worker.
 */
#include <jansson.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "schemas/messages/message.h"

enum { FD = 3 };

static void send_bytes(const void *bytes, size_t len)
{
    for (const char *at = bytes; len > 0;) {
        ssize_t sent = write(FD, at, len);
        if (sent <= 0)
            exit(9);
        at += sent;
        len -= (size_t)sent;
    }
}

static struct buffer held; /* frames to be sent at once */
static bool is_holding;

static void send_held(void)
{
    send_bytes(held.data, held.len);
    buffer_clear(&held);
    is_holding = false;
}

static void send_frame(const void *bytes, size_t len)
{
    const uint8_t head[4] = {(uint8_t)(len >> 24), (uint8_t)(len >> 16), (uint8_t)(len >> 8), (uint8_t)len};
    buffer_append(&held, head, sizeof(head));
    buffer_append(&held, bytes, len);
    if (!is_holding)
        send_held();
}

static void say(enum message_id id, const void *message)
{
    AUTO_BUFFER out = {0};
    struct refusal no = {0};
    if (!message_encode(id, message, &out, &no)) {
        fprintf(stderr, "%s: %s\n", no.field, no.text);
        exit(8);
    }
    send_frame(out.data, out.len);
}

static void read_whole(void *into, size_t len)
{
    for (char *at = into; len > 0;) {
        ssize_t got = read(FD, at, len);
        if (got <= 0)
            exit(0); /* the worker closed it */
        at += got;
        len -= (size_t)got;
    }
}

/* The next message, good until the next but seven. */
static enum message_id hear(union any_message *ret)
{
    static char *kept[8];
    static size_t next;
    uint8_t head[4];
    enum message_id id;
    struct refusal no;
    read_whole(head, sizeof(head));
    const size_t len = (size_t)head[0] << 24 | (size_t)head[1] << 16 | (size_t)head[2] << 8 | head[3];
    free(kept[next % 8]);
    char *bytes = kept[next++ % 8] = malloc(len);
    read_whole(bytes, len);
    if (!message_peek(slice_of(bytes, len), &id, &no) || !message_decode(id, slice_of(bytes, len), ret, &no)) {
        fprintf(stderr, "the worker's message is refused: %s\n", no.text);
        exit(7);
    }
    return id;
}

static void score_with(uint64_t id, double reward, struct slice detail)
{
    say(MSG_handler_score,
        &(struct msg_handler_score){
            .id = id, .reward = reward, .has_reward = true, .detail = detail, .has_detail = detail.len > 0});
}

static void score(uint64_t id, double reward, const char *detail) { score_with(id, reward, slice_from_str(detail)); }

static jmp_buf next_job;

/* The reply to what was asked for; a job that is cancelled meanwhile is over. */
static struct msg_handler_reply reply(void)
{
    union any_message any;
    enum message_id id = hear(&any);
    if (id == MSG_handler_cancel)
        longjmp(next_job, 1);
    if (id != MSG_handler_reply)
        exit(6);
    return any.handler_reply;
}

/* ---- evaluators ------------------------------------------------------------------------------ */

typedef const struct msg_handler_begin *job;

static void grade(job begin) { score(begin->id, 0.5, "half"); }

static void answer(job begin) { score(begin->id, slice_is(begin->answer, "yes"), "read"); }

static void messages(job begin) { score_with(begin->id, 1, begin->messages); }

static void parts(job begin)
{
    say(MSG_handler_score,
        &(struct msg_handler_score){
            .id = begin->id,
            .parts = slice_from_str(
                "[{\"name\":\"right\",\"value\":1},{\"name\":\"form\",\"value\":0.5,\"weight\":0.5}]"),
            .has_parts = true,
            .metrics = slice_from_str("{\"length\":17}"),
            .has_metrics = true,
            .tests = slice_from_str("[{\"name\":\"one\",\"status\":\"passed\"},{\"name\":\"two\",\"status\":\"failed\","
                                    "\"message\":\"no\",\"seconds\":0.5}]"),
            .has_tests = true});
}

static void wrong_parts(job begin)
{
    say(MSG_handler_score,
        &(struct msg_handler_score){.id = begin->id, .parts = slice_from_str("[{\"value\":1}]"), .has_parts = true});
}

static void failing(job begin)
{
    say(MSG_handler_failed, &(struct msg_handler_failed){.id = begin->id,
                                                         .error = slice_from_str("KeyError: 'gold'"),
                                                         .trace = slice_from_str("in line 7 of mine.py"),
                                                         .has_trace = true});
}

static void silent(job begin) { (void)begin; }

static void dying(job begin)
{
    (void)begin;
    exit(3);
}

static void ask_clock(uint64_t id, uint64_t call)
{
    say(MSG_handler_clock, &(struct msg_handler_clock){.id = id, .call = call});
}

static void asks_time(job begin)
{
    ask_clock(begin->id, 41);
    struct msg_handler_reply told = reply();
    score_with(begin->id, told.call == 41 && told.id == begin->id, told.json);
}

static void notes(job begin)
{
    say(MSG_handler_note,
        &(struct msg_handler_note){
            .id = begin->id, .call = 1, .metrics = slice_from_str("{\"steps\":1,\"edits\":3}"), .has_metrics = true});
    reply();
    say(MSG_handler_note,
        &(struct msg_handler_note){
            .id = begin->id, .call = 2, .metrics = slice_from_str("{\"steps\":2}"), .has_metrics = true});
    reply();
    say(MSG_handler_note,
        &(struct msg_handler_note){
            .id = begin->id, .call = 3, .metrics = slice_from_str("{\"steps\":\"two\"}"), .has_metrics = true});
    score(begin->id, reply().has_refusal, "noted");
}

static void command(job begin)
{
    say(MSG_handler_exec,
        &(struct msg_handler_exec){
            .id = begin->id,
            .call = 1,
            .command = slice_from_str("cat left; cat /run/sluice/answer; wc -l < /run/sluice/messages.jsonl; "
                                      "echo no 2>&1 > /run/sluice/answer; head -c 7 /run/sluice/task.json; exit 3")});
    struct msg_handler_reply told = reply();
    score_with(begin->id, told.has_json, told.json);
}

static void files(job begin)
{
    say(MSG_handler_write,
        &(struct msg_handler_write){
            .id = begin->id, .call = 1, .path = slice_from_str("made/here"), .data = slice_of("a\0b\xff", 4)});
    reply();
    say(MSG_handler_read, &(struct msg_handler_read){.id = begin->id, .call = 2, .path = slice_from_str("made/here")});
    struct msg_handler_reply whole = reply();
    const bool is_same = slice_equal(whole.data, slice_of("a\0b\xff", 4));
    say(MSG_handler_read, &(struct msg_handler_read){.id = begin->id,
                                                     .call = 3,
                                                     .path = slice_from_str("/workspace/made/here"),
                                                     .offset = 1,
                                                     .has_offset = true,
                                                     .length = 2,
                                                     .has_length = true});
    struct msg_handler_reply part = reply();
    const bool is_part = slice_equal(part.data, slice_of("\0b", 2)) && strstr((const char *)part.json.data, "true");
    say(MSG_handler_read, &(struct msg_handler_read){.id = begin->id, .call = 4, .path = slice_from_str("not/there")});
    struct msg_handler_reply none = reply();
    score_with(begin->id, is_same && is_part && none.has_refusal, none.refusal);
}

static void twice(job begin)
{
    is_holding = true;
    score(begin->id, 1, "first");
    score(begin->id, 0, "second");
    send_held();
}

static void two_at_once(job begin)
{
    is_holding = true;
    ask_clock(begin->id, 1);
    ask_clock(begin->id, 2);
    send_held();
}

static void other_role(job begin)
{
    say(MSG_handler_output, &(struct msg_handler_output){.id = begin->id, .text = slice_from_str("x")});
}

static void stranger(job begin) { score(begin->id + 1000, 1, "whose?"); }

static void oversized(job begin)
{
    (void)begin;
    send_bytes("\x7f\xff\xff\xff", 4);
}

static void garbage(job begin)
{
    (void)begin;
    send_frame("\xc1garbage", 8);
}

static void not_finite(job begin)
{
    AUTO_BUFFER out = {0};
    struct refusal no;
    message_encode(MSG_handler_score, &(struct msg_handler_score){.id = begin->id, .reward = 0.25, .has_reward = true},
                   &out, &no);
    for (size_t i = 0; i + 9 <= out.len; i++)
        if (out.data[i] == 0xcb) /* a double follows */
            memcpy(out.data + i + 1, "\x7f\xf8\0\0\0\0\0\0", 8);
    send_frame(out.data, out.len);
}

static void printing(job begin)
{
    printf("printed to standard output\n");
    fflush(stdout);
    score(begin->id, 1, "printed");
}

/* A child in a session of its own, which holds on to nothing of this process but its life. */
static void leaving_children(job begin)
{
    char pid[32];
    pid_t child = fork();
    if (child == 0) {
        setsid();
        close(FD);
        for (;;)
            pause();
    }
    snprintf(pid, sizeof(pid), "%d", (int)child);
    score(begin->id, 1, pid);
}

/* Nothing of what is sent is read any more; what was begun has been answered. */
static void deaf(job begin)
{
    (void)begin;
    for (;;)
        pause();
}

/* Answers when it is told to stop, which is too late and no fault. */
static uint64_t unhurried_id;
static void unhurried(job begin) { unhurried_id = begin->id; }

/* ---- tools --------------------------------------------------------------------------------------- */

static void output(uint64_t id, const char *text, bool is_error)
{
    say(MSG_handler_output,
        &(struct msg_handler_output){
            .id = id, .text = slice_from_str(text), .is_error = is_error, .has_is_error = is_error});
}

static void look_up(job begin)
{
    output(begin->id, slice_is(begin->arguments, "{\"word\":\"two\"}") ? "two: 2" : "not found", false);
}

static void look_up_badly(job begin) { output(begin->id, "the dictionary is closed", true); }

static void count_files(job begin)
{
    say(MSG_handler_exec,
        &(struct msg_handler_exec){.id = begin->id, .call = 1, .command = slice_from_str("ls | wc -l")});
    struct msg_handler_reply told = reply();
    AUTO_FREE char *text = strndup((const char *)told.json.data, told.json.len);
    output(begin->id, text ? text : "", false);
}

static void hand_in(job begin)
{
    say(MSG_handler_output, &(struct msg_handler_output){.id = begin->id,
                                                         .text = slice_from_str("taken"),
                                                         .answer = slice_from_str("handed in"),
                                                         .has_answer = true});
}

/* ---- agents -------------------------------------------------------------------------------------- */

static struct msg_handler_reply sample(uint64_t id, const char *messages, bool tools)
{
    say(MSG_handler_sample, &(struct msg_handler_sample){.id = id,
                                                         .call = 7,
                                                         .messages = slice_from_str(messages),
                                                         .has_messages = messages != NULL,
                                                         .tools = tools,
                                                         .has_tools = true});
    return reply();
}

static void end_as(uint64_t id, const char *outcome, const char *answer_said, const char *detail)
{
    say(MSG_handler_end, &(struct msg_handler_end){.id = id,
                                                   .outcome = slice_from_str(outcome),
                                                   .has_outcome = outcome != NULL,
                                                   .answer = slice_from_str(answer_said),
                                                   .has_answer = answer_said != NULL,
                                                   .detail = slice_from_str(detail),
                                                   .has_detail = detail != NULL});
}

static void asks_once(job begin)
{
    sample(begin->id, NULL, false);
    end_as(begin->id, NULL, NULL, NULL);
}

/* As the built-in agent of this name does; the texts of its calls' results are the next messages. */
static void calls_tools(job begin)
{
    AUTO_FREE char *messages = NULL;
    for (;;) {
        struct msg_handler_reply told = sample(begin->id, messages, true);
        json_t *turn = json_loadb((const char *)told.json.data, told.json.len, 0, NULL), *results = json_array();
        const json_t *calls = json_object_get(turn, "calls");
        for (size_t i = 0; i < json_array_size(calls); i++) {
            const json_t *one = json_array_get(calls, i);
            AUTO_FREE char *arguments = json_dumps(json_object_get(one, "arguments"), 0);
            const char *name = json_string_value(json_object_get(one, "name"));
            say(MSG_handler_tool,
                &(struct msg_handler_tool){
                    .id = begin->id, .call = i, .name = slice_from_str(name), .arguments = slice_from_str(arguments)});
            told = reply();
            json_t *given = json_loadb((const char *)told.json.data, told.json.len, 0, NULL);
            json_array_append_new(results, json_pack("{s:s, s:s, s:O}", "role", "tool", "name", name, "content",
                                                     json_object_get(given, "text")));
            json_decref(given);
        }
        free(messages);
        messages = json_array_size(results) ? json_dumps(results, 0) : NULL;
        json_decref(results);
        json_decref(turn);
        if (!messages) {
            end_as(begin->id, "ok", NULL, NULL);
            return;
        }
    }
}

static const char more[] = "[{\"role\":\"user\",\"content\":\"more\"}]";

static void never_ends(job begin)
{
    struct msg_handler_reply told = sample(begin->id, NULL, false);
    while (!told.has_over)
        told = sample(begin->id, more, false);
    if (!sample(begin->id, more, false).has_over)
        exit(5);
    end_as(begin->id, "ok", NULL, "its own words");
}

static void forks(job begin)
{
    sample(begin->id, NULL, false);
    say(MSG_handler_fork,
        &(struct msg_handler_fork){.id = begin->id,
                                   .call = 2,
                                   .messages = slice_from_str("[{\"role\":\"system\",\"content\":\"short\"},"
                                                              "{\"role\":\"assistant\",\"content\":\"I was there\"},"
                                                              "{\"role\":\"user\",\"content\":\"go on\"}]"),
                                   .reason = slice_from_str("compaction")});
    if (reply().has_over) {
        end_as(begin->id, NULL, NULL, NULL);
        return;
    }
    sample(begin->id, NULL, false);
    end_as(begin->id, "ok", "forked", "its own words");
}

/* Each is refused in words, and the job goes on; how many were not. */
static void asks_wrongly(job begin)
{
    char text[32];
    size_t granted = 0;
    granted += !sample(begin->id, "[{\"role\":\"judge\",\"content\":\"x\"}]", false).has_refusal;
    granted += !sample(begin->id, "[]", false).has_refusal;
    sample(begin->id, NULL, false);
    granted += !sample(begin->id, NULL, false).has_refusal;
    granted += !sample(begin->id, "[{\"role\":\"assistant\",\"content\":\"x\"}]", false).has_refusal;
    granted += !sample(begin->id, "[{\"role\":\"tool\",\"content\":\"x\"}]", false).has_refusal;
    say(MSG_handler_tool, &(struct msg_handler_tool){
                              .id = begin->id, .name = slice_from_str("think"), .arguments = slice_from_str("[]")});
    granted += !reply().has_refusal;
    snprintf(text, sizeof(text), "%zu granted", granted);
    end_as(begin->id, "ok", text, text);
}

static void no_model(job begin)
{
    const bool is_refused = sample(begin->id, NULL, false).has_refusal;
    say(MSG_handler_note,
        &(struct msg_handler_note){.id = begin->id, .text = slice_from_str("a plan"), .has_text = true});
    reply();
    end_as(begin->id, "ok", is_refused ? "refused" : "granted", NULL);
}

static void runs_command(job begin)
{
    say(MSG_handler_exec, &(struct msg_handler_exec){
                              .id = begin->id, .command = slice_from_str("cat given; echo made > file; sleep 0.01")});
    struct msg_handler_reply told = reply();
    AUTO_FREE char *text = strndup((const char *)told.json.data, told.json.len);
    end_as(begin->id, "ok", text, NULL);
}

static void ends_oddly(job begin) { end_as(begin->id, "infra", NULL, NULL); }
static void gives_up(job begin) { end_as(begin->id, "task", NULL, "the task makes no sense"); }

#define WORD_SCHEMA                                                                                                    \
    "{\"type\":\"object\",\"properties\":{\"word\":{\"type\":\"string\",\"description\":\"The word.\"}},"              \
    "\"required\":[\"word\"]}"

static const struct {
    const char *name;
    void (*run)(job begin);
} tools[] = {
    {"look_up", look_up},  {"look_up_badly", look_up_badly}, {"tool_failing", failing}, {"tool_silent", silent},
    {"tool_dying", dying}, {"count_files", count_files},     {"hand_in", hand_in},
};

static const struct {
    const char *name;
    void (*run)(job begin);
} agents[] = {
    {"asks_once", asks_once},       {"calls_tools", calls_tools},
    {"never_ends", never_ends},     {"forks", forks},
    {"asks_wrongly", asks_wrongly}, {"no_model", no_model},
    {"runs_command", runs_command}, {"ends_oddly", ends_oddly},
    {"gives_up", gives_up},         {"agent_failing", failing},
    {"agent_silent", silent},       {"agent_dying", dying},
};

static const struct {
    const char *name;
    void (*run)(job begin);
} evaluators[] = {
    {"grade", grade},
    {"answer", answer},
    {"messages", messages},
    {"parts", parts},
    {"wrong_parts", wrong_parts},
    {"failing", failing},
    {"silent", silent},
    {"dying", dying},
    {"asks_time", asks_time},
    {"notes", notes},
    {"command_", command},
    {"files", files},
    {"twice", twice},
    {"two_at_once", two_at_once},
    {"other_role", other_role},
    {"stranger", stranger},
    {"oversized", oversized},
    {"garbage", garbage},
    {"not_finite", not_finite},
    {"printing", printing},
    {"leaving_children", leaving_children},
    {"deaf", deaf},
    {"unhurried", unhurried},
};

static void run(job begin)
{
    for (size_t i = 0; i < sizeof(evaluators) / sizeof(evaluators[0]); i++)
        if (slice_is(begin->name, evaluators[i].name))
            evaluators[i].run(begin);
    for (size_t i = 0; i < sizeof(agents) / sizeof(agents[0]); i++)
        if (slice_is(begin->name, agents[i].name))
            agents[i].run(begin);
    for (size_t i = 0; i < sizeof(tools) / sizeof(tools[0]); i++)
        if (slice_is(begin->name, tools[i].name))
            tools[i].run(begin);
}

/* ---- the process -------------------------------------------------------------------------------- */

static void hello(const char *offers)
{
    say(MSG_handler_hello, &(struct msg_handler_hello){.protocol = 1, .offers = slice_from_str(offers)});
}

static void say_offers(void)
{
    AUTO_BUFFER offers = {0};
    buffer_append_str(&offers, "[");
    for (size_t i = 0; i < sizeof(evaluators) / sizeof(evaluators[0]); i++)
        buffer_printf(&offers, "%s{\"role\":\"evaluator\",\"name\":\"%s\",\"version\":\"2\"}", i ? "," : "",
                      evaluators[i].name);
    for (size_t i = 0; i < sizeof(agents) / sizeof(agents[0]); i++)
        buffer_printf(&offers, ",{\"role\":\"agent\",\"name\":\"%s\",\"version\":\"1.2\"}", agents[i].name);
    for (size_t i = 0; i < sizeof(tools) / sizeof(tools[0]); i++)
        buffer_printf(&offers, ",{\"role\":\"tool\",\"name\":\"%s\",\"doc\":\"Looks a word up.\",\"parameters\":%s}",
                      tools[i].name, WORD_SCHEMA);
    buffer_append_str(&offers, "]");
    AUTO_FREE char *text = buffer_take_str(&offers);
    hello(text);
}

static void begin_as(const char *mode)
{
    if (strcmp(mode, "exits") == 0)
        exit(4);
    if (strcmp(mode, "mute") == 0)
        for (;;)
            pause();
    if (strcmp(mode, "malformed") == 0)
        hello("[{\"role\":\"judge\",\"name\":\"x\"}]");
    else if (strcmp(mode, "built-in") == 0)
        hello("[{\"role\":\"evaluator\",\"name\":\"math\"}]");
    else if (strcmp(mode, "hasty") == 0)
        score(1, 1, "no hello");
    else if (strcmp(mode, "stubborn") == 0)
        signal(SIGTERM, SIG_IGN);
    if (strcmp(mode, "good") == 0 || strcmp(mode, "stubborn") == 0)
        say_offers();
}

int main(int argc, char **argv)
{
    begin_as(argc > 1 ? argv[1] : "good");
    union any_message any;
    setjmp(next_job);
    for (;;) {
        enum message_id id = hear(&any);
        if (id == MSG_handler_begin)
            run(&any.handler_begin);
        else if (id == MSG_handler_cancel && any.handler_cancel.id == unhurried_id)
            score(unhurried_id, 1, "late");
    }
}
