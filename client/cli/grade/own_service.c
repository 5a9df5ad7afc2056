#include "client/cli/grade/own_service.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/cli/grade/own_directory.h"
#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/files/dirtree_remove.h"

enum {
    READY_MS = 60000, /* `sluice up` gives up sooner */
    STOP_MS = 60000,  /* so does it when it stops */
    LOG_TAIL_MAX = 65536
};

bool own_service_add(struct own_service *service, const char *option, const char *value)
{
    if (service->option_count + 2 > OWN_SERVICE_OPTIONS_MAX)
        return false;
    service->options[service->option_count++] = option;
    if (value)
        service->options[service->option_count++] = value;
    return true;
}

/* ---- the keeper ------------------------------------------------------------------------------- */

/* Becomes `sluice up`, which stops when the keeper ends. */
static void become_service(const struct own_service *service, int said)
{
    char ipc[sizeof(service->directory) + 8], data[sizeof(service->directory) + 8];
    const char *argv[OWN_SERVICE_OPTIONS_MAX + 12] = {"sluice", "up", "--ipc", ipc, "--with-parent", "--data", data};
    size_t count = 7;
    snprintf(ipc, sizeof(ipc), "%s/s", service->directory);
    snprintf(data, sizeof(data), "%s/data", service->directory);
    if (service->data)
        argv[6] = service->data;
    memcpy(argv + count, service->options, service->option_count * sizeof(*argv));
    unsetenv("SLUICE_STORE"); /* a service's that others use */
    unsetenv("SLUICE_BROKER");
    dup2(said, STDOUT_FILENO);
    execv("/proc/self/exe", (char **)(uintptr_t)argv);
    fprintf(stderr, "sluice: cannot start /proc/self/exe: %s\n", strerror(errno));
    _exit(127);
}

/* Returns when the command has ended or wants no more. */
static void await_end_of_life(int life)
{
    char byte;
    while (read(life, &byte, 1) < 0 && errno == EINTR) {
    }
}

