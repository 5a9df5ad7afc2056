/* Where the gateway may post to: rules for names, for addresses, and what a name leads to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <arpa/inet.h>
#include <netinet/in.h>

#include "client/gateway/door/engines.h"
#include "client/gateway/outgoing/outgoing.h"

/* ---- rules ------------------------------------------------------------------------------------------------- */

static bool may_reach(const char *rule, const char *url, const char *address)
{
    const char *const rules[] = {rule, NULL};
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
    if (inet_pton(AF_INET, address, &v4.sin_addr) == 1)
        return address_may_be_reached(rules, url, (struct sockaddr *)&v4);
    assert_int_equal(inet_pton(AF_INET6, address, &v6.sin6_addr), 1);
    return address_may_be_reached(rules, url, (struct sockaddr *)&v6);
}

static void a_name_leads_not_to_this_machine_nor_to_its_link(void **state)
{
    static const char *const near[] = {"127.0.0.1", "127.9.9.9", "::1",       "::ffff:127.0.0.1", "0.0.0.0",
                                       "::",        "224.0.0.1", "fe80::1:2", "169.254.169.254",  "ff02::1"};
    (void)state;
    for (size_t i = 0; i < sizeof(near) / sizeof(*near); i++)
        if (may_reach("trainer.example", "http://trainer.example:80/x", near[i]))
            fail_msg("%s", near[i]);
    assert_true(may_reach("trainer.example", "http://Trainer.Example:80/x", "10.1.2.3"));
    assert_true(may_reach("trainer.example:80", "http://trainer.example/x", "2001:db8::1"));
    assert_false(may_reach("trainer.example:81", "http://trainer.example/x", "10.1.2.3"));
    assert_false(may_reach("trainer.example", "http://other.example/x", "10.1.2.3"));
}

static void what_is_allowed_by_its_address_is_reached(void **state)
{
    (void)state;
    assert_true(may_reach("loopback", "http://localhost:1/", "127.0.0.1"));
    assert_true(may_reach("loopback", "http://localhost:1/", "::1"));
    assert_false(may_reach("loopback", "http://localhost:1/", "10.0.0.1"));
    assert_true(may_reach("localhost", "http://localhost:1/", "127.0.0.1"));
    assert_true(may_reach("127.0.0.1:9", "http://127.0.0.1:9/", "127.0.0.1"));
    assert_false(may_reach("127.0.0.1:9", "http://127.0.0.1:8/", "127.0.0.1"));
    assert_true(may_reach("169.254.0.0/16", "http://169.254.1.1/", "169.254.1.1"));
    assert_false(may_reach("10.0.0.0/8", "http://10.0.0.1/", "11.0.0.1"));
}

/* ---- a post -------------------------------------------------------------------------------------------------- */

static struct loop *loop;
static struct {
    int status;
    bool has_ended;
} told;

static void on_ended(void *arg, int status, const char *why, struct slice body)
{
    (void)arg;
    (void)why;
    (void)body;
    told.status = status;
    told.has_ended = true;
    loop_stop(loop);
}

static void out_of_time(void *arg)
{
    (void)arg;
    loop_stop(loop);
}

static int listen_here(uint16_t *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0 && bind(fd, (struct sockaddr *)&address, size) == 0 && listen(fd, 8) == 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    *port = ntohs(address.sin_port);
    return fd;
}

/* Whether anybody came, until the post ended or time was over. */
static bool comes(const char *rule, int listening, uint16_t port)
{
    const char *const rules[] = {rule, NULL};
    char url[64];
    struct buffer body = {0};
    struct outgoing_post post = {0};
    struct outgoing *outgoing = outgoing_open(loop);
    snprintf(url, sizeof(url), "http://localhost:%u/", port);
    const struct outgoing_plan plan = {.url = url, .rules = rules, .wait_ms = 2000, .ended = on_ended};
    buffer_append_str(&body, "{}");
    told.has_ended = false;
    assert_true(outgoing_post(outgoing, &plan, &body, &post));
    struct loop_timer *bound = loop_after(loop, 30000, out_of_time, NULL);
    loop_run(loop);
    loop_cancel(loop, &bound);
    assert_true(told.has_ended && told.status == 0);
    const int came = accept(listening, NULL, NULL);
    if (came >= 0)
        close(came);
    outgoing_close(&outgoing);
    return came >= 0;
}

static void where_a_name_leads_is_looked_at_before_it_is_gone_to(void **state)
{
    uint16_t port;
    (void)state;
    loop = loop_create();
    const int listening = listen_here(&port);
    assert_true(comes("loopback", listening, port));
    assert_false(comes("10.0.0.0/8", listening, port));
    close(listening);
    loop_destroy(&loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_leads_not_to_this_machine_nor_to_its_link),
        cmocka_unit_test(what_is_allowed_by_its_address_is_reached),
        cmocka_unit_test(where_a_name_leads_is_looked_at_before_it_is_gone_to),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
