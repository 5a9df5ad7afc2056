/* The commands of `sluice` other than submit and up; and hello. */
#include "tests/client/cli/cli_world.h"

#include <jansson.h>

#include "common/base/cleanup.h"

static void watch_prints_a_line_for_each(void **state)
{
    struct fixture *f = *state;
    fake_add_many(f->broker, 3, 100);
    expect(f, "watch train --count 3", 0,
           "2  g/1  ok  reward 1  1 turn  3 tokens, 2 sampled  5 ms\n3  g/2  ok  reward 0");
    expect(f, "watch train --from 3 --count 1 --json", 0, "{\"rollout\": \"g/2\", ");
    fake_forget(f->broker, 2);
    expect(f, "watch train --from 2 --count 1", 1, "number 2 is no longer kept; the oldest is 3");
}

static void watching_what_nobody_submitted_to_says_so(void **state)
{
    struct fixture *f = *state;
    expect(f, "watch trian --timeout 100ms", 0, "warning: nothing has been submitted to the stream trian yet");
    fake_add_many(f->broker, 3, 100);
    expect(f, "watch train --count 3", 0, "reward");
    assert_null(strstr(said(f), "warning"));
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
    expect(f, "show waiting/0", 0,
           "waiting/0 has not ended: run leased, attempt 2, worker w7, turn 3, last tool bash; http://gpu1:8000: HTTP "
           "503; tried 2 times");
    expect(f, "show waiting/0 --json", 0,
           "{\"rollout\":\"waiting/0\",\"state\":\"run leased, attempt 2, worker w7, turn 3");
    expect(f, "show h/0 --json", 0,
           "\"turn\":3,\"tool\":\"bash\",\"why\":\"http://gpu1:8000: HTTP 503; tried 2 times\"}");
    expect(f, "show none/0", 1, "sluice: no such rollout");
}

static void list_says_where_rollouts_are_and_how_they_ended(void **state)
{
    struct fixture *f = *state;
    expect(f, "list --older 10m", 0,
           "rollout  stream  stage  state   attempt  for     worker  at\n"
           "h/0      train   run    leased  2        61.0 s  w7      turn 3, bash; http://gpu1:8000: HTTP 503; tried 2 "
           "times\n");
    assert_string_equal(fake_last_options(f->broker), "age_ms=600000 limit=100");
    expect(f, "list --stream train --outcome ok --limit 2", 0, "g/1      train   ok       0.5     1");
    assert_non_null(strstr(said(f), "g/0      train   infra    -       3        10 ms  engine: HTTP 500\n"));
    assert_non_null(strstr(said(f), "2 of 7 are listed: narrow the search, or raise --limit"));
    assert_string_equal(fake_last_options(f->broker), "age_ms=- limit=2");
    expect(f, "list --ended --group g --groups", 0, "1 ok, 1 infra");
    expect(f, "list --json", 0, "{\"rollout\":\"h/0\",\"stream\":\"train\",");
    expect(f, "list --ended", 2, "ended rollouts are listed by stream or group: add --stream NAME");
    expect(f, "list --ended --stream s --stage run", 2,
           "what has ended is in no stage and no state: leave --stage out");
    expect(f, "list --outcome well", 2, "--outcome");
    expect(f, "show g", 0, "engine: HTTP 500\n");
    assert_non_null(strstr(said(f), "leased"));
    fake_refuse_one(f->broker, MSG_rollout_list, REFUSAL_UNKNOWN_GROUP, "there is no group none");
    expect(f, "show none", 1, "sluice: there is no group none");
}

