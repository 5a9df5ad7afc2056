/* Streams of engines, folded: whatever pieces they come in, they are the document that they would have been. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/cleanup.h"
#include "common/json/json_doc_look.h"
#include "workers/engines/dialects/fold.h"
#include "workers/engines/dialects/teller.h"

static int take_ids(const struct json_doc *doc, struct sampled_tokens *ret, struct fail *fail)
{
    const struct json_doc_node *choice = json_doc_first(json_doc_get(doc, json_doc_root(doc), "choices"));
    return sampled_tokens_ids(ret, doc, json_doc_get(doc, choice, "ids"), fail);
}

static const struct fold_form form = {.rows = {{FOLD_LAST, "\"usage\":", ",", {"usage"}},
                                               {FOLD_WORDS, "\"choices\":[{"},
                                               {FOLD_FIRST, "\"prompt\":", ",", {"choices", "prompt"}},
                                               {FOLD_TEXT, "\"text\":\"", "\",", {"choices", "text"}},
                                               {FOLD_FINISH, "\"finish\":", "}]}", {"choices", "finish"}}},
                                      .cut = "\"length\"",
                                      .take = take_ids};

static const char stream[] =
    ": hello\n\n"
    "event: x\r\ndata: "
    "{\"choices\":[{\"ids\":[1,2],\"text\":\"l\\u00f6\",\"prompt\":[7, {\"p\":-0.50}]}]}\r\n\r\n"
    "data:{\"choices\":[{\"ids\":[],\"text\":\"\",\"finish\":null,\"prompt\":[8]}],\"usage\":{\"n\":1}}\n\n"
    "data: {\"choices\":[{\"ids\":[3],\"text\":\"k "
    "\\\"\",\"finish\":\"stop\"}]}\n\n"
    "data: {\"choices\":[],\"usage\":{\"n\":3}}\n\ndata: [DONE]\n\n";

static const char document[] =
    "{\"usage\":{\"n\":3},\"choices\":[{\"prompt\":[7, {\"p\":-0.50}],\"text\":\"l\\u00f6k \\\"\","
    "\"finish\":\"stop\"}]}";

struct heard {
    struct buffer text;
    size_t ids, events;
    bool is_ended;
};

static void on_event(void *arg, const struct fold_event *event)
{
    struct heard *heard = arg;
    assert_false(heard->is_ended);
    buffer_append(&heard->text, event->text.data, event->text.len);
    heard->ids += event->ids.count;
    heard->events++;
    heard->is_ended = event->is_end;
}

static void assert_folded(size_t cut, size_t step)
{
    struct fold fold = {.form = &form, .sampled.most = 3};
    struct heard heard = {0};
    struct fail fail = {0};
    AUTO_BUFFER out = {0};
    for (size_t at = 0, end; at < sizeof(stream) - 1; at = end) {
        end = step ? at + step : at < cut ? cut : sizeof(stream) - 1;
        end = end < sizeof(stream) - 1 ? end : sizeof(stream) - 1;
        assert_int_equal(fold_take(&fold, slice_of(stream + at, end - at), on_event, &heard, &fail), 0);
    }
    fold_write(&fold, &out);
    if (!slice_is(buffer_peek(&out), document))
        fail_msg("cut at %zu: %.*s", cut, SLICE_ARG(buffer_peek(&out)));
    assert_true(slice_is(buffer_peek(&heard.text), "l\xc3\xb6k \""));
    assert_true(heard.is_ended && heard.ids == 3 && heard.events == 2 && fold.is_finished);
    assert_true(fold.events == 2 && fold.sampled.ids.count == 3 && fold.sampled.ids.ids[2] == 3);
    buffer_finish(&heard.text);
    fold_finish(&fold);
}

static void a_stream_is_the_document_that_it_would_have_been_wherever_it_is_cut(void **state)
{
    (void)state;
    for (size_t cut = 0; cut < sizeof(stream); cut++)
        assert_folded(cut, 0);
    assert_folded(0, 1);
}

static int fold_one(const char *text, struct buffer *out, struct fail *fail)
{
    struct fold fold = {.form = &form, .sampled.most = 3};
    struct heard heard = {0};
    const int error = fold_take(&fold, slice_from_str(text), on_event, &heard, fail);
    fold_write(&fold, out);
    buffer_finish(&heard.text);
    fold_finish(&fold);
    return error;
}

static void what_broke_off_is_as_if_it_had_been_cut_by_its_length(void **state)
{
    (void)state;
    AUTO_BUFFER out = {0};
    assert_int_equal(fold_one("data: {\"choices\":[{\"ids\":[1],\"text\":\"a\"}]}\n\ndata: {\"cho", &out, NULL), 0);
    assert_true(slice_is(buffer_peek(&out), "{\"choices\":[{\"text\":\"a\",\"finish\":\"length\"}]}"));
}

static void a_server_that_does_not_stream_is_read_as_it_is(void **state)
{
    (void)state;
    AUTO_BUFFER out = {0};
    assert_int_equal(fold_one("{\"choices\": [\n1]}", &out, NULL), 0);
    assert_true(slice_is(buffer_peek(&out), "{\"choices\": [\n1]}"));
}

static void what_is_no_such_stream_is_refused_by_name(void **state)
{
    (void)state;
    static const struct {
        const char *text, *words;
        int code;
    } rows[] = {
        {"data: {\"choices\"\n\n", "the JSON is broken", -EPROTO},
        {"data: {\"choices\":[{\"ids\":[-1]}]}\n\n", "token 0 of the engine's answer is not an id", -EPROTO},
        {"data: {\"choices\":[{\"ids\":[1,2]}]}\n\ndata: {\"choices\":[{\"ids\":[3,4]}]}\n\n",
         "sampled 4 tokens where at most 3 were asked for", -EPROTO},
        {"data: {\"choices\":[{\"text\":7}]}\n\n", "no string", -EPROTO},
        {"data: {\"error\":{\"message\":\"it broke\",\"code\":500}}\n\n", "the engine failed (500): it broke", -EIO},
        {"data: {\"error\":{\"message\":\"slow down\",\"code\":429}}\n\n", "overloaded (429): slow down", -EAGAIN},
        {"data: {\"error\":\"what\"}\n\n", "the engine failed (500)", -EIO},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        AUTO_BUFFER out = {0};
        struct fail fail = {0};
        const int code = fold_one(rows[i].text, &out, &fail);
        if (code != rows[i].code || !strstr(fail.text, rows[i].words))
            fail_msg("%s: %d, %s", rows[i].text, code, fail.text);
    }
}

/* ---- what is told of bytes ------------------------------------------------------------------------- */

