/* session.c - `sluice session`: a rollout whose loop is elsewhere (docs/sessions.md). */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "client/cli/command.h"
#include "client/cli/session/session_post.h"
#include "client/cli/connect.h"
#include "client/json/json.h"
#include "client/cli/print/print.h"
#include "client/cli/submit/tasks_file.h"
#include "common/base/cleanup.h"
#include "common/base/sanitize.h"

enum { LOOK_MS = 1000 };

struct session_options {
    const char *stream, *group, *reward, *detail, *cacert;
    bool json;
};

/* ---- open: until it has ended ------------------------------------------------------------------- */

static volatile sig_atomic_t is_interrupted;

static void interrupt(int signal)
{
    (void)signal;
    is_interrupted = 1;
}

struct shown {
    struct sluice_client *client;
    const struct session_options *options;
    char rollout[GROUP_NAME_SIZE + 2];
    char why[1025];   /* said last */
    uint64_t attempt; /* of the URL that was said last; 0: none was */
};

static void say_url(struct shown *shown, const struct sluice_session *session)
{
    if (shown->attempt > 0)
        cli_say("the session of attempt %llu is lost, and so is its conversation: begin again at the next URL",
                (unsigned long long)shown->attempt);
    shown->attempt = session->attempt;
    if (shown->options->json) {
        json_t *object = json_pack("{s:s, s:s, s:I}", "rollout", shown->rollout, "url", session->url, "attempt",
                                   (json_int_t)session->attempt);
        AUTO_FREE char *line = json_dumps(object, JSON_COMPACT);
        json_decref(object);
        printf("%s\n", line ? line : "{}");
    } else {
        sanitize_print(stdout, "%s\n", session->url);
    }
    fflush(stdout);
}

static void say_why(struct shown *shown, const char *why)
{
    if (!*why || strcmp(why, shown->why) == 0)
        return;
    snprintf(shown->why, sizeof(shown->why), "%s", why);
    cli_say("%s waits: %s", shown->rollout, why);
}

static int say_end(struct shown *shown)
{
    const struct sluice_trajectory *t;
    const char *state;
    char reward[32];
    if (sluice_get(shown->client, shown->rollout, &t, &state))
        return cli_failed(shown->client);
    if (!t)
        return -1; /* it is evaluated */
    print_reward(t, reward, sizeof(reward));
    if (shown->options->json)
        json_trajectory(stdout, t);
    else
        sanitize_print(stdout, "%s ended %s, reward %s (%s)\n", shown->rollout, t->outcome,
                       t->has_reward ? reward : "none", t->detail);
    return t->trainable ? EXITS_OK : EXITS_UNTRAINABLE;
}

static int cancel(struct shown *shown)
{
    cli_say("%s is cancelled", shown->rollout);
    return sluice_cancel(shown->client, shown->rollout, NULL, NULL, NULL) ? cli_failed(shown->client) : EXITS_FAILED;
}

static int follow(struct shown *shown)
{
    for (;;) {
        struct sluice_session session;
        const int failed = sluice_session_get(shown->client, shown->rollout, shown->attempt, LOOK_MS, &session);
        if (is_interrupted)
            return cancel(shown);
        const int status = failed == -ENODATA ? say_end(shown) : failed ? cli_failed(shown->client) : -1;
        if (status >= 0)
            return status;
        if (!failed && session.url)
            say_url(shown, &session);
        else if (!failed && shown->attempt == 0)
            say_why(shown, session.why);
    }
}

static void make_name(char ret[GROUP_NAME_SIZE])
{
    uint32_t random[2] = {0};
    (void)!getrandom(random, sizeof(random), 0); /* so few bytes are always given */
    snprintf(ret, GROUP_NAME_SIZE, "session-%08x%08x", random[0], random[1]);
}

static int submit(const struct invocation *in, const struct task_line *line, struct shown *shown)
{
    char made[GROUP_NAME_SIZE];
    const struct sigaction on_interrupt = {.sa_handler = interrupt};
    const char *group = shown->options->group ? shown->options->group : made;
    make_name(made);
    if (!cli_is_name(in->command, "--group", group) || !cli_is_name(in->command, "--stream", shown->options->stream))
        return EXITS_USAGE;
    snprintf(shown->rollout, sizeof(shown->rollout), "%s/0", group);
    AUTO_CLIENT *client = cli_connect(in);
    shown->client = client;
    if (!client)
        return EXITS_FAILED;
    if (sluice_submit(client, group, shown->options->stream, 1, line->json))
        return cli_failed(client);
    sigaction(SIGINT, &on_interrupt, NULL);
    sigaction(SIGTERM, &on_interrupt, NULL);
    return follow(shown);
}

/* Of any other kind there would be a rollout, and never a URL. */
static bool is_of_session(const struct task_line *line)
{
    json_t *task = json_loads(line->json, 0, NULL);
    const char *kind = json_string_value(json_object_get(json_object_get(task, "agent"), "kind"));
    const bool is_of = kind && strcmp(kind, "session") == 0;
    if (!is_of)
        cli_say("a session's task has the agent.kind session, and this one's is %s", kind ? kind : "not said");
    json_decref(task);
    return is_of;
}

