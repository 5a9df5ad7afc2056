/*
 * The fake broker as a program, for tests in other languages: prints its URL, then carries out
 * one order a line of stdin and answers "done", or a number. Ends with stdin.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/client/fake_broker.h"

static void add(struct fake_broker *b, unsigned n) { fake_add_many(b, n, 0); }
static void add_lost(struct fake_broker *b, unsigned n) { fake_add_many(b, n, 100); }
static void add_some_lost(struct fake_broker *b, unsigned n) { fake_add_many(b, n, 33); }
static void add_broken(struct fake_broker *b, unsigned n) { (void)n, fake_add_broken(b); }
static void again(struct fake_broker *b, unsigned n) { fake_publish(b, "t/train/", "train", n); }
static void head(struct fake_broker *b, unsigned n) { (void)n, fake_publish_head(b); }
static void forget(struct fake_broker *b, unsigned n) { fake_forget(b, n); }
static void restart(struct fake_broker *b, unsigned n) { fake_restart(b, n > 0); }
static void leave(struct fake_broker *b, unsigned n) { (void)n, fake_leave(b); }
static void come_back(struct fake_broker *b, unsigned n) { (void)n, fake_return(b); }
static void await(struct fake_broker *b, unsigned n) { (void)n, fake_await_subscriber(b); }
static void full(struct fake_broker *b, unsigned n) { fake_be_full(b, n); }
static void finish(struct fake_broker *b, unsigned n) { fake_finish_at_once(b, n > 0); }
static void drop_much(struct fake_broker *b, unsigned n) { (void)n, fake_drop_much(b); }
static void restore(struct fake_broker *b, unsigned n) { fake_restore(b, n, 10); }
static void empty(struct fake_broker *b, unsigned n) { fake_empty(b, n, 0); }
static void empty_await(struct fake_broker *b, unsigned n) { fake_empty(b, 0, n); }
static void ignore(struct fake_broker *b, unsigned n) { fake_ignore(b, n); }
static void never(struct fake_broker *b, unsigned n)
{
    (void)n;
    fake_refuse_for_good(b, REFUSAL_TOO_LARGE, "more than ever fits");
}
static void forbid(struct fake_broker *b, unsigned n)
{
    (void)n;
    fake_refuse(b, REFUSAL_NOT_ALLOWED, "not with this key");
}
static void warn(struct fake_broker *b, unsigned n) { (void)n, fake_warn(b, "nearly full"); }
static void garbage(struct fake_broker *b, unsigned n)
{
    (void)n;
    fake_answer_garbage(b);
    fake_publish_bytes(b, "t/train/", "\xc1", false);
}

static const struct {
    const char *name;
    void (*run)(struct fake_broker *broker, unsigned number);
} orders[] = {
    {"add", add},
    {"add-lost", add_lost},
    {"add-some-lost", add_some_lost},
    {"add-broken", add_broken},
    {"again", again},
    {"head", head},
    {"forget", forget},
    {"restart", restart},
    {"leave", leave},
    {"return", come_back},
    {"await", await},
    {"full", full},
    {"finish", finish},
    {"garbage", garbage},
    {"drop-much", drop_much},
    {"restore", restore},
    {"empty", empty},
    {"empty-await", empty_await},
    {"ignore", ignore},
    {"never", never},
    {"forbid", forbid},
    {"warn", warn},
};

static void name_stream(struct fake_broker *broker, const char *name)
{
    fake_name_stream(broker, name);
    printf("done\n");
}

static bool carry_out(struct fake_broker *broker, const char *name, unsigned number)
{
    for (size_t i = 0; i < sizeof(orders) / sizeof(*orders); i++)
        if (strcmp(orders[i].name, name) == 0) {
            orders[i].run(broker, number);
            printf("done\n");
            return true;
        }
    if (strcmp(name, "hello") == 0)
        name_stream(broker, name);
    else if (strcmp(name, "groups") == 0)
        printf("%u\n", fake_groups(broker));
    else if (strcmp(name, "options") == 0)
        printf("%s\n", fake_last_options(broker));
    else if (strcmp(name, "asked") == 0)
        printf("%u\n", fake_count(broker, MSG_status_get));
    else if (strcmp(name, "renewals") == 0)
        printf("%u\n", fake_count(broker, MSG_stream_renew));
    else if (strcmp(name, "acked") == 0)
        printf("%llu\n", (unsigned long long)fake_acked(broker));
    else
        return false;
    return true;
}

int main(void)
{
    struct fake_broker *broker = fake_start();
    char line[128], name[64];
    bool good = true;
    printf("%s\n", fake_url(broker));
    fflush(stdout);
    while (good && fgets(line, sizeof(line), stdin)) {
        unsigned number = 0;
        good = sscanf(line, "%63s %u", name, &number) >= 1 && carry_out(broker, name, number);
        fflush(stdout);
    }
    fake_stop(&broker);
    return good ? 0 : 1;
}
