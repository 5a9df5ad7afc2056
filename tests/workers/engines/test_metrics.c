/* What servers say of themselves at /metrics, read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "workers/engines/dialects/metrics.h"

static void a_metric_is_the_sum_and_the_most_of_its_lines(void **state)
{
    (void)state;
    static const char text[] = "# HELP vllm:num_requests_running Number of requests.\n"
                               "# TYPE vllm:num_requests_running usage\n"
                               "vllm:num_requests_running{engine=\"0\",model_name=\"a } b\"} 3.0\n"
                               "vllm:num_requests_running_total 100\n"
                               "vllm:num_requests_running{engine=\"1\"} 4\n";
    struct metric got;
    assert_true(metrics_find(text, "vllm:num_requests_running", &got));
    assert_true(got.sum == 7 && got.most == 4);
    assert_false(metrics_find(text, "vllm:num_requests", &got));
    assert_false(metrics_find("", "up", &got));
    assert_false(metrics_find("up{a=\"1\"\nup NaN\n", "up", &got));
    assert_false(metrics_find("up words\n", "up", &got));
    assert_true(metrics_find("down 1\nup 2e-1", "up", &got) && got.sum == 0.2);
}

static void the_use_of_a_cache_is_told_under_many_names(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int permille; /* -1: it does not say */
    } cases[] = {
        {"vllm:kv_cache_usage_perc{engine=\"0\",model_name=\"m\"} 0.7312\n", 731},
        {"vllm:kv_cache_usage_perc{engine=\"0\"} 0.2\nvllm:kv_cache_usage_perc{engine=\"1\"} 0.9\n", 900},
        {"vllm:gpu_cache_usage_perc{model_name=\"m\"} 1.0\n", 1000},
        {"sglang:token_usage{model_name=\"m\",tp_rank=\"0\"} 0.05\n", 50},
        {"llamacpp:kv_cache_usage_ratio 0.5\n", 500},
        {"vllm:kv_cache_usage_perc 1.02\n", 1000},
        {"vllm:kv_cache_usage_perc -1\n", 0},
        {"vllm:kv_cache_usage_perc +Inf\n", -1},
        {"llamacpp:requests_processing 2\n", -1},
        {"<html>", -1},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        unsigned got = 7;
        assert_int_equal(metrics_cache_permille(cases[i].text, &got), cases[i].permille >= 0);
        assert_int_equal(got, cases[i].permille >= 0 ? cases[i].permille : 7);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_metric_is_the_sum_and_the_most_of_its_lines),
        cmocka_unit_test(the_use_of_a_cache_is_told_under_many_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
