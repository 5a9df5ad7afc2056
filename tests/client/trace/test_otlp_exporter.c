/* The exporter, with collectors that are ill: nobody waits for it, and all that is lost is counted (O7). */
#include "tests/client/trace/trace_world.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/trace/otlp_exporter.h"
#include "common/base/cleanup.h"
#include "common/base/clock.h"

enum { MANY = 4000 };

static const struct sluice_turn turns[] = {TOLD("prompt", 0), SAID(1), TOLD("tool", 0.5)};
static const struct sluice_message messages[] = {USER, REPLY, TOOL("bash: ls")};

/* A port of this machine; one that listens takes connections and says nothing. */
static int port_of_nobody(bool listens, char url[64])
{
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    assert_true(!listens || listen(fd, 5) == 0);
    snprintf(url, 64, "http://127.0.0.1:%u", ntohs(address.sin_port));
    return fd;
}

static void add_many(struct otlp_exporter *exporter, size_t count)
{
    const struct sluice_trace trace = trace_of(turns, COUNT(turns));
    struct sluice_trajectory t = trajectory_of(&trace, 1, messages, COUNT(messages));
    for (size_t i = 0; i < count; i++)
        otlp_exporter_add(exporter, &t);
}

static struct otlp_counts counts_of(struct otlp_exporter *exporter)
{
    struct otlp_counts counts;
    otlp_exporter_counts(exporter, &counts);
    return counts;
}

static void o7_one_that_hangs_holds_nobody_up_and_what_is_dropped_is_counted(void **state)
{
    char url[64];
    struct fail fail;
    AUTO_CLOSE int fd = port_of_nobody(true, url);
    struct otlp_exporter *exporter = otlp_exporter_create(url, &fail);
    (void)state;
    assert_non_null(exporter);
    const struct sluice_trace trace = trace_of(turns, COUNT(turns));
    struct sluice_trajectory t = trajectory_of(&trace, 1, messages, COUNT(messages));
    int64_t longest_ms = 0;
    for (size_t i = 0; i < MANY; i++) {
        const int64_t begin_ms = clock_ms();
        otlp_exporter_add(exporter, &t);
        const int64_t took_ms = clock_ms() - begin_ms;
        longest_ms = took_ms > longest_ms ? took_ms : longest_ms;
    }
    struct otlp_counts counts = counts_of(exporter);
    assert_true(longest_ms < OTLP_TIMEOUT_MS / 2);
    assert_int_equal(counts.taken, MANY * 8);
    assert_true(counts.dropped_full >= MANY * 8 - OTLP_QUEUE_SPANS - OTLP_BATCH_SPANS);
    assert_int_equal(counts.sent, 0);
    assert_false(otlp_exporter_await(exporter, 0, 100));
    const int64_t end_ms = clock_ms();
    otlp_exporter_destroy(&exporter);
    assert_true(clock_ms() - end_ms < OTLP_TIMEOUT_MS);
    assert_null(exporter);
}

static void o7_one_that_is_gone_costs_its_spans(void **state)
{
    char url[64];
    struct fail fail;
    AUTO_CLOSE int fd = port_of_nobody(false, url);
    struct otlp_exporter *exporter = otlp_exporter_create(url, &fail);
    (void)state;
    assert_non_null(exporter);
    add_many(exporter, 200);
    assert_true(otlp_exporter_await(exporter, 0, 60000));
    const struct otlp_counts counts = counts_of(exporter);
    assert_int_equal(counts.taken, 1600);
    assert_int_equal(counts.dropped_failed, 1600);
    assert_int_equal(counts.tried_again, 0);
    assert_true(*counts.why);
    otlp_exporter_destroy(&exporter);
}

static void a_url_that_is_none_is_refused(void **state)
{
    static const char *const wrong[] = {"", "gpu1:4318", "ftp://gpu1", "http://", "file:///etc/passwd"};
    (void)state;
    for (size_t i = 0; i < COUNT(wrong); i++) {
        struct fail fail;
        assert_null(otlp_exporter_create(wrong[i], &fail));
        assert_non_null(strstr(fail.text, "http://HOST:PORT"));
    }
    setenv("OTEL_EXPORTER_OTLP_HEADERS", "a=b\r\nc: d", 1);
    struct fail fail;
    assert_null(otlp_exporter_create("http://127.0.0.1:1", &fail));
    assert_non_null(strstr(fail.text, "OTEL_EXPORTER_OTLP_HEADERS"));
    unsetenv("OTEL_EXPORTER_OTLP_HEADERS");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(o7_one_that_hangs_holds_nobody_up_and_what_is_dropped_is_counted),
        cmocka_unit_test(o7_one_that_is_gone_costs_its_spans),
        cmocka_unit_test(a_url_that_is_none_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
