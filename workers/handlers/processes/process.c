#include "workers/handlers/processes/process.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/base/log.h"
#include "common/base/text.h"
#include "workers/handlers/processes/launch.h"
#include "common/loop/loop_now.h"

static void start(void *arg);

int handler_spec_parse(const char *text, struct handler_spec *ret, struct fail *fail)
{
    static const char json[] = "json:";
    const char *equals = strchr(text, '=');
    const struct slice name = slice_of(text, equals ? (size_t)(equals - text) : 0);
    if (!handler_name_is_valid(name))
        return fail_set(
            fail, -EINVAL,
            "--handler and --hook want NAME=COMMAND with a name of letters, digits, '_', '.' and '-', not '%.100s'",
            text);
    *ret = (struct handler_spec){.command = equals + 1};
    snprintf(ret->name, sizeof(ret->name), "%.*s", SLICE_ARG(name));
    if (strncmp(ret->command, json, strlen(json)) == 0) {
        ret->is_lines = true;
        ret->command += strlen(json);
    }
    return ret->command[0] ? 0 : fail_set(fail, -EINVAL, "--handler or --hook %s= wants a command", ret->name);
}

/* ---- its end -------------------------------------------------------------------------------- */

static void set_timer(struct handler_process *process, int64_t delay_ms, void (*due)(void *arg))
{
    loop_cancel(process->loop, &process->timer);
    if (delay_ms >= 0)
        process->timer = loop_after(process->loop, delay_ms, due, process);
}

static int64_t delay_of(struct handler_process *process)
{
    const bool is_sound = loop_now_ms() - process->started_ms >= HANDLER_LIVED_MS &&
                          process->peer.done > process->done_before;
    process->deaths = is_sound ? 1 : process->deaths + 1;
    int64_t delay_ms = HANDLER_AGAIN_MS;
    for (unsigned i = 1; i < process->deaths && delay_ms < HANDLER_AGAIN_MAX_MS; i++)
        delay_ms *= 2;
    return delay_ms < HANDLER_AGAIN_MAX_MS ? delay_ms : HANDLER_AGAIN_MAX_MS;
}

/* The first reason stays. */
static void say_why(struct handler_process *process, const char *why)
{
    if (!process->why[0])
        snprintf(process->why, sizeof(process->why), "%.*s", SLICE_ARG(text_cut(why, sizeof(process->why) - 1)));
    text_sanitize(process->why);
}

static void lose_jobs(struct handler_process *process)
{
    char words[sizeof(process->why) + HANDLER_NAME_MAX + 32];
    snprintf(words, sizeof(words), "the handler %s: %s", process->spec->name, process->why);
    process->lost += process->peer.jobs.count;
    peer_close(&process->peer, words);
}

/* It is no more, and was reaped, or did not start. */
static void died(struct handler_process *process)
{
    lose_jobs(process);
    said_close(&process->said);
    process->state = HANDLER_DOWN;
    set_timer(process, -1, NULL);
    if (!process->is_stopping) {
        const int64_t delay_ms = delay_of(process);
        log_event(LOG_WARN, "handler.died", "handler=%s why=\"%s\" jobs=%zu action=started-again in_ms=%lld",
                  process->spec->name, process->why, process->lost, (long long)delay_ms);
        set_timer(process, delay_ms, start);
    }
    process->changed(process->arg);
}

static void describe_status(int status, char *text, size_t size)
{
    if (!WIFEXITED(status))
        snprintf(text, size, "its supervisor was killed by signal %d", WTERMSIG(status));
    else if (WEXITSTATUS(status) > 128)
        snprintf(text, size, "it was killed by signal %d", WEXITSTATUS(status) - 128);
    else
        snprintf(text, size, "it ended with exit status %d", WEXITSTATUS(status));
}

static void forget_pid(struct handler_process *process)
{
    loop_unwatch(process->loop, &process->watch);
    cleanup_close(&process->pidfd);
    process->pidfd = -1;
    process->pid = 0;
}

/* The supervisor has ended, and with it all below it. */
static void exited(void *arg, uint32_t events)
{
    struct handler_process *process = arg;
    char why[96];
    int status = 0;
    (void)events;
    if (waitpid(process->pid, &status, WNOHANG) != process->pid)
        return;
    forget_pid(process);
    if (process->state != HANDLER_ENDING && process->peer.connection.fd >= 0)
        connection_drain(&process->peer.connection); /* what it said last counts */
    describe_status(status, why, sizeof(why));
    say_why(process, why);
    died(process);
}

static void kill_now(struct handler_process *process)
{
    process->state = HANDLER_ENDING;
    if (process->pid > 0)
        kill(process->pid, SIGUSR1);
}

