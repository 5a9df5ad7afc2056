/* Real answers of llama.cpp's server (fixtures/llama), and what may be made of them. */
#include "tests/workers/engines/llama_reply_world.h"

static void assert_same_as_recorded(const char *name, const struct generation *generation)
{
    AUTO_JSON json_t *line = fixture(name);
    const json_t *answer = json_object_get(line, "answer");
    const json_t *entries = json_object_get(answer, "completion_probabilities");
    assert_int_equal(generation->sampled.count, json_array_size(json_object_get(answer, "tokens")));
    assert_int_equal(generation->sampled.count, json_array_size(entries));
    for (size_t i = 0; i < generation->sampled.count; i++) {
        const json_t *entry = json_array_get(entries, i);
        assert_int_equal(generation->sampled.ids[i], json_integer_value(json_object_get(entry, "id")));
        assert_true(generation->logprobs[i] == (float)json_number_value(json_object_get(entry, "logprob")));
    }
}

static void an_answer_that_ended_its_turn_is_read_with_its_end_token(void **state)
{
    (void)state;
    struct generation generation = {0};
    struct asked asked = {0};
    struct fail fail = {0};
    assert_int_equal(read_fixture("completion_stop", &asked, &generation, &fail), 0);
    assert_same_as_recorded("completion_stop", &generation);
    assert_string_equal(generation.finish, "stop");
    assert_int_equal(generation.sampled.ids[generation.sampled.count - 1], 2);
    assert_int_equal(generation.prompt_tokens, 13);
    assert_int_equal(generation.cached_tokens, 12);
    assert_null(strstr(generation.text, "im_end"));
    assert_int_equal(asked.count, 0);
    generation_finish(&generation);
}

static void times_are_what_the_engine_says_and_unknown_where_it_says_none(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        struct record_seconds prefill, decode;
    } rows[] = {
        {"{'timings/prompt_ms': 1500, 'timings/predicted_ms': 0}", {true, 1.5}, {true, 0}},
        {"{'timings': {'prompt_ms': 250.0, 'predicted_ms': 125.0}}", {true, 0.25}, {true, 0.125}},
        {"{'timings/prompt_ms': -1, 'timings/predicted_ms': 'soon'}", {false, 0}, {false, 0}},
        {"{}", {false, 0}, {false, 0}},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct generation generation = {0};
        struct asked asked = {0};
        struct fail fail = {0};
        AUTO_JSON json_t *line = fixture("completion_stop");
        json_t *answer = json_object_get(line, "answer");
        json_object_del(answer, "timings");
        json_object_del(answer, "timings/prompt_ms");
        json_object_del(answer, "timings/predicted_ms");
        AUTO_FREE char *text = strdup(rows[i].json);
        for (char *at = text; *at; at++)
            *at = *at == '\'' ? '"' : *at;
        AUTO_JSON json_t *times = json_loads(text, 0, NULL);
        assert_int_equal(json_object_update(answer, times), 0);
        assert_int_equal(read_reply(line, answer, &asked, &generation, &fail), 0);
        assert_false(generation.queue_seconds.is_known);
        assert_int_equal(generation.prefill_seconds.is_known, rows[i].prefill.is_known);
        assert_int_equal(generation.decode_seconds.is_known, rows[i].decode.is_known);
        assert_true(generation.prefill_seconds.value == rows[i].prefill.value);
        assert_true(generation.decode_seconds.value == rows[i].decode.value);
        generation_finish(&generation);
    }
}

static void an_answer_that_was_cut_is_read_without_one(void **state)
{
    (void)state;
    static const char *const names[] = {"completion_length", "completion_all_fields", "completion_temperature_2"};
    for (size_t i = 0; i < 3; i++) {
        struct generation generation = {0};
        struct asked asked = {0};
        struct fail fail = {0};
        assert_int_equal(read_fixture(names[i], &asked, &generation, &fail), 0);
        assert_same_as_recorded(names[i], &generation);
        assert_string_equal(generation.finish, "length");
        generation_finish(&generation);
    }
}

