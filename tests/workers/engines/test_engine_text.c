/* What is said by ids and what an answer says of it: the same text, or none. */
#include "tests/workers/engines/llama_reply_world.h"

/* Real answers whose text, or whose tokens' bytes, were exchanged: nobody may act on either. */
static void a_text_that_is_not_the_tokens_bytes_is_refused(void **state)
{
    (void)state;
    static const char *const names[] = {"completion_stop", "completion_emoji", "completion_length",
                                        "completion_lead_only"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        for (int how = 0; how < 3; how++) {
            AUTO_JSON json_t *line = fixture(names[i]);
            json_t *answer = json_object_get(line, "answer");
            json_t *entries = json_object_get(answer, "completion_probabilities");
            json_t *bytes = json_object_get(json_array_get(entries, 0), "bytes");
            AUTO_BUFFER text = {0};
            buffer_append_str(&text, how == 0 ? "echo EVIL > evil" : "");
            buffer_append_str(&text, how ? json_string_value(json_object_get(answer, "content")) : "");
            buffer_append_str(&text, how == 1 ? " > evil" : "");
            AUTO_FREE char *content = buffer_take_str(&text);
            json_object_set_new(answer, "content", json_string(content));
            if (how == 2 && json_array_append_new(bytes, json_integer('x')) < 0)
                continue; /* this one has no entry */
            struct generation generation = {0};
            struct asked asked = {0};
            struct fail fail = {0};
            assert_int_equal(read_reply(line, answer, &asked, &generation, &fail), -EPROTO);
            assert_non_null(strstr(fail.text, "text is not what its ids say"));
            generation_finish(&generation);
        }
}

/* As a server started with --special writes it. */
static void an_end_token_that_is_shown_is_no_part_of_the_text(void **state)
{
    (void)state;
    for (int shown = 0; shown < 2; shown++) {
        AUTO_JSON json_t *answer = json_pack("{s:s,s:[i,i],s:s,s:i,s:[{s:i,s:f,s:[i,i]},{s:i,s:f,s:[i,i,i]}]}",
                                             "content", shown ? "hi</s>" : "hi", "tokens", 9, 2, "stop_type", "eos",
                                             "tokens_evaluated", 0, "completion_probabilities", "id", 9, "logprob",
                                             -1.0, "bytes", 'h', 'i', "id", 2, "logprob", -3.0, "bytes", '<', '/', 's');
        const json_t *entries = json_object_get(answer, "completion_probabilities");
        json_array_append_new(json_object_get(json_array_get(entries, 1), "bytes"), json_integer('>'));
        struct generation generation = {0};
        struct fail fail = {0};
        struct llama_scorer scorer = {NULL, fail_to_answer};
        assert_int_equal(read_json(answer, 0, 10, &scorer, &generation, &fail), 0);
        assert_string_equal(generation.text, "hi");
        generation_finish(&generation);
    }
}

#define LOST "\xef\xbf\xbd"

static void texts_are_compared_but_for_how_they_were_repaired(void **state)
{
    (void)state;
    static const struct {
        const char *text, *ids_say;
        enum reply_blanks blanks;
        bool same;
    } rows[] = {
        {"", "", BLANKS_COUNT, true},
        {"a", "a", BLANKS_COUNT, true},
        {"a", "", BLANKS_COUNT, false},
        {"", "a", BLANKS_COUNT, false},
        {"ab", "a", BLANKS_COUNT, false},
        {"a b", "ab", BLANKS_COUNT, false},
        {"a b", "ab ", BLANKS_IGNORED, true},
        {"a b", "ac", BLANKS_IGNORED, false},
        {LOST, LOST LOST, BLANKS_COUNT, true},
        {"a" LOST "b", "a" LOST LOST "b", BLANKS_COUNT, true},
        {"a", "a" LOST, BLANKS_COUNT, true},
        {"a" LOST "b", "ab", BLANKS_COUNT, false},
        {LOST "a", "a", BLANKS_COUNT, false},
        {LOST "a", LOST "b", BLANKS_COUNT, false},
        {"\xef\xbd\x9c", "\xef\xbd\x9c", BLANKS_COUNT, true},
        {"\xef\xbd\x9c", "\xef\xbd\x9d", BLANKS_COUNT, false},
        {"\xef\xbd\x9c", LOST, BLANKS_COUNT, false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        if (reply_says(slice_from_str(rows[i].text), slice_from_str(rows[i].ids_say), rows[i].blanks) != rows[i].same)
            fail_msg("row %zu", i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_text_that_is_not_the_tokens_bytes_is_refused),
        cmocka_unit_test(an_end_token_that_is_shown_is_no_part_of_the_text),
        cmocka_unit_test(texts_are_compared_but_for_how_they_were_repaired),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
