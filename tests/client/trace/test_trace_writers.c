/* What is written of spans: JSON that parses, whatever is in names; no contents of messages. */
#include "tests/client/trace/trace_world.h"

#include <jansson.h>

#include "client/trace/otlp.h"
#include "client/trace/perfetto.h"
#include "common/base/cleanup.h"

static const struct sluice_turn turns[] = {TOLD("prompt", 0), SAID(1), TOLD("tool", 0.5), SAID(1)};
static const struct sluice_message messages[] = {USER, REPLY, TOOL("bash: rm secret"), REPLY};

static json_t *parse(struct buffer *text)
{
    json_error_t error;
    json_t *value = json_loadb((const char *)text->data, text->len, 0, &error);
    if (!value)
        fail_msg("%s in %.*s", error.text, (int)text->len, text->data);
    return value;
}

static const char *text_at(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

/* Adds `count` rollouts of one group, each ended a second after the one before. */
static json_t *written(size_t count)
{
    const struct sluice_trace trace = trace_of(turns, COUNT(turns));
    struct sluice_trajectory t = trajectory_of(&trace, 1, messages, COUNT(messages));
    struct perfetto perfetto;
    AUTO_BUFFER text = {0};
    assert_true(perfetto_begin(&perfetto, &text));
    for (size_t i = 0; i < count; i++, t.ended_ms += 1000) {
        AUTO_SPANS list = {0};
        assert_true(span_list_make(&list, &t) && perfetto_add(&perfetto, &list, &text));
    }
    assert_true(perfetto_end(&perfetto, &text));
    perfetto_finish(&perfetto);
    return parse(&text);
}

static size_t lanes_of(const json_t *whole, const char *category)
{
    size_t at, most = 0;
    const json_t *event;
    json_array_foreach(json_object_get(whole, "traceEvents"), at, event)
    {
        const size_t lane = (size_t)json_integer_value(json_object_get(event, "tid"));
        const char *is = text_at(event, "cat");
        most = is && strcmp(is, category) == 0 && lane > most ? lane : most;
    }
    return most;
}

static void there_are_as_many_lanes_as_were_busy_at_once(void **state)
{
    (void)state;
    json_t *one = written(1), *many = written(200);
    assert_int_equal(lanes_of(one, "run"), 1);
    assert_int_equal(lanes_of(many, "run"), 10); /* each run takes ten seconds, and one ends each second */
    assert_int_equal(lanes_of(many, "eval"), 1);
    assert_int_equal(lanes_of(many, "init"), 1);
    json_decref(one);
    json_decref(many);
}

static void names_of_any_bytes_are_json(void **state)
{
    const struct sluice_trace trace = trace_of(turns, COUNT(turns));
    struct sluice_trajectory t = trajectory_of(&trace, 1, messages, COUNT(messages));
    struct perfetto perfetto;
    AUTO_BUFFER text = {0}, line = {0};
    AUTO_SPANS list = {0};
    (void)state;
    t.task = "\xff<img src=x onerror=alert(1)>\x1b[2J\"";
    t.rollout = "wicked\xc3/0";
    assert_true(span_list_make(&list, &t));
    assert_true(perfetto_begin(&perfetto, &text) && perfetto_add(&perfetto, &list, &text) &&
                perfetto_end(&perfetto, &text));
    perfetto_finish(&perfetto);
    assert_true(otlp_append_request(&list, &line));
    json_decref(parse(&text));
    json_decref(parse(&line));
    for (size_t i = 0; i < text.len; i++)
        assert_true(text.data[i] < 0x7f && (text.data[i] >= ' ' || text.data[i] == '\n'));
    assert_null(memmem(text.data, text.len, "secret", 6));
    assert_null(memmem(line.data, line.len, "secret", 6));
    assert_null(memchr(line.data, '\n', line.len));
}

static void a_span_has_its_parent_and_the_trace_its_rollouts_id(void **state)
{
    const struct sluice_trace trace = trace_of(turns, COUNT(turns));
    struct sluice_trajectory t = trajectory_of(&trace, 1, messages, COUNT(messages));
    AUTO_BUFFER line = {0};
    AUTO_SPANS list = {0};
    (void)state;
    t.outcome = "infra";
    assert_true(span_list_make(&list, &t) && otlp_append_request(&list, &line));
    json_t *request = parse(&line);
    const json_t *scope = json_array_get(
        json_object_get(json_array_get(json_object_get(request, "resourceSpans"), 0), "scopeSpans"), 0);
    const json_t *spans = json_object_get(scope, "spans");
    assert_int_equal(json_array_size(spans), list.count);
    assert_string_equal(text_at(scope, "schemaUrl"), OTLP_SCHEMA);
    const json_t *first = json_array_get(spans, 0);
    assert_string_equal(text_at(first, "traceId"), "26eb406bd35e9c799d1b174b4b017f75");
    assert_string_equal(text_at(first, "endTimeUnixNano"), "1700000000000000000");
    assert_int_equal(json_integer_value(json_object_get(json_object_get(first, "status"), "code")), 2);
    for (size_t i = 1; i < list.count; i++) {
        const json_t *span = json_array_get(spans, i);
        assert_string_equal(text_at(span, "parentSpanId"),
                            text_at(json_array_get(spans, (size_t)list.items[i].parent), "spanId"));
        assert_string_equal(text_at(span, "traceId"), text_at(first, "traceId"));
    }
    json_decref(request);
}

static void a_submitters_span_is_linked_where_its_metadata_names_one(void **state)
{
    static const char *const none[] = {
        "", "{\"traceparent\": 7}", "{\"traceparent\": \"00-x\"}", "{\"traceparent\"",
        "{\"traceparent\": \"00-4bf92f3577b34da6a3ce929d0e0e473G-00f067aa0ba902b7-01\"}"};
    struct sluice_trajectory t = trajectory_of(NULL, 0, NULL, 0);
    (void)state;
    for (size_t i = 0; i <= COUNT(none); i++) {
        AUTO_BUFFER line = {0};
        AUTO_SPANS list = {0};
        t.metadata = i < COUNT(none) ? none[i]
                                     : "{\"traceparent\": \"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\"}";
        assert_true(span_list_make(&list, &t) && otlp_append_span(&list, 0, &line));
        json_t *span = parse(&line);
        const json_t *link = json_array_get(json_object_get(span, "links"), 0);
        assert_int_equal(link != NULL, i == COUNT(none));
        if (link)
            assert_string_equal(text_at(link, "traceId"), "4bf92f3577b34da6a3ce929d0e0e4736");
        json_decref(span);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(there_are_as_many_lanes_as_were_busy_at_once),
        cmocka_unit_test(names_of_any_bytes_are_json),
        cmocka_unit_test(a_submitters_span_is_linked_where_its_metadata_names_one),
        cmocka_unit_test(a_span_has_its_parent_and_the_trace_its_rollouts_id),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