static void logprobs_do_not_depend_on_the_temperature(void **state)
{
    (void)state;
    AUTO_JSON json_t *line = fixture("completion_temperature_2");
    const json_t *entry = json_array_get(json_object_get(json_object_get(line, "answer"), "completion_probabilities"),
                                         0);
    AUTO_JSON json_t *cold = fixture("completion_length");
    const json_t *other = json_array_get(json_object_get(json_object_get(cold, "answer"), "completion_probabilities"),
                                         0);
    /* the same most likely token with the same log-probability, at temperatures 2 and 1 */
    const json_t *top = json_array_get(json_object_get(entry, "top_logprobs"), 0);
    const json_t *other_top = json_array_get(json_object_get(other, "top_logprobs"), 0);
    assert_int_equal(json_integer_value(json_object_get(top, "id")),
                     json_integer_value(json_object_get(other_top, "id")));
    assert_true(fabs(json_number_value(json_object_get(top, "logprob")) -
                     json_number_value(json_object_get(other_top, "logprob"))) < 1e-3);
}

static void tokens_inside_a_character_are_asked_for_and_the_rest_stay_in_step(void **state)
{
    (void)state;
    struct generation generation = {0};
    struct asked asked = {0};
    struct fail fail = {0};
    /* lead middle last lead middle last lead middle: the server reports only the two `last` */
    assert_int_equal(read_fixture("completion_emoji", &asked, &generation, &fail), 0);
    static const size_t missing[] = {0, 1, 3, 4, 6, 7};
    assert_int_equal(asked.count, 6);
    assert_memory_equal(asked.at, missing, sizeof(missing));
    AUTO_JSON json_t *line = fixture("completion_emoji");
    const json_t *entries = json_object_get(json_object_get(line, "answer"), "completion_probabilities");
    assert_true(generation.logprobs[2] ==
                (float)json_number_value(json_object_get(json_array_get(entries, 0), "logprob")));
    assert_true(generation.logprobs[5] ==
                (float)json_number_value(json_object_get(json_array_get(entries, 1), "logprob")));
    assert_true(generation.logprobs[6] == lead.logprob && generation.logprobs[7] == middle.logprob);
    generation_finish(&generation);
}

/* id 242 is a middle byte first (no entry) and then a whole byte token (with one). */
static void an_entry_is_not_given_to_the_same_token_inside_a_character(void **state)
{
    (void)state;
    AUTO_JSON json_t *answer = json_pack("{s:s,s:[i,i,i,i,i],s:s,s:i,s:[{s:i,s:f,s:[i,i,i,i]},{s:i,s:f,s:[i]}]}",
                                         "content", "\xf0\x9f\x98\x80\xef\xbf\xbd", "tokens", 10813, 242, 218, 242, 2,
                                         "stop_type", "eos", "tokens_evaluated", 0, "completion_probabilities", "id",
                                         218, "logprob", -1.0, "bytes", 0xf0, 0x9f, 0x98, 0x80, "id", 242, "logprob",
                                         -3.0, "bytes", 0x98);
    /* f0 9f | 98 | 80 is cut after `lead middle last`? f0 needs four: it has them at `last`. */
    json_array_append_new(json_object_get(answer, "completion_probabilities"),
                          json_pack("{s:i,s:f,s:[]}", "id", 2, "logprob", -0.25, "bytes"));
    struct generation generation = {0};
    struct asked asked = {0};
    struct fail fail = {0};
    struct llama_scorer scorer = {&asked, answer_emoji};
    assert_int_equal(read_json(answer, 0, 10, &scorer, &generation, &fail), 0);
    assert_int_equal(asked.count, 2);
    assert_true(generation.logprobs[1] == middle.logprob && generation.logprobs[3] == -3.0f);
    assert_true(generation.logprobs[4] == -0.25f);
    generation_finish(&generation);
}

