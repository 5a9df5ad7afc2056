/* What Prometheus reads: both formats of each kind of family, and what a hostile label becomes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "common/metrics/exposition.h"

static const struct family counter = {"sluice_x_seconds_total", FAMILY_COUNTER, "seconds",
                                      "How \"long\" a\\b\nit took."};
static const struct family gauge = {"sluice_free_bytes", FAMILY_GAUGE, "bytes", "Bytes."};
static const struct family unitless = {"sluice_turns_total", FAMILY_COUNTER, "tokens", "Turns."};
static const struct family info = {"sluice_build_info", FAMILY_INFO, "", "Which."};
static const struct family times = {"sluice_t_seconds", FAMILY_HISTOGRAM, "seconds", "Times."};

static struct buffer out;
static struct exposition exposition;

static void begin(bool is_openmetrics, const struct family *family)
{
    buffer_clear(&out);
    exposition = (struct exposition){.out = &out, .is_openmetrics = is_openmetrics};
    exposition_begin(&exposition, family);
}

static void expect(const char *text)
{
    assert_true(buffer_append(&out, "", 1));
    assert_string_equal((const char *)out.data, text);
}

static int tear_down(void **state)
{
    (void)state;
    buffer_finish(&out);
    return 0;
}

static void the_text_format_calls_a_family_as_its_samples(void **state)
{
    (void)state;
    begin(false, &counter);
    exposition_number(&exposition, NULL, 0, 1.5);
    exposition_end(&exposition);
    expect("# HELP sluice_x_seconds_total How \"long\" a\\\\b\\nit took.\n"
           "# TYPE sluice_x_seconds_total counter\n"
           "sluice_x_seconds_total 1.5\n");
    begin(false, &info);
    exposition_count(&exposition, NULL, 0, 1);
    expect("# HELP sluice_build_info Which.\n# TYPE sluice_build_info gauge\nsluice_build_info 1\n");
}

static void openmetrics_leaves_out_the_end_and_tells_the_unit(void **state)
{
    (void)state;
    begin(true, &counter);
    exposition_number(&exposition, NULL, 0, 1.5);
    exposition_end(&exposition);
    expect("# HELP sluice_x_seconds How \\\"long\\\" a\\\\b\\nit took.\n"
           "# TYPE sluice_x_seconds counter\n"
           "# UNIT sluice_x_seconds seconds\n"
           "sluice_x_seconds_total 1.5\n"
           "# EOF\n");
    begin(true, &info);
    exposition_count(&exposition, NULL, 0, 1);
    expect("# HELP sluice_build Which.\n# TYPE sluice_build info\nsluice_build_info 1\n");
    begin(true, &gauge);
    expect("# HELP sluice_free_bytes Bytes.\n# TYPE sluice_free_bytes gauge\n# UNIT sluice_free_bytes bytes\n");
    begin(true, &unitless); /* whose name does not say it */
    expect("# HELP sluice_turns Turns.\n# TYPE sluice_turns counter\n");
}

static void values_of_labels_are_escaped(void **state)
{
    (void)state;
    const struct metric_label labels[] = {{"stream", slice_from_str("a\"b\\c\nd")}, {"why", slice_from_str("")}};
    begin(false, &gauge);
    buffer_clear(&out);
    exposition_count(&exposition, labels, 2, UINT64_MAX);
    expect("sluice_free_bytes{stream=\"a\\\"b\\\\c\\nd\",why=\"\"} 18446744073709551615\n");
}

static void numbers_are_written_as_they_are_read(void **state)
{
    (void)state;
    static const struct {
        double value;
        const char *text;
    } cases[] = {{0, "sluice_free_bytes 0\n"},
                 {-3, "sluice_free_bytes -3\n"},
                 {1763697600.25, "sluice_free_bytes 1763697600.25\n"},
                 {1e20, "sluice_free_bytes 1e+20\n"},
                 {0.1, "sluice_free_bytes 0.1\n"},
                 {INFINITY, "sluice_free_bytes +Inf\n"},
                 {-INFINITY, "sluice_free_bytes -Inf\n"},
                 {NAN, "sluice_free_bytes NaN\n"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        begin(false, &gauge);
        buffer_clear(&out);
        exposition_number(&exposition, NULL, 0, cases[i].value);
        expect(cases[i].text);
    }
}

static void a_histogram_adds_up_from_class_to_class(void **state)
{
    (void)state;
    const struct observed_bounds bounds = {.count = 2, .at = {0.5, 1}};
    const struct metric_label label = {"tool", slice_from_str("bash")};
    struct observed value = {.sum = 0};
    observed_add(&value, &bounds, 0.5); /* a bound belongs to its class */
    observed_add(&value, &bounds, 0.75);
    observed_add(&value, &bounds, 8);
    begin(false, &times);
    buffer_clear(&out);
    exposition_histogram(&exposition, &label, 1, &bounds, &value);
    expect("sluice_t_seconds_bucket{tool=\"bash\",le=\"0.5\"} 1\n"
           "sluice_t_seconds_bucket{tool=\"bash\",le=\"1.0\"} 2\n"
           "sluice_t_seconds_bucket{tool=\"bash\",le=\"+Inf\"} 3\n"
           "sluice_t_seconds_sum{tool=\"bash\"} 9.25\n"
           "sluice_t_seconds_count{tool=\"bash\"} 3\n");
    begin(true, &times);
    buffer_clear(&out);
    exposition_histogram(&exposition, NULL, 0, &bounds, &value);
    expect("sluice_t_seconds_bucket{le=\"0.5\"} 1\n"
           "sluice_t_seconds_bucket{le=\"1.0\"} 2\n"
           "sluice_t_seconds_bucket{le=\"+Inf\"} 3\n"
           "sluice_t_seconds_sum 9.25\n"
           "sluice_t_seconds_count 3\n");
}

static void the_classes_of_seconds_are_those_that_programs_tell_each_other(void **state)
{
    (void)state;
    static const double bounds[] = {0.01, 0.025, 0.06, 0.15, 0.4, 1, 2.5, 6, 15, 40, 100, 250, 600, 1500, 3600};
    assert_int_equal(observed_seconds.count, sizeof(bounds) / sizeof(*bounds));
    assert_memory_equal(observed_seconds.at, bounds, sizeof(bounds));
    assert_int_equal(observed_class(&observed_seconds, 0), 0);
    assert_int_equal(observed_class(&observed_seconds, 3600), 14);
    assert_int_equal(observed_class(&observed_seconds, 3601), 15);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(the_text_format_calls_a_family_as_its_samples, tear_down),
        cmocka_unit_test_teardown(openmetrics_leaves_out_the_end_and_tells_the_unit, tear_down),
        cmocka_unit_test_teardown(values_of_labels_are_escaped, tear_down),
        cmocka_unit_test_teardown(numbers_are_written_as_they_are_read, tear_down),
        cmocka_unit_test_teardown(a_histogram_adds_up_from_class_to_class, tear_down),
        cmocka_unit_test(the_classes_of_seconds_are_those_that_programs_tell_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
