/* The command line itself, and `sluice submit`. */
#include <netinet/in.h>
#include <sys/socket.h>

#include "client/sluice.h"
#include "common/base/cleanup.h"
#include "tests/client/cli/cli_world.h"

static const char two_tasks[] = "{\"task\":\"one\",\"kind\":\"noop\"}\n"
                                "\n"
                                "{\"task\":\"two\",\"kind\":\"noop\",\"samples\":3}\n";

/* ---- the command line ---------------------------------------------------------------------- */

static void a_wrong_command_line_is_exit_two_and_says_what(void **state)
{
    static const struct {
        const char *arguments, *words;
    } cases[] = {
        {"", "usage: sluice COMMAND"},
        {"frob", "there is no command 'frob' (see sluice --help)"},
        {"--broker tcp://a:1 status", "'--broker' is not a command: options come after the command"},
        {"submit", "--stream NAME is missing (see sluice submit --help)"},
        {"submit --stream train", "TASKS is missing"},
        {"submit a b --stream train", "'b' is one argument too many"},
        {"submit a --stream", "--stream wants NAME"},
        {"submit a --stream s --samples 0", "--samples wants a number from 1 to 1024, not '0'"},
        {"submit a --stream s --samples 1025", "--samples wants a number from 1 to 1024"},
        {"submit a --stream s --samples=-1", "--samples wants a number from 1 to 1024, not '-1'"},
        {"submit a --stream s --samples 3x", "not '3x'"},
        {"submit a --stream s --wait=yes", "--wait takes no value"},
        {"submit a --stream s --frob", "there is no option --frob"},
        {"submit a --stream s --out x", "--out writes what --wait waits for: add --wait"},
        {"cancel", "say either ROLLOUT, GROUP or --stream NAME"},
        {"cancel g --stream s", "say either ROLLOUT, GROUP or --stream NAME"},
        {"engine", "say which of these: add URL | check URL | drain URL | list | remove URL"},
        {"engine frob", "'frob' is not one of add, check, drain, list, remove"},
        {"engine add", "add wants URL"},
        {"engine add ftp://a.example:21",
         "'ftp://a.example:21' is not a base URL such as http://gpu1:8000: it begins with"},
        {"engine add http://h:0",
         "'http://h:0' is not a base URL such as http://gpu1:8000: its port is not from 1 to 65535"},
        {"engine add http://h:99999", "its port is not from 1 to 65535"},
        {"engine add http://[::1", "the '[' of its host is not closed"},
        {"engine add http://h/#x", "it has a fragment"},
        {"engine check http://u:SECRET@h:0", "'h:0' is not a base URL"},
        {"up --engine gpu1:8000",
         "--engine gpu1:8000: that is not a base URL: it begins with neither http:// nor https://"},
        {"up --engine http://u:SECRET@h?x", "--engine h?x: that is not a base URL: it has a query"},
        {"up --llm gpu1:8000", "--engine gpu1:8000: that is not a base URL"}, /* as the option was called before */
        {"engine list x", "'x' is one argument too many"},
        {"up --front 40000", "--front wants a number from 1 to 32765"},
        {"up --broker tcp://a:1", "say --bind and --front, not --broker"},
        {"policy", "say which of these: set VERSION | pause | resume"},
        {"policy frob", "'frob' is not one of set, pause, resume (see"},
        {"policy set", "set wants VERSION"},
        {"policy set 7 --bound 5m", "--bound is not for set"},
        {"engine remov http://h:1", "did you mean 'remove'?"},
        {"engine drain http://h:1 --runs-max 3", "--runs-max is not for drain"},
        {"keys list k --dir k", "the directory is said twice: 'k' and --dir"},
        {"policy pause --bound 2h", "--bound"},
        {"watch", "STREAM is missing"},
        {"submit a --stream s --priority 10", "--priority wants a number from 0 to 9, not '10'"},
        {"submit a --stream s --lease 600", "--lease wants a time from 1s to 7d, such as 90s"},
        {"submit a --stream s --lease 8d", "not '8d'"},
        {"submit a --stream s --lease 1x", "not '1x'"},
        {"submit a --stream s --lease -1s", "not '-1s'"},
        {"submit a --stream s --lease 1h2", "not '1h2'"},
        {"submit a --stream s --lease forever", "not 'forever'"},
        {"submit a --stream s --patience 213503982335d", "not '213503982335d'"},
        {"submit a --stream s --patience 99999999999999999999d", "--patience wants a time from 0s to"},
        {"ack train", "STREAM SEQ is missing"},
        {"ack train 0", "SEQ wants a number from 1 on, not '0'"},
        {"ack train x", "SEQ wants a number from 1 on, not 'x'"},
        {"drain", "say either WORKER or --host HOST"},
        {"drain w --host h", "say either WORKER or --host HOST"},
        {"drain w --grace 2d", "--grace wants a time from 0s to 1d"},
        {"backup", "NAME is missing"},
        {"backup a/b", "NAME wants a name, without a '/', a blank or a control character, not 'a/b'"},
        {"policy set a/b", "VERSION wants a name, without a '/'"},
        {"policy pause --calls frob", "--calls wants finish|abort|hold, not 'frob'"},
        {"submit a --stream 'a b'", "--stream wants a name, without a '/', a blank or a control character, not 'a b'"},
        {"submit a --stream s --versions-behind 1 --on-stale bogus", "--on-stale wants stop|refresh|mark, not 'bogus'"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        expect(*state, cases[i].arguments, 2, cases[i].words);
}

static void every_command_teaches(void **state)
{
    static const char *const names[] = {"up",     "submit", "watch", "show",  "status",
                                        "cancel", "engine", "ack",   "drain", "backup"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        char arguments[64], usage[64];
        snprintf(arguments, sizeof(arguments), "%s --help", names[i]);
        snprintf(usage, sizeof(usage), "usage: sluice %s", names[i]);
        expect(*state, arguments, 0, usage);
        assert_non_null(strstr(said(*state), "--broker URL"));
        assert_non_null(strstr(said(*state), "for example\n  sluice "));
    }
    expect(*state, "doctor --help", 0, "usage: sluice doctor [--json]");
    expect(*state, "--help", 0, "to begin");
    expect(*state, "--version", 0, "sluice " SLUICE_VERSION "\n");
    expect(*state, "status --version", 0, "sluice " SLUICE_VERSION "\n");
}

static bool somebody_listens(uint16_t port)
{
    const struct sockaddr_in place = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    AUTO_CLOSE int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return connect(fd, (const struct sockaddr *)&place, sizeof(place)) == 0;
}

static void no_broker_is_exit_one_and_says_what_to_do(void **state)
{
    expect(*state, "status --broker tcp://127.0.0.1:9", 1,
           "sluice: no broker answers at tcp://127.0.0.1:9: is it up, and is this its FRONT?\n");
    if (!somebody_listens(5750))
        expect(*state, "status --broker tcp://127.0.0.1:5750", 1,
               "sluice: no broker answers at tcp://127.0.0.1:5750: start one with 'sluice up'\n");
    expect(*state, "status --broker nowhere", 1, "'nowhere' is not a broker's URL: say tcp://HOST:PORT");
}

static void what_cannot_be_written_is_exit_one_and_said(void **state)
{
    struct fixture *f = *state;
    write_file("tasks.jsonl", two_tasks);
    fake_set_status(f->broker, "{\"health\": \"healthy\"}");
    static const char *const commands[] = {"status", "submit tasks.jsonl --stream train", "help status"};
    for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++) {
        char command[128];
        snprintf(command, sizeof(command), "%s >/dev/full 2>said #", commands[i]);
        assert_int_equal(run(f, command), 1);
        char *words = read_file("said");
        assert_string_equal(words, "sluice: not everything could be written to stdout\n");
        free(words);
    }
}

/* ---- submit ---------------------------------------------------------------------------------- */

static void one_bad_line_and_nothing_is_submitted(void **state)
{
    struct fixture *f = *state;
    write_file("tasks.jsonl", "{\"task\":\"good\",\"kind\":\"noop\"}\n"
                              "{\"task\":\"bad\",\"kind\":\"frob\"}\n"
                              "\n"
                              "{\"task\":\"cut\n"
                              "{\"task\":\"bad\",\"kind\":\"noop\",\"frob\":1}\n"
                              "[]\n"
                              "{\"task\":\"bad\",\"kind\":\"noop\",\"samples\":0}\n"
                              "{\"task\":\"bad\"}\n"
                              "{\"task\":\"bad\",\"kind\":\"noop\",\"files\":[{\"path\":\"../x\",\"text\":\"\"}]}\n");
    expect(f, "submit tasks.jsonl --stream train", 1, "sluice: 7 of 8 lines are not tasks; nothing was submitted");
    assert_non_null(strstr(said(f), "tasks.jsonl:2: kind: "));
    assert_non_null(strstr(said(f), "tasks.jsonl:4: "));
    assert_non_null(strstr(said(f), "tasks.jsonl:5: frob: "));
    assert_non_null(strstr(said(f), "tasks.jsonl:6: "));
    assert_non_null(strstr(said(f), "tasks.jsonl:7: samples: is 0; the minimum is 1\n"));
    assert_non_null(strstr(said(f), "tasks.jsonl:8: prompt: is missing"));
    assert_non_null(strstr(said(f), "tasks.jsonl:9: files[0].path: "));
    assert_null(strstr(said(f), "tasks.jsonl:1:"));
    assert_int_equal(fake_count(f->broker, MSG_group_submit), 0);
    expect(f, "submit none.jsonl --stream train", 1, "cannot read none.jsonl: No such file");
    write_file("empty.jsonl", "\n");
    expect(f, "submit empty.jsonl --stream train", 1, "there is no task in empty.jsonl");
}

static void a_byte_order_mark_before_the_first_line_is_passed_over(void **state)
{
    struct fixture *f = *state;
    write_file("tasks.jsonl", "\xef\xbb\xbf{\"task\":\"good\",\"kind\":\"noop\"}\n");
    expect(f, "submit tasks.jsonl --stream train", 0, "1 of 1 groups accepted");
    write_file("tasks.jsonl",
               "{\"task\":\"good\",\"kind\":\"noop\"}\n\xef\xbb\xbf{\"task\":\"bad\",\"kind\":\"noop\"}\n");
    expect(f, "submit tasks.jsonl --stream train", 1, "1 of 2 lines are not tasks");
}

static void a_file_submitted_again_is_the_same_groups(void **state)
{
    struct fixture *f = *state;
    write_file("tasks.jsonl", two_tasks);
    expect(f, "submit tasks.jsonl --stream train", 0, "2 of 2 groups accepted (4 rollouts) for stream train\n");
    expect(f, "submit tasks.jsonl --stream train", 0,
           "2 of 2 groups accepted (4 rollouts) for stream train; 2 of them the broker had already");
    assert_int_equal(fake_groups(f->broker), 2);
    expect(f, "submit tasks.jsonl --stream other", 0, "2 of 2 groups accepted (4 rollouts)");
    expect(f, "submit tasks.jsonl --stream train --samples 2", 0, "(4 rollouts) for stream train\n");
    assert_int_equal(fake_groups(f->broker), 6);
    expect(f, "submit - --stream train --json < tasks.jsonl", 0, "{\"group\": \"stdin-two-");
}

static void a_line_that_stands_there_twice_is_two_groups(void **state)
{
    struct fixture *f = *state;
    write_file("tasks.jsonl", "{\"task\":\"one\",\"kind\":\"noop\"}\n{\"task\":\"one\",\"kind\":\"noop\"}\n");
    expect(f, "submit tasks.jsonl --stream train", 0, "2 of 2 groups accepted (2 rollouts)");
    assert_int_equal(fake_groups(f->broker), 2);
    expect(f, "submit tasks.jsonl --stream train", 0, "; 2 of them the broker had already");
    assert_int_equal(fake_groups(f->broker), 2);
}

static void waiting_ends_with_a_table_and_the_trajectories(void **state)
{
    struct fixture *f = *state;
    write_file("tasks.jsonl", two_tasks);
    fake_add_many(f->broker, 5, 100); /* of others, before */
    fake_finish_at_once(f->broker, true);
    expect(f, "submit tasks.jsonl --stream train --samples 4 --wait --out out.jsonl", 0,
           "8 of 8 rollouts have ended, mean reward 0.500");
    assert_non_null(strstr(said(f), "task  group"));
    assert_non_null(strstr(said(f), "4 ok      0 1 0 1"));
    char *lines = read_file("out.jsonl");
    size_t count = 0;
    for (const char *at = lines; (at = strchr(at, '\n')); at++)
        count++;
    assert_int_equal(count, 8);
    assert_non_null(strstr(lines, "\"reward\": 1, "));
    assert_non_null(strstr(lines, "\"token_ids\": [101, 102, 103], \"mask\": [0, 1, 1], "
                                  "\"logprobs\": [0, -0.5, -0.25]"));
    free(lines);
    /* All had ended before this one began. */
    expect(f, "submit tasks.jsonl --stream train --samples 4 --wait --json", 0,
           "\"samples\": 4, \"mean_reward\": 0.5, \"rollouts\": [{\"rollout\": \"tasks-");
    assert_non_null(strstr(said(f), "/1\", \"outcome\": \"ok\", \"trainable\": true, \"reward\": 1}, {"));
    assert_null(strstr(said(f), "rollouts have ended"));
}

static void a_full_broker_is_waited_for(void **state)
{
    struct fixture *f = *state;
    write_file("tasks.jsonl", two_tasks);
    fake_be_full(f->broker, 3);
    fake_finish_at_once(f->broker, true);
    expect(f, "submit tasks.jsonl --stream train --wait", 0, "too many are queued");
    assert_non_null(strstr(said(f), "4 of 4 rollouts have ended"));
    assert_int_equal(fake_groups(f->broker), 2);
}

static void one_refused_for_good_beside_a_full_broker_is_exit_one(void **state)
{
    struct fixture *f = *state;
    write_file("tasks.jsonl", two_tasks);
    expect(f, "submit tasks.jsonl --stream train --json", 0, "\"task\": \"two\"");
    char *second = strstr(strchr(said(f), '\n'), "tasks-two-"), name[97];
    snprintf(name, sizeof(name), "%.*s", (int)strcspn(second, "\""), second);
    fake_stop(&f->broker);
    f->broker = fake_start();
    setenv("SLUICE_BROKER", fake_url(f->broker), 1);
    struct sluice_client *client = sluice_connect(NULL);
    assert_int_equal(sluice_submit(client, name, "train", 1, "{\"task\":\"other\"}"), 0);
    fake_be_full(f->broker, 1);
    expect(f, "submit tasks.jsonl --stream train", 1, "sluice: the name is taken");
    sluice_close(&client);
}

static void what_an_earlier_command_wrote_stays_while_no_broker_answers(void **state)
{
    struct fixture *f = *state;
    write_file("tasks.jsonl", two_tasks);
    write_file("out.jsonl", "dear\n");
    expect(f, "submit tasks.jsonl --stream train --wait --out out.jsonl --broker tcp://127.0.0.1:9", 1,
           "no broker answers");
    char *kept = read_file("out.jsonl");
    assert_string_equal(kept, "dear\n");
    free(kept);
}

static void a_refusal_that_waiting_cannot_help_is_exit_one(void **state)
{
    struct fixture *f = *state;
    write_file("tasks.jsonl", "{\"task\":\"one\",\"kind\":\"noop\"}\n");
    fake_be_full(f->broker, 1);
    expect(f, "submit tasks.jsonl --stream train", 0, "1 of 1 groups accepted");
    expect(f, "submit tasks.jsonl --stream train --wait --out /nowhere/x", 1, "cannot write /nowhere/x: No such file");
}

static void priority_and_lease_go_with_every_group(void **state)
{
    struct fixture *f = *state;
    write_file("tasks.jsonl", two_tasks);
    expect(f, "submit tasks.jsonl --stream train --priority 0 --lease 1h30m", 0, "2 of 2 groups");
    assert_string_equal(fake_last_options(f->broker), "priority=0 lease_ms=5400000");
    expect(f, "submit tasks.jsonl --stream train", 0, "2 of 2 groups");
    assert_string_equal(fake_last_options(f->broker), "priority=5 lease_ms=-");
}

static void a_warning_is_said_once(void **state)
{
    struct fixture *f = *state;
    write_file("tasks.jsonl", two_tasks);
    fake_warn(f->broker, "87 % of the rollouts that fit are live");
    expect(f, "submit tasks.jsonl --stream train", 0, "sluice: warning: 87 % of the rollouts that fit are live\n");
    const char *first = strstr(said(f), "warning");
    assert_null(strstr(first + 1, "warning"));
}

static void a_broker_that_stays_full_is_exit_one_after_patience(void **state)
{
    struct fixture *f = *state;
    write_file("tasks.jsonl", two_tasks);
    fake_be_full(f->broker, 1000000);
    expect(f, "submit tasks.jsonl --stream train --patience 200ms", 1, "sluice: too many are queued");
    assert_non_null(strstr(said(f), "0 of 2 groups accepted"));
    fake_be_full(f->broker, 0);
    fake_refuse_for_good(f->broker, REFUSAL_QUEUE_FULL, "more than ever fits");
    expect(f, "submit tasks.jsonl --stream train", 1, "sluice: more than ever fits");
    assert_null(strstr(said(f), "groups wait"));
}

static void waiting_renews_the_lease(void **state)
{
    struct fixture *f = *state;
    write_file("tasks.jsonl", two_tasks);
    fake_be_full(f->broker, 5);
    fake_finish_at_once(f->broker, true);
    expect(f, "submit tasks.jsonl --stream train --lease 10m --wait", 0, "4 of 4 rollouts have ended");
    assert_true(fake_count(f->broker, MSG_stream_renew) >= 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_wrong_command_line_is_exit_two_and_says_what),
        CASE(every_command_teaches),
        CASE(no_broker_is_exit_one_and_says_what_to_do),
        CASE(what_cannot_be_written_is_exit_one_and_said),
        CASE(one_bad_line_and_nothing_is_submitted),
        CASE(a_byte_order_mark_before_the_first_line_is_passed_over),
        CASE(a_file_submitted_again_is_the_same_groups),
        CASE(a_line_that_stands_there_twice_is_two_groups),
        CASE(waiting_ends_with_a_table_and_the_trajectories),
        CASE(a_full_broker_is_waited_for),
        CASE(one_refused_for_good_beside_a_full_broker_is_exit_one),
        CASE(what_an_earlier_command_wrote_stays_while_no_broker_answers),
        CASE(a_refusal_that_waiting_cannot_help_is_exit_one),
        CASE(priority_and_lease_go_with_every_group),
        CASE(a_warning_is_said_once),
        CASE(a_broker_that_stays_full_is_exit_one_after_patience),
        CASE(waiting_renews_the_lease),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
