/* The commands of `sluice` other than submit and up; and hello. */
#include "tests/client/cli_world.h"

static void watch_prints_a_line_for_each(void **state)
{
    struct fixture *f = *state;
    fake_add_many(f->broker, 3, 100);
    expect(f, "watch train --count 3", 0,
           "2  g/1  ok  reward 1  1 turns  3 tokens, 2 sampled  5 ms\n3  g/2  ok  reward 0");
    expect(f, "watch train --from 3 --count 1 --json", 0, "{\"rollout\": \"g/2\", ");
    fake_forget(f->broker, 2);
    expect(f, "watch train --from 2 --count 1", 1, "number 2 is no longer kept; the oldest is 3");
}

static void show_prints_what_was_said(void **state)
{
    struct fixture *f = *state;
    fake_add(f->broker, false);
    expect(f, "show g/0 --tokens", 0, "rollout   g/0 (task add, sample 0, attempt 1; number 1");
    assert_non_null(strstr(said(f), "\nassistant\n  | 2\n"));
    assert_non_null(strstr(said(f), " 101\n"));
    assert_non_null(strstr(said(f), " 102* 103*\n"));
    expect(f, "show g/0 --json", 0, "\"messages\": [{\"role\": \"user\", \"content\": \"1+1?\"}");
    expect(f, "show waiting/0", 0, "waiting/0 has not ended: run leased, attempt 2, worker w7");
    expect(f, "show none/0", 1, "sluice: no such rollout");
}

static void the_small_commands_do_what_they_say(void **state)
{
    struct fixture *f = *state;
    expect(f, "cancel g/0", 0, "3 rollouts stopped");
    expect(f, "cancel --stream train", 0, "3 rollouts stopped");
    expect(f, "engine add http://127.0.0.1:9", 0, "registered http://127.0.0.1:9");
    assert_non_null(strstr(said(f), "warning: from here it does not answer: Connection refused"));
    expect(f, "engine remove http://127.0.0.1:9", 0, "removed http://127.0.0.1:9");
    expect(f, "engine list", 0, "no engine is registered");
    expect(f, "status --json", 0, "{\"epoch\":3}\n");
    expect(f, "status", 0, "start number 3");
}

static void watch_goes_on_where_its_cursor_says(void **state)
{
    struct fixture *f = *state;
    fake_add_many(f->broker, 5, 100);
    expect(f, "watch train --cursor c --count 2", 0, "2  g/1  ok");
    expect(f, "watch train --cursor c --timeout 100ms", 0, "3  g/2  ok");
    assert_null(strstr(said(f), "2  g/1"));
    assert_non_null(strstr(said(f), "5  g/4  ok"));
    fake_add_many(f->broker, 2, 100);
    expect(f, "watch train --cursor c --timeout 100ms", 0, "6  g/5  ok");
    fake_add_many(f->broker, 5, 100);
    fake_forget(f->broker, 9);
    expect(f, "watch train --cursor c", 1, "to go on, remove c: sluice watch train --from 10");
    expect(f, "watch other --cursor c", 1, "c is no cursor of stream other");
}

static void a_cancel_that_stopped_nothing_says_why(void **state)
{
    struct fixture *f = *state;
    fake_add(f->broker, false);
    fake_count_done(f->broker, 0);
    expect(f, "cancel g", 0, "nothing ran: g has ended already");
    expect(f, "cancel g/0", 0, "nothing ran: g/0 has ended already");
    expect(f, "cancel none", 0, "nothing ran: no group none is known. The cancel is remembered");
    expect(f, "cancel none/3", 0, "nothing ran: no rollout none/3 is known. The cancel is remembered");
    expect(f, "cancel --stream train", 0, "0 rollouts stopped");
    fake_refuse_one(f->broker, MSG_rollout_get, REFUSAL_NOT_ALLOWED, "not with this key");
    expect(f, "cancel g", 0, "nothing ran, and whether g has ended cannot be said: not with this key");
}

static void acknowledging_and_backing_up_say_what_they_did(void **state)
{
    struct fixture *f = *state;
    expect(f, "ack train 41", 0, "stream train: the broker may forget up to number 41");
    assert_int_equal(fake_acked(f->broker), 41);
    expect(f, "backup monday", 0, "backups/monday.db in the broker's data directory, 3 bytes");
}

static const char two_workers[] =
    "{\"workers\": [{\"worker\": \"w1\", \"host\": \"here\", \"jobs\": 2},"
    " {\"worker\": \"w2\", \"host\": \"there\", \"jobs\": 0}]}";

static void draining_tells_and_waits_until_they_are_gone(void **state)
{
    struct fixture *f = *state;
    fake_set_status(f->broker, two_workers);
    fake_count_done(f->broker, 1);
    expect(f, "drain w1 --grace 90s", 0, "workers told to end: 1\n");
    assert_string_equal(fake_last_options(f->broker), "grace_s=90 is_host=0");
    expect(f, "drain --host here --grace 0s --wait --patience 1s", 1,
           "still there: 1, with 2 jobs");
    assert_string_equal(fake_last_options(f->broker), "grace_s=0 is_host=1");
    expect(f, "drain w3 --wait", 0, "gone");
    assert_string_equal(fake_last_options(f->broker), "grace_s=- is_host=0");
}