static void the_small_commands_do_what_they_say(void **state)
{
    struct fixture *f = *state;
    expect(f, "cancel g/0", 0, "3 rollouts stopped");
    expect(f, "cancel --stream train", 0, "3 rollouts stopped");
    expect(f, "engine add http://127.0.0.1:9", 0, "registered http://127.0.0.1:9");
    assert_non_null(strstr(said(f), "warning: from here it does not answer: Connection refused"));
    expect(f, "engine add http://127.0.0.1:9 --policy critic", 0,
           "moved http://127.0.0.1:9 from the policy default to critic");
    assert_non_null(strstr(said(f), "to move it back: sluice engine add http://127.0.0.1:9 --policy default"));
    expect(f, "engine add http://127.0.0.1:9 --json", 0, "{\"url\":\"http://127.0.0.1:9\"}");
    expect(f, "engine add http://127.0.0.1:9 --policy critic --json", 0,
           "{\"url\":\"http://127.0.0.1:9\",\"policy\":\"critic\",\"moved_from\":\"default\"}");
    expect(f, "engine remove http://127.0.0.1:9", 0, "removed http://127.0.0.1:9");
    expect(f, "engine list", 0, "no engine is registered");
    expect(f, "status --json", 0, "{\"epoch\":3}\n");
    expect(f, "status", 0, "start number 3");
    expect(f, "metrics --openmetrics", 0, "sluice_epoch 1\n# EOF\n");
    expect(f, "metrics", 0, "sluice_epoch 1\n");
    assert_null(strstr(said(f), "EOF"));
    expect(f, "metrics now", 2, "now");
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
    expect(f, "watch other --cursor c", 1, "c is not a cursor of stream other");
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

static const char two_workers[] = "{\"workers\": [{\"worker\": \"w1\", \"host\": \"here\", \"jobs\": 2},"
                                  " {\"worker\": \"w2\", \"host\": \"there\", \"jobs\": 0}]}";

static void draining_tells_and_waits_until_they_are_gone(void **state)
{
    struct fixture *f = *state;
    fake_set_status(f->broker, two_workers);
    fake_count_done(f->broker, 1);
    expect(f, "drain w1 --grace 90s", 0, "workers told to end: 1\n");
    assert_string_equal(fake_last_options(f->broker), "grace_s=90 is_host=0");
    expect(f, "drain --host here --grace 0s --wait --patience 1s", 1, "still there: 1, with 2 jobs");
    assert_string_equal(fake_last_options(f->broker), "grace_s=0 is_host=1");
    expect(f, "drain w3 --wait", 0, "gone");
    assert_string_equal(fake_last_options(f->broker), "grace_s=- is_host=0");
}

static void what_they_did_is_said_as_json(void **state)
{
    struct fixture *f = *state;
    expect(f, "cancel g/0 --json", 0, "{\"stopped\": 3}\n");
    expect(f, "ack train 41 --json", 0, "{\"stream\": \"train\", \"seq\": 41}\n");
    expect(f, "backup monday --json", 0, "{\"file\": \"backups/monday.db\", \"bytes\": 3}\n");
    fake_add(f->broker, false);
    fake_count_done(f->broker, 0);
    expect(f, "cancel g --json", 0, "{\"stopped\": 0, \"state\": \"ended\"}\n");
    expect(f, "cancel none --json", 0, "{\"stopped\": 0, \"state\": \"unknown\"}\n");
    expect(f, "cancel --stream train --json", 0, "{\"stopped\": 0}\n");
    fake_refuse_one(f->broker, MSG_rollout_get, REFUSAL_NOT_ALLOWED, "not with this key");
    expect(f, "cancel g --json", 0, "{\"stopped\": 0, \"state\": null}\n");
    fake_set_status(f->broker, two_workers);
    fake_count_done(f->broker, 1);
    expect(f, "drain w1 --json", 0, "{\"workers\": 1}\n");
    expect(f, "drain w3 --wait --json", 0, "{\"workers\": 1, \"left\": 0, \"jobs\": 0}\n");
    expect(f, "drain w1 --wait --patience 1s --json", 1, "{\"workers\": 1, \"left\": 1, \"jobs\": 2}\n");
    expect(f, "keys init k", 0, "made k");
    expect(f, "keys add worker node7 --dir k", 0, "hand it to node7");
    expect(f, "keys list --dir k --json", 0, "{\"role\": \"worker\", \"name\": \"node7\", \"key\": \"");
    expect(f, "keys remove node7 --dir k --json", 2, "--json is not for remove");
}

static void a_sampler_is_opened_and_asked_for_batches(void **state)
{
    struct fixture *f = *state;
    expect(f, "sampler open train --groups 4 --trainer t --over-sample 1.5 --json", 0, "{\"batch\":3");
    assert_string_equal(fake_last_options(f->broker),
                        " stream=train trainer=t groups=4 filter=mixed surplus=carry over_sample=1500");
    expect(f, "sampler open train --groups 4 --trainer t", 0, "batch 3; submitted 96: 0 held");
    assert_null(strstr(fake_last_options(f->broker), "over_sample"));
    expect(f, "sample next train --batch 3 --json", 0, "{\"batch\":3}\n"); /* as the command was called before */
    expect(f, "sampler next train --batch 3", 0, "batch 3 of ?:\n");       /* the fake broker says little of it */
    expect(f, "sampler next train --wait 0s", 1, "batch 4 is not full: 1 of 4 groups is ready");
    const unsigned asked = fake_count(f->broker, MSG_sampler_next);
    expect(f, "sampler next train --wait 1s", 1, "batch 4 is not full: 1 of 4 groups is ready");
    assert_true(fake_count(f->broker, MSG_sampler_next) > asked + 1); /* until its time is over, and not once */
    expect(f, "sampler close train --cancel", 0, "closed; rollouts cancelled: 3");
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
        snprintf(json, sizeof(json), "{\"health\": \"%s\", \"reasons\": [\"a\\u001b[2J\", \"b\"]}", cases[i].health);
        snprintf(words, sizeof(words), "health    %s\n          a?[2J\n          b\nbroker ", cases[i].health);
        fake_set_status(f->broker, json);
        expect(f, "status", cases[i].status, words);
        assert_ptr_equal(strstr(said(f), "health "), said(f));
        expect(f, "status --json", cases[i].status, "\"reasons\"");
    }
    fake_set_status(f->broker, "[]");
    expect(f, "status", 1, "the broker's status is not a JSON object");
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
                    " \"faults\": 5, \"retry_in_ms\": 900, \"limit\": 64, \"calls\": 7, \"tokens\": 9000}],"
                    " \"images\": [{\"image\": \"debian\", \"state\": \"trial\", \"faults\": 6}],"
                    " \"clients\": [{\"name\": \"ann\", \"rollouts\": 12, \"results\": 3, \"x\": {}}],"
                    " \"advice\": [\"do something\", 1]}");
    expect(f, "status", 4,
           "lost worker  stage  host  jobs  ago ms  why\nw9?          run    n7    3     1200    "
           "no beat\n");
    assert_non_null(strstr(said(f), "http://e:1  2     open   5       900"));
    assert_non_null(strstr(said(f), "debian           trial  6       -        -\n"));
    assert_non_null(strstr(said(f), "client  rollouts  results\nann     12        3\n"));
    assert_non_null(strstr(said(f), "! do something\n! ?\n"));
}

