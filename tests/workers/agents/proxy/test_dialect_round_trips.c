/*
 * A turn that was told comes back in the next request, changed as each harness changes it: written anew, trimmed, in
 * blocks or as a string. What it is known by stays. And what a stream adds up to is what the whole answer says.
 */
#include "tests/workers/agents/proxy/dialect_replies.h"

/* ---- what a stream adds up to ------------------------------------------------------------------ */

static void join_text(json_t *object, const char *key, const char *more)
{
    AUTO_BUFFER text = {0};
    const char *before = json_string_value(json_object_get(object, key));
    buffer_printf(&text, "%s%s", before ? before : "", more);
    json_object_set_new(object, key, json_stringn((char *)text.data, text.len));
}

static const char *word(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

/* A chat message of its deltas. */
static void add_chat(json_t *turn, const json_t *event)
{
    const json_t *delta = json_object_get(json_array_get(json_object_get(event, "choices"), 0), "delta");
    const json_t *calls = json_object_get(delta, "tool_calls");
    if (word(delta, "content"))
        join_text(turn, "content", word(delta, "content"));
    if (word(delta, "reasoning_content"))
        join_text(turn, "reasoning_content", word(delta, "reasoning_content"));
    if (json_array_size(calls) == 0)
        return;
    json_t *call = json_deep_copy(json_array_get(calls, 0));
    if (!json_object_get(turn, "tool_calls"))
        json_object_set_new(turn, "tool_calls", json_array());
    assert_int_equal(json_integer_value(json_object_get(call, "index")),
                     json_array_size(json_object_get(turn, "tool_calls")));
    json_object_del(call, "index");
    json_array_append_new(json_object_get(turn, "tool_calls"), call);
}

/* Anthropic's content, by the blocks' indices. */
static void add_anthropic(json_t *turn, const json_t *event)
{
    json_t *content = json_object_get(turn, "content"), *delta = json_object_get(event, "delta");
    const size_t at = (size_t)json_integer_value(json_object_get(event, "index"));
    json_t *block = json_array_get(content, at);
    if (strcmp(word(event, "type"), "content_block_start") == 0) {
        assert_int_equal(at, json_array_size(content));
        json_array_append_new(content, json_deep_copy(json_object_get(event, "content_block")));
    } else if (strcmp(word(event, "type"), "content_block_delta") == 0 && word(delta, "partial_json")) {
        json_object_set_new(block, "input",
                            parse_json(word(delta, "partial_json"), strlen(word(delta, "partial_json"))));
    } else if (strcmp(word(event, "type"), "content_block_delta") == 0) {
        const char *const keys[] = {"text", "thinking", "signature"};
        for (size_t i = 0; i < 3; i++)
            if (word(delta, keys[i]))
                join_text(block, keys[i], word(delta, keys[i]));
    }
}

/* The items of Responses as they are done, each after its own deltas. */
static void add_responses(json_t *turn, const json_t *event)
{
    const char *type = word(event, "type");
    json_t *items = json_object_get(turn, "output");
    assert_int_equal(json_integer_value(json_object_get(event, "sequence_number")),
                     json_integer_value(json_object_get(turn, "count")));
    json_object_set_new(turn, "count", json_integer(json_integer_value(json_object_get(turn, "count")) + 1));
    if (strcmp(type, "response.output_text.delta") == 0)
        join_text(turn, "text", word(event, "delta"));
    if (strcmp(type, "response.reasoning_summary_text.delta") == 0)
        join_text(turn, "thinking", word(event, "delta"));
    if (strcmp(type, "response.reasoning_summary_text.done") == 0)
        assert_string_equal(word(event, "text"), word(turn, "thinking"));
    if (strcmp(type, "response.output_text.done") == 0)
        assert_string_equal(word(event, "text"), word(turn, "text") ? word(turn, "text") : "");
    if (strcmp(type, "response.output_item.added") == 0)
        assert_int_equal(json_integer_value(json_object_get(event, "output_index")), json_array_size(items));
    if (strcmp(type, "response.output_item.done") == 0)
        json_array_append(items, json_object_get(event, "item"));
}

/* Google's parts, texts joined, the first's signature kept. */
static void add_google(json_t *turn, const json_t *event)
{
    const json_t *candidate = json_array_get(json_object_get(event, "candidates"), 0);
    json_t *parts = json_object_get(turn, "parts"), *part;
    size_t at;
    json_array_foreach(json_object_get(json_object_get(candidate, "content"), "parts"), at, part)
    {
        json_t *last = json_array_get(parts, json_array_size(parts) - 1);
        const bool is_same = last && !json_object_get(part, "thought") == !json_object_get(last, "thought");
        if (word(part, "text") && is_same && word(last, "text"))
            join_text(last, "text", word(part, "text"));
        else
            json_array_append_new(parts, json_deep_copy(part));
    }
}

static const struct way {
    const char *dialect;
    const char *begun; /* what events are added to */
    void (*add)(json_t *turn, const json_t *event);
    const char *list;    /* which key of it is meant; NULL: all */
    const char *path[5]; /* of the same in the whole answer */
} ways[] = {{"chat", "{\"role\": \"assistant\"}", add_chat, NULL, {"choices", "", "message"}},
            {"anthropic", "{\"content\": []}", add_anthropic, "content", {"content"}},
            {"responses", "{\"output\": [], \"count\": 0}", add_responses, "output", {"output"}},
            {"google", "{\"parts\": []}", add_google, "parts", {"candidates", "", "content", "parts"}}};
enum { WAY_COUNT = sizeof(ways) / sizeof(*ways) };

static json_t *whole_turn(const struct way *way, const struct reply *reply)
{
    AUTO_BUFFER out = {0};
    dialect_named(way->dialect)->write(reply, &out);
    json_t *answer = parse_json((char *)out.data, out.len), *turn = answer;
    for (size_t i = 0; way->path[i]; i++)
        turn = way->path[i][0] ? json_object_get(turn, way->path[i]) : json_array_get(turn, 0);
    assert_non_null(turn);
    json_incref(turn);
    json_decref(answer);
    return turn;
}

static json_t *streamed_turn(const struct way *way, const struct reply *reply, size_t step)
{
    struct buffer out = {0};
    json_t *turn = parse_json(way->begun, strlen(way->begun));
    stream_reply(dialect_named(way->dialect), reply, step, &out);
    AUTO_FREE char *text = buffer_take_str(&out);
    char *rest;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        if (strncmp(line, "data: {", 7) == 0) {
            json_t *event = parse_json(line + 6, strlen(line + 6));
            way->add(turn, event);
            json_decref(event);
        }
    if (!way->list)
        return turn;
    json_t *list = json_incref(json_object_get(turn, way->list));
    json_decref(turn);
    return list;
}

/* What a whole chat message says that deltas need not. */
static void drop_nothings(json_t *turn)
{
    json_object_del(turn, "refusal");
    if (json_is_object(turn) && (!word(turn, "content") || !word(turn, "content")[0]))
        json_object_del(turn, "content");
}

static void a_stream_adds_up_to_the_whole_answer(void **state)
{
    (void)state;
    for (size_t i = 0; i < WAY_COUNT; i++)
        for (size_t k = 0; k < TURN_COUNT; k++)
            for (size_t step = 0; step < 12; step++) {
                struct told told;
                told_init(&turns[k], &told);
                json_t *whole = whole_turn(&ways[i], &told.reply), *sum = streamed_turn(&ways[i], &told.reply, step);
                drop_nothings(whole);
                drop_nothings(sum);
                AUTO_FREE char *a = json_dumps(whole, JSON_SORT_KEYS), *b = json_dumps(sum, JSON_SORT_KEYS);
                assert_string_equal(a, b);
                json_decref(whole);
                json_decref(sum);
                told_finish(&told);
            }
}

/* ---- what becomes of a turn in a harness ------------------------------------------------------- */

/* 1000.0 becomes 1000, as in all that JavaScript writes. */
static json_t *written_anew(const json_t *value)
{
    json_t *copy;
    const char *key;
    json_t *inner;
    size_t at;
    if (json_is_real(value) && json_real_value(value) == (double)(long)json_real_value(value))
        return json_integer((json_int_t)json_real_value(value));
    if (json_is_array(value)) {
        copy = json_array();
        json_array_foreach(value, at, inner) json_array_append_new(copy, written_anew(inner));
        return copy;
    }
    if (!json_is_object(value))
        return json_deep_copy(value);
    copy = json_object();
    json_object_foreach((json_t *)(uintptr_t)value, key, inner) json_object_set_new(copy, key, written_anew(inner));
    return copy;
}

static json_t *of_mini(json_t *message)
{
    json_object_set_new(message, "provider_specific_fields", json_pack("{s:n}", "refusal"));
    json_object_set_new(message, "function_call", json_null());
    return json_pack("{s:[o]}", "messages", message);
}

static json_t *of_opencode(json_t *message)
{
    size_t at;
    json_t *call;
    json_array_foreach(json_object_get(message, "tool_calls"), at, call)
    {
        json_t *function = json_object_get(call, "function");
        json_t *read = parse_json(word(function, "arguments"), strlen(word(function, "arguments")));
        json_t *anew = written_anew(read);
        AUTO_FREE char *text = json_dumps(anew, JSON_COMPACT);
        json_object_set_new(function, "arguments", json_string(text));
        json_decref(read);
        json_decref(anew);
    }
    json_object_del(message, "refusal");
    return json_pack("{s:[o]}", "messages", message);
}

/* As opencode's; contents are lists, thinking loses the blanks at its end. */
static json_t *of_qwen(json_t *message)
{
    const char *thinking = word(message, "reasoning_content"), *text = word(message, "content");
    if (thinking) {
        size_t len = strlen(thinking);
        while (len > 0 && thinking[len - 1] == ' ')
            len--;
        json_object_set_new(message, "reasoning_content", json_stringn(thinking, len));
    }
    if (text)
        json_object_set_new(message, "content", json_pack("[{s:s, s:s}]", "type", "text", "text", text));
    return of_opencode(message);
}

/* Blocks with numbers written anew, the newest marked for the cache; then the results. */
static json_t *of_claude(json_t *content)
{
    json_t *anew = written_anew(content);
    json_decref(content);
    if (json_array_size(anew) > 0)
        json_object_set_new(json_array_get(anew, json_array_size(anew) - 1), "cache_control",
                            json_pack("{s:s}", "type", "ephemeral"));
    return json_pack("{s:[{s:s, s:o}, {s:s, s:s}]}", "messages", "role", "assistant", "content", anew, "role", "user",
                     "content", "go on");
}

/* Without the status, and with what was null left out. */
static json_t *of_codex(json_t *items)
{
    size_t at;
    json_t *item;
    json_array_foreach(items, at, item) json_object_del(item, "status");
    json_array_append_new(items, json_pack("{s:s, s:s, s:s, s:s}", "type", "function_call_output", "id", "fco_1",
                                           "call_id", "call_1", "output", "done"));
    return json_pack("{s:o}", "input", items);
}

/* Signatures decoded and encoded by the other alphabet, here without their padding. */
static json_t *of_gemini(json_t *parts)
{
    size_t at;
    json_t *part, *anew = written_anew(parts);
    json_decref(parts);
    json_array_foreach(anew, at, part) if (word(part, "thoughtSignature"))
        json_object_set_new(part, "thoughtSignature",
                            json_stringn(word(part, "thoughtSignature"), strcspn(word(part, "thoughtSignature"), "=")));
    return json_pack("{s:[{s:s, s:o}]}", "contents", "role", "model", "parts", anew);
}

static const struct harness {
    const char *name;
    size_t way;
    json_t *(*give_back)(json_t *turn); /* as the next request's body; takes the turn */
    bool trims_thinking, has_handle;
} harnesses[] = {
    {"mini", 0, of_mini, false, false},  {"opencode", 0, of_opencode, false, false},
    {"qwen", 0, of_qwen, true, false},   {"claude", 1, of_claude, false, true},
    {"codex", 2, of_codex, false, true}, {"gemini", 3, of_gemini, false, true},
};

static bool is_equal(const json_t *a, const json_t *b)
{
    json_t *left = written_anew(a), *right = written_anew(b);
    const bool equal = json_equal(left, right);
    json_decref(left);
    json_decref(right);
    return equal;
}

/* Where the dialect has a place for it: Anthropic's is in thinking, Responses' not in calls. */
static bool carries_handle(const struct harness *harness, const struct reply *reply)
{
    if (strcmp(harness->name, "claude") == 0)
        return reply->thinking;
    if (strcmp(harness->name, "codex") == 0)
        return reply->thinking || reply->text[0] || reply->call_count == 0;
    return harness->has_handle;
}

static void assert_same(const struct harness *harness, const struct reply *reply, const struct said *said)
{
    assert_int_equal(said->role, SAID_ASSISTANT);
    assert_string_equal(said->text, reply->text);
    assert_int_equal(said->call_count, reply->call_count);
    for (size_t i = 0; i < reply->call_count; i++) {
        assert_string_equal(said->calls[i].id, reply->calls[i].id);
        assert_string_equal(said->calls[i].name, reply->calls[i].name);
        assert_true(is_equal(said->calls[i].arguments, reply->calls[i].arguments));
    }
    if (!reply->thinking)
        assert_null(said->thinking);
    else if (harness->trims_thinking)
        assert_memory_equal(said->thinking, reply->thinking, strlen(said->thinking));
    else
        assert_string_equal(said->thinking, reply->thinking);
    if (carries_handle(harness, reply))
        assert_string_equal(said->handle, reply->handle);
    else
        assert_null(said->handle);
}

static void a_turn_that_comes_back_is_known_again(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(harnesses) / sizeof(*harnesses); i++)
        for (size_t k = 0; k < TURN_COUNT; k++)
            for (size_t is_stream = 0; is_stream < 2; is_stream++) {
                struct told told;
                struct said_request request = {0};
                struct fail fail = {0};
                const struct way *way = &ways[harnesses[i].way];
                told_init(&turns[k], &told);
                json_t *body = harnesses[i].give_back(is_stream ? streamed_turn(way, &told.reply, 3)
                                                                : whole_turn(way, &told.reply));
                if (dialect_named(way->dialect)->read(body, &request, &fail) < 0)
                    fail_msg("%s, %s: %s", harnesses[i].name, told.name, fail.text);
                assert_same(&harnesses[i], &told.reply, &request.messages[0]);
                said_request_finish(&request);
                json_decref(body);
                told_finish(&told);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stream_adds_up_to_the_whole_answer),
        cmocka_unit_test(a_turn_that_comes_back_is_known_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