static void a_broker_that_was_started_again_is_given_time_to_hear_of_its_workers(void **state)
{
    struct fixture *f = *state;
    static const char before[] = "{\"epoch\": 3, \"uptime_ms\": 90000, \"workers\": [{\"worker\": \"w1\"}]}";
    fake_set_status(f->broker, before);
    fake_set_next_status(f->broker, "{\"epoch\": 4, \"uptime_ms\": 900, \"workers\": []}");
    expect(f, "drain w1 --wait --patience 1s", 1, "may not have heard of all workers yet");
    fake_set_status(f->broker, before);
    fake_set_next_status(f->broker, "{\"epoch\": 4, \"uptime_ms\": 90000, \"workers\": []}");
    expect(f, "drain w1 --wait --patience 1s", 0, "gone");
}

static void the_exit_status_of_status_is_the_health(void **state)
{
    static const struct {
        const char *health;
        int status;
    } cases[] = {{"healthy", 0}, {"degraded", 4}, {"down", 5}, {"splendid", 0}};
    struct fixture *f = *state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char json[256], words[64];
        snprintf(json, sizeof(json), "{\"health\": \"%s\", \"reasons\": [\"a\\u001b[2J\", \"b\"]}",
                 cases[i].health);
        snprintf(words, sizeof(words), "health    %s\n          a?[2J\n          b\nbroker ",
                 cases[i].health);
        fake_set_status(f->broker, json);
        expect(f, "status", cases[i].status, words);
        assert_ptr_equal(strstr(said(f), "health "), said(f));
        expect(f, "status --json", cases[i].status, "\"reasons\"");
    }
    fake_set_status(f->broker, "[]");
    expect(f, "status", 1, "the broker's status is no JSON object");
    expect(f, "status --watch 5s", 2, "'5s' is one argument too many");
    expect(f, "status --watch=5", 2, "--watch wants a time from 100ms to 1d");
}

static void status_shows_what_is_lost_and_set_aside_and_passes_over_what_it_does_not_know(void **state)
{
    struct fixture *f = *state;
    fake_set_status(f->broker,
                    "{\"health\": \"degraded\", \"news\": {\"from\": [\"the future\"]},"
                    " \"lost\": [{\"worker\": \"w9\\u001b\", \"stage\": \"run\", \"host\": \"n7\", \"jobs\": 3,"
                    " \"ago_ms\": 1200, \"why\": \"no beat\"}, 7],"
                    " \"engines\": [{\"url\": \"http://e:1\", \"live\": 2, \"state\": \"open\","
                    " \"faults\": 5, \"retry_in_ms\": 900}],"
                    " \"images\": [{\"image\": \"debian\", \"state\": \"trial\", \"faults\": 6}],"
                    " \"clients\": [{\"name\": \"ann\", \"rollouts\": 12, \"results\": 3, \"x\": {}}],"
                    " \"advice\": [\"do something\", 1]}");
    expect(f, "status", 4, "lost worker  stage  host  jobs  ago ms  why\nw9?          run    n7    3     1200    no beat\n");
    assert_non_null(strstr(said(f), "http://e:1  2     open   5       900\n"));
    assert_non_null(strstr(said(f), "debian           trial  6       -        -\n"));
    assert_non_null(strstr(said(f), "client  rollouts  results\nann     12        3\n"));
    assert_non_null(strstr(said(f), "! do something\n! ?\n"));
}

static void hello_is_a_whole_trainer(void **state)
{
    struct fixture *f = *state;
    char hello[4096], sluice[4096];
    memcpy(sluice, f->sluice, sizeof(sluice));
    snprintf(hello, sizeof(hello), "%.*shello", (int)(strlen(sluice) - strlen("sluice")), sluice);
    memcpy(f->sluice, hello, sizeof(hello));
    fake_name_stream(f->broker, "hello");
    fake_finish_at_once(f->broker, true);
    expect(f, "", 0, "hello/0: ok, 3 tokens, 2 of them sampled, reward 0\n"
                     "hello/1: ok, 3 tokens, 2 of them sampled, reward 1\n");
    expect(f, "'{\"task\": 1}'", 1, "hello: the name is taken");
}

static void the_page_of_the_command_line_is_the_tables(void **state)
{
    struct fixture *f = *state;
    char path[4096];
    const char *source = getenv("SLUICE_SOURCE_DIR");
    assert_non_null(source);
    snprintf(path, sizeof(path), "%s/docs/cli.md", source);
    assert_int_equal(run(f, "--help-markdown"), 0);
    char *page = read_file(path);
    if (strcmp(page, said(f)) != 0)
        fail_msg("docs/cli.md is not what `sluice --help-markdown` prints: make it again");
    free(page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(watch_prints_a_line_for_each),
        CASE(watch_goes_on_where_its_cursor_says),
        CASE(a_cancel_that_stopped_nothing_says_why),
        CASE(acknowledging_and_backing_up_say_what_they_did),
        CASE(draining_tells_and_waits_until_they_are_gone),
        CASE(a_broker_that_was_started_again_is_given_time_to_hear_of_its_workers),
        CASE(show_prints_what_was_said),
        CASE(the_small_commands_do_what_they_say),
        CASE(the_exit_status_of_status_is_the_health),
        CASE(status_shows_what_is_lost_and_set_aside_and_passes_over_what_it_does_not_know),
        CASE(hello_is_a_whole_trainer),
        CASE(the_page_of_the_command_line_is_the_tables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