static bool take_log(const struct own_service *service)
{
    AUTO_CLOSE int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    AUTO_CLOSE int log = open(service->log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    return nothing >= 0 && log >= 0 && dup2(nothing, STDIN_FILENO) == STDIN_FILENO &&
           dup2(log, STDOUT_FILENO) == STDOUT_FILENO && dup2(log, STDERR_FILENO) == STDERR_FILENO;
}

static void keep(const struct own_service *service, int life, int said)
{
    setsid(); /* out of reach of what a terminal sends */
    const pid_t up = take_log(service) ? fork() : -1;
    if (up == 0)
        become_service(service, said);
    close(said);
    await_end_of_life(life);
    if (up > 0) {
        kill(up, SIGTERM);
        while (waitpid(up, NULL, 0) < 0 && errno == EINTR) {
        }
    }
    dirtree_remove(service->directory);
    _exit(0);
}

/* ---- its log ------------------------------------------------------------------------------------ */

/* The end of the log. */
static char *read_log(const struct own_service *service)
{
    AUTO_FCLOSE FILE *log = fopen(service->log_path, "re");
    AUTO_FREE char *text = calloc(1, LOG_TAIL_MAX + 1);
    if (!log || !text)
        return NULL;
    if (fseek(log, -LOG_TAIL_MAX, SEEK_END) < 0)
        rewind(log);
    text[fread(text, 1, LOG_TAIL_MAX, log)] = '\0';
    return take_ptr(&text);
}

/* Of the last line that has this, at its start or anywhere: what follows from there. */
static void find_last(const struct own_service *service, const char *words, bool at_start, char *ret, size_t size)
{
    AUTO_FREE char *text = read_log(service);
    char *next = text;
    ret[0] = '\0';
    for (char *line; (line = strsep(&next, "\n"));) {
        const char *found = strstr(line, words);
        const size_t len = strlen(line);
        const bool is_stopping = len >= 8 && strcmp(line + len - 8, "stopping") == 0;
        if (found && (found == line || !at_start) && !is_stopping)
            snprintf(ret, size, "%s", found);
    }
}

/* ---- starting ---------------------------------------------------------------------------------- */

static int make_directory(struct own_service *service, struct fail *fail)
{
    int code = own_directory_make(service->directory, sizeof(service->directory), &service->lock, fail);
    if (code < 0)
        return code;
    snprintf(service->url, sizeof(service->url), "ipc://%s/s/front", service->directory);
    if (service->log)
        snprintf(service->log_path, sizeof(service->log_path), "%s", service->log);
    else
        snprintf(service->log_path, sizeof(service->log_path), "%s/log", service->directory);
    AUTO_CLOSE int log = open(service->log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    return log >= 0 ? 0 : fail_set(fail, -errno, "cannot write %s: %s", service->log_path, strerror(errno));
}

static int start_keeper(struct own_service *service, struct fail *fail)
{
    int life[2] = {-1, -1}, said[2] = {-1, -1};
    if (pipe2(life, O_CLOEXEC) < 0 || pipe2(said, O_CLOEXEC) < 0)
        return fail_set(fail, -errno, "no pipe: %s", strerror(errno));
    fflush(NULL);
    service->keeper = fork();
    if (service->keeper == 0) {
        close(life[1]);
        close(said[0]);
        keep(service, life[0], said[1]);
    }
    close(life[0]);
    close(said[1]);
    service->life = life[1];
    service->said = said[0];
    if (service->keeper > 0)
        return 0;
    service->keeper = 0;
    close(service->life);
    close(service->said);
    return fail_set(fail, -errno, "cannot start a process: %s", strerror(errno));
}

static int fail_in_its_words(const struct own_service *service, struct fail *fail)
{
    char words[sizeof(fail->text) - 64];
    find_last(service, "sluice-", true, words, sizeof(words)); /* a broker or a worker, by its name */
    if (!*words)
        find_last(service, "sluice: ", true, words, sizeof(words));
    return fail_set(fail, -EIO, "the service of this command did not start: %s", *words ? words : "it said nothing");
}

/* It prints a line once all are there. */
static int await_ready(struct own_service *service, struct fail *fail)
{
    const int64_t end_ms = clock_ms() + READY_MS;
    char line[256];
    for (size_t len = 0; len < sizeof(line);) {
        struct pollfd fd = {.fd = service->said, .events = POLLIN};
        const int64_t left_ms = end_ms - clock_ms();
        const int ready = left_ms > 0 ? poll(&fd, 1, (int)left_ms) : 0;
        if (ready < 0)
            return fail_set(fail, -errno, "%s", strerror(errno));
        if (ready == 0)
            return fail_set(fail, -ETIMEDOUT, "the service of this command was not ready within %d s", READY_MS / 1000);
        const ssize_t got = read(service->said, line + len, sizeof(line) - len);
        if (got <= 0)
            return fail_in_its_words(service, fail);
        len += (size_t)got;
        if (memchr(line, '\n', len))
            return 0;
    }
    return fail_in_its_words(service, fail);
}

int own_service_start(struct own_service *service, struct fail *fail)
{
    int code = make_directory(service, fail);
    if (code == 0)
        code = start_keeper(service, fail);
    return code < 0 ? code : await_ready(service, fail);
}

/* ---- while it runs, and its end ---------------------------------------------------------------- */

bool own_service_has_ended(const struct own_service *service)
{
    struct pollfd fd = {.fd = service->said, .events = POLLIN};
    char bytes[256];
    while (poll(&fd, 1, 0) > 0)
        if (read(service->said, bytes, sizeof(bytes)) <= 0)
            return true;
    return false;
}

void own_service_last_event(const struct own_service *service, const char *id, char *ret, size_t size)
{
    find_last(service, id, false, ret, size);
}

/* The service stops with its keeper; a keeper that was killed could not wait for it. */
static void await_end_of_service(const struct own_service *service)
{
    const int64_t end_ms = clock_ms() + STOP_MS;
    struct pollfd fd = {.fd = service->said, .events = POLLIN};
    for (int64_t left_ms; !own_service_has_ended(service) && (left_ms = end_ms - clock_ms()) > 0;)
        poll(&fd, 1, (int)left_ms);
}

void own_service_stop(struct own_service *service)
{
    if (service->keeper > 0) {
        close(service->life);
        while (waitpid(service->keeper, NULL, 0) < 0 && errno == EINTR) {
        }
        await_end_of_service(service);
        close(service->said);
    }
    if (*service->directory && access(service->directory, F_OK) == 0)
        dirtree_remove(service->directory);
    if (service->lock > 0)
        close(service->lock);
    service->keeper = service->lock = 0;
    service->directory[0] = '\0';
}
