/* What harnesses are told, in each dialect, byte by byte: replies.txt; and which paths are whose. */
#include "tests/workers/agents/proxy/dialect_replies.h"

/* ---- turns ------------------------------------------------------------------------------------- */

static void put_turn(const char *name, const struct told *turn, bool is_stream, struct buffer *out)
{
    struct told told;
    told_init(turn, &told);
    buffer_printf(out, "== %s, %s, %s\n", name, turn->name, is_stream ? "streamed" : "whole");
    if (is_stream)
        stream_reply(dialect_named(name), &told.reply, 4, out);
    else
        dialect_named(name)->write(&told.reply, out);
    buffer_append_str(out, is_stream ? "\n" : "\n\n");
    told_finish(&told);
}

static void put_error_of(const char *name, enum reply_error error, struct buffer *out)
{
    struct reply_stream stream = {.sequence = 2};
    buffer_printf(out, "== %s, error of status %d\n", name, reply_error_status(error));
    dialect_named(name)->write_error(error, "it is \"so\"", out);
    buffer_append_str(out, "\n");
    if (error == REPLY_TOO_LONG)
        dialect_named(name)->stream_error(&stream, error, "it is \"so\"", out);
    buffer_append_str(out, "\n");
}

static char *all_replies(void)
{
    struct buffer out = {0};
    for (size_t i = 0; i < DIALECT_NAMES; i++) {
        for (size_t k = 0; k < TURN_COUNT; k++) {
            put_turn(dialect_names[i], &turns[k], false, &out);
            if (k == 0 || k + 1 == TURN_COUNT)
                put_turn(dialect_names[i], &turns[k], true, &out);
        }
        for (int error = REPLY_INVALID; error <= REPLY_BROKEN; error++)
            put_error_of(dialect_names[i], (enum reply_error)error, &out);
        buffer_printf(&out, "== %s, a count\n", dialect_names[i]);
        dialect_named(dialect_names[i])->write_count(12, &out);
        buffer_append_str(&out, "\n\n");
    }
    buffer_append_str(&out, "== models\n");
    dialect_write_models("M \"1\"", 4096, 1700000000, &out);
    buffer_append_str(&out, "\n");
    return buffer_take_str(&out);
}

/* DIALECT_REPLIES names a file that is written anew. */
static void replies_are_told_as_the_table_has_them(void **state)
{
    (void)state;
    AUTO_FREE char *got = all_replies();
    const char *anew = getenv("DIALECT_REPLIES");
    if (anew) {
        AUTO_FCLOSE FILE *file = fopen(anew, "w");
        assert_true(file && fputs(got, file) >= 0);
    }
    AUTO_FREE char *expected = read_table("replies.txt");
    size_t same = 0, line = 1;
    while (got[same] && got[same] == expected[same])
        line += got[same++] == '\n';
    if (got[same] || expected[same])
        fail_msg("line %zu of replies.txt: got %.200s, expected %.200s", line, got + same, expected + same);
}

/* Bytes that are no UTF-8, and what is missing. */
static void odd_replies_are_told(void **state)
{
    (void)state;
    const struct reply_call call = {.id = "\xff", .name = "a\xfe", .arguments = NULL};
    const struct reply odd = {
        .id = "i", .model = "\xff", .text = "\xff", .thinking = "\xff", .calls = &call, .call_count = 1};
    const struct reply bare = {.text = NULL};
    for (size_t i = 0; i < DIALECT_NAMES; i++) {
        AUTO_BUFFER out = {0};
        struct reply_stream stream = {0};
        dialect_named(dialect_names[i])->write(&odd, &out);
        json_decref(parse_json((char *)out.data, out.len));
        dialect_named(dialect_names[i])->stream_begin(&stream, &odd, &out);
        dialect_named(dialect_names[i])->stream_text(&stream, &odd, slice_of("\xff", 1), &out);
        dialect_named(dialect_names[i])->stream_end(&stream, &odd, false, &out);
        buffer_clear(&out);
        dialect_named(dialect_names[i])->write(&bare, &out);
        assert_false(out.failed);
        json_decref(parse_json((char *)out.data, out.len));
    }
}

/* ---- paths ------------------------------------------------------------------------------------- */

static void assert_path(const char *method, const char *path, const char *expected)
{
    enum dialect_ask ask;
    bool is_stream;
    struct slice model;
    char got[256] = "nobody";
    const struct dialect *dialect = dialect_find(method, path, &ask, &is_stream, &model);
    if (dialect)
        snprintf(got, sizeof(got), "%s %s%s%s%.*s", dialect->name,
                 ask == ASK_TURN     ? "turn"
                 : ask == ASK_MODELS ? "models"
                                     : "count",
                 is_stream ? " stream" : "", model.data ? " of " : "", SLICE_ARG(model));
    assert_string_equal(got, expected);
}

static void paths_are_of_one_dialect_or_of_none(void **state)
{
    (void)state;
    assert_path("POST", "/v1/chat/completions", "chat turn");
    assert_path("POST", "/v1/responses", "responses turn");
    assert_path("POST", "/v1/responses/input_tokens", "responses count");
    assert_path("POST", "/v1/messages", "anthropic turn");
    assert_path("POST", "/v1/messages/count_tokens", "anthropic count");
    assert_path("POST", "/v1beta/models/M:generateContent", "google turn of M");
    assert_path("POST", "/v1beta/models/a/b:c:streamGenerateContent", "google turn stream of a/b:c");
    assert_path("POST", "/v1/models/M:countTokens", "google count of M");
    assert_path("GET", "/v1/models", "chat models");
    assert_path("GET", "/v1beta/models", "google models");
    assert_path("GET", "/v1/chat/completions", "nobody");
    assert_path("POST", "/v1/chat/completions/", "nobody");
    assert_path("POST", "/v1/models", "nobody");
    assert_path("POST", "/v1beta/models/:generateContent", "nobody");
    assert_path("POST", "/v1beta/modelsM:generateContent", "nobody");
    assert_path("POST", "/v1beta/models/M:embedContent", "nobody");
    assert_path("GET", "/v1beta/models/M:generateContent", "nobody");
    assert_path("POST", "", "nobody");
    assert_null(dialect_named("gopher"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replies_are_told_as_the_table_has_them),
        cmocka_unit_test(odd_replies_are_told),
        cmocka_unit_test(paths_are_of_one_dialect_or_of_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