static int run_open(const struct invocation *in)
{
    struct tasks_file tasks = {0};
    struct shown shown = {.options = in->options};
    int status = EXITS_FAILED;
    if (tasks_read(&tasks, in->arguments[0], 1) && tasks.bad == 0) {
        if (tasks.count != 1)
            cli_say("%s holds %zu tasks: a session is of one", in->arguments[0], tasks.count);
        else if (is_of_session(&tasks.lines[0]))
            status = submit(in, &tasks.lines[0], &shown);
    }
    tasks_finish(&tasks);
    return status;
}

/* ---- end ---------------------------------------------------------------------------------------- */

static bool read_reward(const char *text, double *ret)
{
    char *end;
    *ret = strtod(text, &end);
    return *text && !*end && isfinite(*ret);
}

static char *body_of(const struct session_options *options, double reward)
{
    json_t *body = json_object();
    if (options->reward)
        json_object_set_new(body, "reward", json_real(reward));
    if (options->detail)
        json_object_set_new(body, "detail", json_string(options->detail));
    char *text = json_dumps(body, JSON_COMPACT | JSON_REAL_PRECISION(17));
    json_decref(body);
    return text;
}

/* The server's sentence; NULL: it said none. */
static const char *words_of(const json_t *answer)
{
    return json_string_value(json_object_get(json_object_get(answer, "error"), "message"));
}

static int run_end(const struct invocation *in)
{
    const struct session_options *options = in->options;
    double reward = 0;
    struct fail fail = {0};
    AUTO_BUFFER said = {0};
    if (options->reward && !read_reward(options->reward, &reward))
        return cli_usage(in->command, "--reward wants a number, not '%s'", options->reward);
    AUTO_FREE char *body = body_of(options, reward);
    const struct session_posted posted = {in->arguments[0], "/end", body, options->cacert};
    const int status = body ? session_post(&posted, &said, &fail) : fail_memory(&fail);
    json_t *answer = said.len ? json_loadb((const char *)said.data, said.len, 0, NULL) : NULL;
    const json_t *counts = json_object_get(answer, "reward");
    int code = EXITS_FAILED;
    if (status < 0)
        cli_say("%s", fail.text);
    else if (status != 200)
        cli_say("%s (HTTP %d)", words_of(answer) ? words_of(answer) : "the session was not ended", status);
    else if (options->reward && (!json_is_number(counts) || json_number_value(counts) != reward))
        cli_say("it had ended before, with another reward or none: that one counts");
    else
        code = EXITS_OK;
    if (options->json && said.len)
        printf("%.*s\n", (int)said.len, (const char *)said.data);
    json_decref(answer);
    return code;
}

static const struct cmdline_verb verbs[] = {{"open", "TASK", run_open}, {"end", "URL", run_end}};

#define PLACE(field) offsetof(struct session_options, field)

static const struct option options[] = {
    {"stream", OPTION_TEXT, PLACE(stream), "NAME", "The stream its trajectory goes to.", .text = "sessions",
     .of = "open"},
    {"group", OPTION_TEXT, PLACE(group), "NAME", "The name of its group.", .standard = "a new one", .of = "open"},
    {"reward", OPTION_TEXT, PLACE(reward), "NUMBER", "The reward, where the task's eval.kind is posted.",
     .standard = "none", .of = "end"},
    {"detail", OPTION_TEXT, PLACE(detail), "TEXT", "Why, in words.", .of = "end"},
    {"cacert", OPTION_TEXT, PLACE(cacert), "FILE",
     "The certificates of authorities, in PEM, that a server of https may be known by.",
     .standard = "$SSL_CERT_FILE, else the system's", .of = "end"},
    {"json", OPTION_FLAG, PLACE(json), NULL,
     "Print JSON: of open a line with the URL, and the trajectory; of end what is answered."},
};

const struct command command_session = {
    COMMAND_LINE("session"),
    .line.verbs = verbs,
    .line.verb_count = ROWS(verbs),
    .line.brief = "Opens a rollout whose loop is elsewhere, and ends it",
    .line.doc =
        "`open` submits the task of a file (- is stdin), whose agent.kind is session, prints the URL at which its\n"
        "loop speaks to the model, and waits until it has ended; Ctrl-C cancels it. Where its worker is lost another\n"
        "URL follows, at which the loop has to begin again. `end` ends the session of a URL. Who knows the URL "
        "samples\n"
        "as that rollout (docs/sessions.md).\n",
    .line.example = "sluice session open task.json\n"
                    "sluice session end http://127.0.0.1:5760/s/SECRET --reward 1\n",
    .line.tables[0] = {.rows = options, .count = ROWS(options)},
    .options_size = sizeof(struct session_options),
};