static void on_text(void *arg, struct slice text) { buffer_append(arg, text.data, text.len); }

static void assert_teller(const char *bytes, size_t len, const char *told, bool is_held)
{
    for (size_t cut = 0; cut <= len; cut++) {
        AUTO_BUFFER got = {0};
        const struct engine_listener listener = {.heard = on_text, .arg = &got};
        struct teller teller = {.listener = &listener};
        teller_take(&teller, slice_of(bytes, cut));
        teller_tell(&teller);
        teller_take(&teller, slice_of(bytes + cut, len - cut));
        teller_tell(&teller);
        if (!slice_is(buffer_peek(&got), told) || !slice_is(buffer_peek(&teller.told), told) ||
            teller.is_held != is_held)
            fail_msg("of %s, cut at %zu, was told '%.*s'", bytes, cut, SLICE_ARG(buffer_peek(&got)));
        teller_finish(&teller);
    }
}

static void whole_characters_are_told_and_nothing_behind_what_is_none(void **state)
{
    (void)state;
    assert_teller("abc", 3, "abc", false);
    assert_teller("l\xc3\xb6k \xf0\x9f\x8c\x8d", 9, "l\xc3\xb6k \xf0\x9f\x8c\x8d", false);
    assert_teller("a\xe0\xa4\x85\xed\x9f\xbf\xf4\x8f\xbf\xbf", 11, "a\xe0\xa4\x85\xed\x9f\xbf\xf4\x8f\xbf\xbf", false);
    assert_teller("a\xf0\x9f\x8c", 4, "a", false);
    assert_teller("a\xff"
                  "b",
                  3, "a", true);
    assert_teller("a\xc3"
                  "b",
                  3, "a", true);
    assert_teller("a\xed\xa0\x80", 4, "a", true);
    assert_teller("a\xe0\x80\x80", 4, "a", true);
    assert_teller("a\xef\xbf\xbd"
                  "b",
                  5, "a", true);
    assert_teller("a\0b", 3, "a", true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stream_is_the_document_that_it_would_have_been_wherever_it_is_cut),
        cmocka_unit_test(what_broke_off_is_as_if_it_had_been_cut_by_its_length),
        cmocka_unit_test(a_server_that_does_not_stream_is_read_as_it_is),
        cmocka_unit_test(what_is_no_such_stream_is_refused_by_name),
        cmocka_unit_test(whole_characters_are_told_and_nothing_behind_what_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