/* A crown is f0 9f | 91 | 91: its one entry, with all its bytes, is of the second of two equal tokens. */
static void an_entry_is_of_the_last_of_equal_tokens_inside_a_character(void **state)
{
    (void)state;
    AUTO_JSON json_t *answer = json_pack(
        "{s:s,s:[i,i,i,i,i,i],s:s,s:i,s:[{s:i,s:f,s:[i,i,i,i]},{s:i,s:f,s:[i]},{s:i,s:f,s:[i]},{s:"
        "i,s:f,s:[]}]}",
        "content", "\xf0\x9f\x98\x98\xef\xbf\xbd\xef\xbf\xbd", "tokens", 10813, 242, 242, 242, 242, 2, "stop_type",
        "eos", "tokens_evaluated", 0, "completion_probabilities", "id", 242, "logprob", -3.0, "bytes", 0xf0, 0x9f, 0x98,
        0x98, "id", 242, "logprob", -4.0, "bytes", 0x98, "id", 242, "logprob", -5.0, "bytes", 0x98, "id", 2, "logprob",
        -0.25, "bytes");
    struct generation generation = {0};
    struct asked asked = {0};
    struct fail fail = {0};
    struct llama_scorer scorer = {&asked, answer_emoji};
    assert_int_equal(read_json(answer, 0, 10, &scorer, &generation, &fail), 0);
    static const size_t missing[] = {0, 1};
    assert_int_equal(asked.count, 2);
    assert_memory_equal(asked.at, missing, sizeof(missing));
    static const float expected[] = {-2.5f, -1.5f, -3.0f, -4.0f, -5.0f, -0.25f};
    assert_memory_equal(generation.logprobs, expected, sizeof(expected));
    generation_finish(&generation);
}

/* Lone bytes are whole characters to the server: one that might be inside one is asked for, and is not. */
static void a_whole_token_that_might_be_inside_a_character_keeps_its_entry(void **state)
{
    (void)state;
    AUTO_JSON json_t *answer = json_pack("{s:s,s:[i,i,i],s:s,s:i,s:[{s:i,s:f,s:[i]},{s:i,s:f,s:[i]}]}", "content",
                                         "\xef\xbf\xbd", "tokens", 242, 242, 10813, "stop_type", "limit",
                                         "tokens_evaluated", 0, "completion_probabilities", "id", 242, "logprob", -3.0,
                                         "bytes", 0x98, "id", 242, "logprob", -4.0, "bytes", 0x98);
    struct generation generation = {0};
    struct asked asked = {0};
    struct fail fail = {0};
    struct llama_scorer scorer = {&asked, answer_emoji};
    assert_int_equal(read_json(answer, 0, 10, &scorer, &generation, &fail), 0);
    static const float expected[] = {-3.0f, -4.0f, -2.5f};
    assert_memory_equal(generation.logprobs, expected, sizeof(expected));
    generation_finish(&generation);
}

static void an_answer_without_any_entry_is_asked_for_whole(void **state)
{
    (void)state;
    struct generation generation = {0};
    struct asked asked = {0};
    struct fail fail = {0};
    assert_int_equal(read_fixture("completion_lead_only", &asked, &generation, &fail), 0);
    assert_int_equal(asked.count, 1);
    assert_true(generation.logprobs[0] == lead.logprob);
    generation_finish(&generation);
}

static void a_missing_entry_for_a_whole_character_is_the_servers_fault(void **state)
{
    (void)state;
    AUTO_JSON json_t *line = fixture("completion_length");
    AUTO_JSON json_t *answer = json_deep_copy(json_object_get(line, "answer"));
    json_object_del(answer, "completion_probabilities");
    struct generation generation = {0};
    struct asked asked = {0};
    struct fail fail = {0};
    assert_int_equal(read_reply(line, answer, &asked, &generation, &fail), -EPROTO);
    assert_int_equal(asked.count, 1); /* and not once for every token */
    assert_non_null(strstr(fail.text, "no log-probability for token"));
    generation_finish(&generation);
}