/* It broke the protocol, or is late: its jobs are lost at once. */
static void end(struct handler_process *process, const char *why)
{
    say_why(process, why);
    lose_jobs(process);
    set_timer(process, -1, NULL);
    kill_now(process);
    process->changed(process->arg);
}

static void closing_due(void *arg)
{
    struct handler_process *process = arg;
    process->timer = NULL;
    end(process, "it closed its socket, and ran on");
}

/* The end of its socket is mostly its own end, of which its exit status tells more. */
static void broken(void *arg, enum connection_break how, const char *why)
{
    struct handler_process *process = arg;
    if (process->state == HANDLER_ENDING || process->state == HANDLER_DOWN)
        return;
    if (how != CONNECTION_CLOSED || process->pid == 0) {
        end(process, why);
        return;
    }
    process->state = HANDLER_ENDING;
    set_timer(process, HANDLER_CLOSING_MS, closing_due);
    process->changed(process->arg);
}

/* ---- its beginning ---------------------------------------------------------------------------- */

static void hello_due(void *arg)
{
    struct handler_process *process = arg;
    char why[64];
    snprintf(why, sizeof(why), "it sent no handler.hello within %.1f s", (double)process->hello_ms / 1000);
    process->timer = NULL;
    end(process, why);
}

static void greeted(void *arg)
{
    struct handler_process *process = arg;
    if (process->state != HANDLER_STARTING)
        return;
    process->state = HANDLER_READY;
    process->why[0] = '\0';
    set_timer(process, -1, NULL);
    log_event(LOG_INFO, "handler.ready", "handler=%s pid=%d offers=%zu", process->spec->name, (int)process->pid,
              process->peer.offers.count);
    process->changed(process->arg);
}

/* Takes the launched process; -1 where it cannot be watched. */
static int watch(struct handler_process *process, const struct launched *launched)
{
    process->pid = launched->pid;
    process->pidfd = (int)syscall(SYS_pidfd_open, launched->pid, 0);
    process->watch = process->pidfd < 0 ? NULL : loop_watch(process->loop, process->pidfd, EPOLLIN, exited, process);
    process->peer.greeted = greeted;
    process->peer.broken = broken;
    process->peer.arg = process;
    const bool says = said_open(&process->said, process->loop, launched->said, process->spec->name);
    const bool speaks = peer_open(&process->peer, process->loop, launched->socket, launched->input,
                                  process->spec->is_lines);
    return process->watch && says && speaks ? 0 : -1;
}

static void start(void *arg)
{
    struct handler_process *process = arg;
    struct fail fail;
    struct launched launched;
    process->timer = NULL;
    process->why[0] = '\0';
    process->started_ms = loop_now_ms();
    process->done_before = process->peer.done;
    process->lost = 0;
    if (handler_launch(process->program, process->spec, process->stage, &launched, &fail) < 0) {
        say_why(process, fail.text);
        died(process);
        return;
    }
    process->state = HANDLER_STARTING;
    if (watch(process, &launched) == 0) {
        set_timer(process, process->hello_ms, hello_due);
        return;
    }
    say_why(process, "out of memory or descriptors");
    kill(process->pid, SIGUSR1);
    waitpid(process->pid, NULL, 0);
    forget_pid(process);
    died(process);
}

void handler_process_start(struct handler_process *process)
{
    process->pidfd = process->said.fd = process->peer.connection.fd = -1;
    set_timer(process, 0, start);
}

/* ---- at the worker's end ----------------------------------------------------------------------- */

static void kill_due(void *arg)
{
    struct handler_process *process = arg;
    process->timer = NULL;
    kill_now(process);
}

static void term_due(void *arg)
{
    struct handler_process *process = arg;
    process->timer = NULL;
    if (process->pid > 0)
        kill(process->pid, SIGTERM);
    set_timer(process, HANDLER_KILL_MS - HANDLER_TERM_MS, kill_due);
}

void handler_process_stop(struct handler_process *process)
{
    if (process->is_stopping)
        return;
    process->is_stopping = true;
    say_why(process, "the worker ends");
    lose_jobs(process);
    set_timer(process, -1, NULL);
    if (process->pid > 0)
        set_timer(process, HANDLER_TERM_MS, term_due);
    process->state = process->pid > 0 ? HANDLER_ENDING : HANDLER_DOWN;
    process->changed(process->arg);
}

void handler_process_finish(struct handler_process *process)
{
    process->is_stopping = true;
    say_why(process, "the worker ends");
    lose_jobs(process);
    set_timer(process, -1, NULL);
    if (process->pid > 0) {
        kill(process->pid, SIGUSR1);
        waitpid(process->pid, NULL, 0);
        forget_pid(process);
    }
    said_close(&process->said);
}