/* A title, the clipboard, CSI in both its characters, a line turned around, one begun anew. */
static const char spice[] = "\x1b]0;t\x07\x1b]52;c;eA==\x1b\\\xc2\x9b"
                            "2J\xe2\x80\xae\r\b";
static const char spice_shown[] = "?]0;t??]52;c;eA==?\\?2J???";

/* Whether a byte of it is a control to some terminal; of the pieces of longer characters, C1's. */
static void expect_sanitized(const char *text)
{
    for (const char *at = text; *at; at++) {
        const unsigned char c = (unsigned char)*at, next = (unsigned char)at[1];
        if ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7f || (c == 0xc2 && next < 0xa0) ||
            strncmp(at, "\xe2\x80\xae", 3) == 0)
            fail_msg("byte %zu of this is raw: %s", (size_t)(at - text), text);
    }
}

static void expect_said_tame(struct fixture *f, const char *arguments, int status, const char *before)
{
    char words[256];
    snprintf(words, sizeof(words), "%s%s", before, spice_shown);
    expect(f, arguments, status, words);
    expect_sanitized(said(f));
}

static void a_detail_of_several_lines_is_quoted(void **state)
{
    struct fixture *f = *state;
    fake_spice(f->broker, "Traceback:\nno\n");
    fake_add(f->broker, true);
    expect(f, "show g/0", 0, "reward    0\n  | Traceback:\n  | no\ntime ");
}