static void a_question_that_fails_fails_the_answer(void **state)
{
    (void)state;
    AUTO_JSON json_t *line = fixture("completion_lead_only");
    struct generation generation = {0};
    struct llama_scorer scorer = {NULL, fail_to_answer};
    struct fail fail = {0};
    assert_int_equal(read_json(json_object_get(line, "answer"), 16, 1, &scorer, &generation, &fail), -EIO);
    generation_finish(&generation);
}

static void a_forced_token_and_one_among_the_most_likely_are_found_with_their_bytes(void **state)
{
    (void)state;
    struct llama_score score;
    AUTO_JSON json_t *forced = fixture("score_forced"), *top = fixture("score_top");
    assert_int_equal(find_json(json_object_get(forced, "answer"), 242, &score), 0);
    assert_int_equal(score.byte_count, 1);
    assert_int_equal(score.bytes[0], 0x98);
    assert_int_equal(find_json(json_object_get(top, "answer"), 10813, &score), 0);
    assert_true(fabsf(score.logprob - (-3.0860f)) < 1e-3f);
    assert_int_equal(score.bytes[0], 0xf0);
    assert_int_equal(find_json(json_object_get(top, "answer"), 49000, &score), -ENOENT);
}

static void probabilities_after_the_samplers_are_not_taken_for_logprobs(void **state)
{
    (void)state;
    struct generation generation = {0};
    struct asked asked = {0};
    struct fail fail = {0};
    assert_int_equal(read_fixture("post_sampling", &asked, &generation, &fail), -EPROTO);
    generation_finish(&generation);
}

static json_t *odd_value(size_t which)
{
    switch (which) {
    case 0: return json_null();
    case 1: return json_integer(-1);
    case 2: return json_integer(INT64_MAX);
    case 3: return json_real(1e300);
    case 4: return json_string("\xf0\x9f\x98\x80");
    case 5: return json_array();
    case 6: return json_object();
    default: return json_true();
    }
}

enum { ODD_VALUES = 8 };

/* Reads an answer in which one value was replaced; only two results are known. */
static void read_odd(const json_t *line, const json_t *answer)
{
    struct generation generation = {0};
    struct asked asked = {0};
    struct fail fail = {0};
    int code = read_reply(line, answer, &asked, &generation, &fail);
    assert_true(code == 0 || (code == -EPROTO && fail.text[0]));
    for (size_t i = 0; code == 0 && i < generation.sampled.count; i++)
        assert_true(generation.logprobs[i] <= 0 && isfinite(generation.logprobs[i]));
    generation_finish(&generation);
}

static void replace_each_member(const json_t *line, json_t *answer, json_t *object)
{
    static const char *const keys[] = {"content",
                                       "tokens",
                                       "stop_type",
                                       "tokens_evaluated",
                                       "timings/cache_n",
                                       "timings/prompt_ms",
                                       "timings/predicted_ms",
                                       "completion_probabilities",
                                       "id",
                                       "logprob",
                                       "bytes"};
    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
        json_t *old = json_incref(json_object_get(object, keys[i]));
        for (size_t which = 0; old && which < ODD_VALUES; which++) {
            json_object_set_new(object, keys[i], odd_value(which));
            read_odd(line, answer);
        }
        if (old)
            json_object_set_new(object, keys[i], old);
    }
}

static void no_value_of_an_answer_can_be_odd_enough_to_crash_or_to_pass_for_a_logprob(void **state)
{
    (void)state;
    static const char *const names[] = {"completion_length", "completion_emoji", "completion_lead_only"};
    for (size_t i = 0; i < 3; i++) {
        AUTO_JSON json_t *line = fixture(names[i]);
        json_t *answer = json_object_get(line, "answer"), *entry;
        size_t at;
        replace_each_member(line, answer, answer);
        json_array_foreach(json_object_get(answer, "completion_probabilities"), at, entry)
            replace_each_member(line, answer, entry);
        for (size_t which = 0; which < ODD_VALUES; which++) {
            AUTO_JSON json_t *odd = odd_value(which);
            read_odd(line, odd);
        }
    }
}