static void nothing_of_others_steers_the_terminal(void **state)
{
    struct fixture *f = *state;
    fake_spice(f->broker, spice);
    fake_add(f->broker, true);
    expect_said_tame(f, "watch train --count 1", 0, "5 ms  ");
    expect_said_tame(f, "show g/0", 0, "task add");
    for (size_t i = 0; i < 5; i++) {
        static const char *const before[] = {"reward    0 (", "\nengine    ", "\n  | 2", "\ntool bash", ", version "};
        char words[128];
        snprintf(words, sizeof(words), "%s%s", before[i], spice_shown);
        if (!strstr(said(f), words))
            fail_msg("no '%s' in %s", words, said(f));
    }
    fake_refuse_one(f->broker, MSG_rollout_get, REFUSAL_NOT_ALLOWED, spice);
    expect_said_tame(f, "show g/0", 1, "sluice: ");
    fake_count_done(f->broker, 0);
    fake_refuse_one(f->broker, MSG_rollout_get, REFUSAL_NOT_ALLOWED, spice);
    expect_said_tame(f, "cancel g", 0, "cannot be said: ");
    fake_warn(f->broker, spice);
    write_file("tasks", "{\"task\": \"t\\u202e\\u009b\", \"prompt\": \"p\"}\n");
    expect_said_tame(f, "submit tasks --stream train", 0, "warning: ");
    write_file("bad", "{\"task\": \"t\", \"prompt\": \"p\", \"\\u001b[2J\\u009b\": 1}\n");
    assert_int_not_equal(run(f, "submit bad --stream train"), 0);
    expect_sanitized(said(f));
}

static void a_status_steers_no_terminal(void **state)
{
    static const char all[] = "{\"health\": \"@\", \"reasons\": [\"@\"], \"store\": {\"state\": \"@\"}, \"advice\": "
                              "[\"@\"],"
                              " \"engines\": [{\"url\": \"@\", \"state\": \"@\"}], \"streams\": [{\"name\": \"@\", "
                              "\"owner\": \"@\"}],"
                              " \"stages\": {\"@\": {\"queued\": 1}}, \"clients\": [{\"name\": \"@\", \"@\": 1}]}";
    static const char escaped[] = "\\u001b[2J\xc2\x9b\xe2\x80\xae";
    struct fixture *f = *state;
    AUTO_BUFFER json = {0};
    for (const char *at = all; *at; at++)
        buffer_append(&json, *at == '@' ? escaped : at, *at == '@' ? strlen(escaped) : 1);
    buffer_append(&json, "", 1);
    fake_set_status(f->broker, (const char *)json.data);
    expect(f, "status", 0, "health    ?[2J??\n          ?[2J??\n");
    expect_sanitized(said(f));
    expect(f, "engine list", 0, "?[2J??  0 rollouts");
    expect_sanitized(said(f));
    expect(f, "status --json", 0, "\"health\": \"\\u001b[2J\\u009b\\u202e\"");
    expect_sanitized(said(f));
    json_t *given = json_loads((const char *)json.data, 0, NULL), *got = json_loads(said(f), 0, NULL);
    assert_non_null(given);
    assert_true(json_equal(given, got));
    json_decref(given);
    json_decref(got);
}

static void json_of_a_trajectory_is_exact_and_steers_no_terminal(void **state)
{
    static const char *const commands[] = {"show g/0 --json", "watch train --count 1 --json"};
    struct fixture *f = *state;
    fake_spice(f->broker, spice);
    fake_add(f->broker, true);
    for (size_t i = 0; i < 2; i++) {
        json_error_t error;
        assert_int_equal(run(f, commands[i]), 0);
        expect_sanitized(said(f));
        json_t *json = json_loads(said(f), 0, &error);
        if (!json)
            fail_msg("%s: %s", error.text, said(f));
        assert_string_equal(json_string_value(json_object_get(json, "detail")), spice);
        const json_t *told = json_array_get(json_object_get(json, "messages"), 2);
        assert_string_equal(json_string_value(json_object_get(told, "content")) + strlen("out"), spice);
        assert_string_equal(json_string_value(json_object_get(told, "tool")) + strlen("bash"), spice);
        json_decref(json);
    }
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
    expect(f, "", 0,
           "hello/0: ok, 3 tokens, 2 of them sampled, reward 0\n"
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
        CASE(watching_what_nobody_submitted_to_says_so),
        CASE(show_prints_what_was_said),
        CASE(what_they_did_is_said_as_json),
        CASE(a_sampler_is_opened_and_asked_for_batches),
        CASE(list_says_where_rollouts_are_and_how_they_ended),
        CASE(the_small_commands_do_what_they_say),
        CASE(the_exit_status_of_status_is_the_health),
        CASE(status_shows_what_is_lost_and_set_aside_and_passes_over_what_it_does_not_know),
        CASE(a_detail_of_several_lines_is_quoted),
        CASE(nothing_of_others_steers_the_terminal),
        CASE(a_status_steers_no_terminal),
        CASE(json_of_a_trajectory_is_exact_and_steers_no_terminal),
        CASE(hello_is_a_whole_trainer),
        CASE(the_page_of_the_command_line_is_the_tables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