static void what_a_template_raises_is_no_failure_of_the_server(void **state)
{
    (void)state;
    static const struct {
        const char *message;
        int code;
        const char *words; /* the last ones */
    } cases[] = {
        {"\n------------\nWhile executing CallExpression at line 19, column 27 in source:\n...\nError: Jinja "
         "Exception: "
         "Conversation roles must alternate",
         -EINVAL, "the engine refuses the request (500): Conversation roles must alternate"},
        {"Only user roles at row 4, column 28:\n{{ raise_exception(\"Only user roles\") }}", -EINVAL, "}}"},
        {"it broke", -EIO, "it broke"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        AUTO_JSON json_t *body = json_pack("{s:{s:i, s:s, s:s}}", "error", "code", 500, "message", cases[i].message,
                                           "type", "server_error");
        struct fail fail = {0};
        assert_int_equal(call_refusal(500, body, &fail), cases[i].code);
        const size_t len = strlen(fail.text), most = strlen(cases[i].words);
        assert_true(len >= most);
        assert_string_equal(fail.text + len - most, cases[i].words);
        fail_wrap(&fail, "http://[::1]:8080/apply-template (a): b");
        if (cases[i].code == -EINVAL)
            assert_string_equal(call_refused_words(&fail), strstr(fail.text, "(500): ") + strlen("(500): "));
        else
            assert_ptr_equal(call_refused_words(&fail), fail.text);
    }
}

static void recorded_refusals_get_the_promised_codes(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int code;
        const char *words;
    } cases[] = {
        {"error_too_long", -E2BIG, "exceeds the available context size"},
        {"error_invalid_tokens", -EINVAL, "invalid tokens"},
        {"error_empty_prompt", -EINVAL, "must not be empty"},
        {"error_template", -EINVAL, "no such role"},
        {"error_loading", -EAGAIN, "Loading model"},
        {"error_not_found", -EPROTO, "File Not Found"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        AUTO_JSON json_t *line = fixture(cases[i].name);
        struct fail fail = {0};
        long status = (long)json_integer_value(json_object_get(line, "status"));
        call_refusal(status, json_object_get(line, "answer"), &fail);
        assert_int_equal(fail.code, cases[i].code);
        assert_true(strstr(fail.text, cases[i].words) || strlen(fail.text) > 300);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_that_ended_its_turn_is_read_with_its_end_token),
        cmocka_unit_test(times_are_what_the_engine_says_and_unknown_where_it_says_none),
        cmocka_unit_test(an_answer_that_was_cut_is_read_without_one),
        cmocka_unit_test(logprobs_do_not_depend_on_the_temperature),
        cmocka_unit_test(tokens_inside_a_character_are_asked_for_and_the_rest_stay_in_step),
        cmocka_unit_test(an_entry_is_not_given_to_the_same_token_inside_a_character),
        cmocka_unit_test(an_entry_is_of_the_last_of_equal_tokens_inside_a_character),
        cmocka_unit_test(a_whole_token_that_might_be_inside_a_character_keeps_its_entry),
        cmocka_unit_test(an_answer_without_any_entry_is_asked_for_whole),
        cmocka_unit_test(a_missing_entry_for_a_whole_character_is_the_servers_fault),
        cmocka_unit_test(a_question_that_fails_fails_the_answer),
        cmocka_unit_test(a_forced_token_and_one_among_the_most_likely_are_found_with_their_bytes),
        cmocka_unit_test(probabilities_after_the_samplers_are_not_taken_for_logprobs),
        cmocka_unit_test(no_value_of_an_answer_can_be_odd_enough_to_crash_or_to_pass_for_a_logprob),
        cmocka_unit_test(recorded_refusals_get_the_promised_codes),
        cmocka_unit_test(what_a_template_raises_is_no_failure_of_the_server),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
