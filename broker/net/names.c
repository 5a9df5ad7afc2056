#include "broker/net/names.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "broker/net/multipart.h"
#include "common/base/cleanup.h"
#include "common/base/clock.h"
#include "common/base/log.h"

enum lookup { LOOKUP_NONE, LOOKUP_WAITS, LOOKUP_RUNS };

struct entry {
    char host[NAME_SIZE];
    struct name_answer answer; /* the last one; NAME_ASKED before the first */
    enum lookup lookup;
    int64_t asked_ms;    /* when the lookup that waits or runs was asked for */
    int64_t answered_ms; /* when the last one ended */
};

/* Shared by the owner and the threads; the last of them frees it. */
struct names {
    pthread_mutex_t lock;
    int event_fd;
    unsigned users, threads;
    bool is_closed;
    size_t count;
    struct entry entries[NAMES_MAX];
};

/* ---- life --------------------------------------------------------------------------------- */

struct names *names_create(void)
{
    struct names *names = calloc(1, sizeof(*names));
    if (!names)
        return NULL;
    names->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (names->event_fd < 0) {
        free(names);
        return NULL;
    }
    pthread_mutex_init(&names->lock, NULL);
    names->users = 1;
    return names;
}

/* With the lock held, which is let go. */
static void leave(struct names *names)
{
    bool is_last = --names->users == 0;
    pthread_mutex_unlock(&names->lock);
    if (!is_last)
        return;
    pthread_mutex_destroy(&names->lock);
    close(names->event_fd);
    free(names);
}

void names_destroy(struct names **destroying)
{
    struct names *names = take_ptr(destroying);
    if (!names)
        return;
    pthread_mutex_lock(&names->lock);
    names->is_closed = true;
    leave(names);
}

int names_fd(const struct names *names) { return names->event_fd; }

void names_hear(struct names *names)
{
    uint64_t count;
    while (read(names->event_fd, &count, sizeof(count)) > 0)
        ;
}

/* ---- looking up, on a thread ---------------------------------------------------------------- */

static struct entry *find_entry(struct names *names, const char *host)
{
    for (size_t i = 0; i < names->count; i++)
        if (strcmp(names->entries[i].host, host) == 0)
            return &names->entries[i];
    return NULL;
}

/* Of several addresses an IPv4 one, as the broker itself listens there. */
static const struct addrinfo *choose(const struct addrinfo *all)
{
    const struct addrinfo *first = NULL;
    for (const struct addrinfo *one = all; one; one = one->ai_next) {
        if (one->ai_family == AF_INET)
            return one;
        if (one->ai_family == AF_INET6 && !first)
            first = one;
    }
    return first;
}

static struct name_answer look_up(const char *host)
{
    struct name_answer answer = {.state = NAME_FAILED};
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM}, *all = NULL;
    int code = getaddrinfo(host, NULL, &hints, &all);
    const struct addrinfo *chosen = code == 0 ? choose(all) : NULL;
    if (!chosen) {
        snprintf(answer.why, sizeof(answer.why), "%s", code ? gai_strerror(code) : "it has no address");
    } else {
        const void *bytes = chosen->ai_family == AF_INET
                                ? (const void *)&((const struct sockaddr_in *)(const void *)chosen->ai_addr)->sin_addr
                                : &((const struct sockaddr_in6 *)(const void *)chosen->ai_addr)->sin6_addr;
        inet_ntop(chosen->ai_family, bytes, answer.address, sizeof(answer.address));
        answer.state = NAME_FOUND;
    }
    if (code == 0)
        freeaddrinfo(all);
    return answer;
}

/* A name that was known keeps its address while nobody can be asked. */
static void take_answer(struct entry *entry, const struct name_answer *answer)
{
    if (answer->state == NAME_FOUND || entry->answer.state != NAME_FOUND)
        entry->answer = *answer;
    entry->lookup = LOOKUP_NONE;
    entry->answered_ms = clock_ms();
}

static struct entry *next_to_look_up(struct names *names)
{
    struct entry *oldest = NULL;
    for (size_t i = 0; i < names->count; i++) {
        struct entry *entry = &names->entries[i];
        if (entry->lookup == LOOKUP_WAITS && (!oldest || entry->asked_ms < oldest->asked_ms))
            oldest = entry;
    }
    return oldest;
}

static void *run(void *arg)
{
    struct names *names = arg;
    struct entry *entry;
    char host[NAME_SIZE];
    multipart_pass_over();
    pthread_mutex_lock(&names->lock);
    while (!names->is_closed && (entry = next_to_look_up(names))) {
        entry->lookup = LOOKUP_RUNS;
        memcpy(host, entry->host, sizeof(host));
        pthread_mutex_unlock(&names->lock);
        struct name_answer answer = look_up(host);
        pthread_mutex_lock(&names->lock);
        take_answer(find_entry(names, host), &answer); /* what is looked up keeps its place */
        if (eventfd_write(names->event_fd, 1) != 0)
            log_event(LOG_ERROR, "names.unheard", "host=%s why=\"%s\"", host, strerror(errno));
    }
    names->threads--;
    leave(names);
    return NULL;
}

/* With the lock held. Without a thread the name waits for one that is there, or for the next who asks. */
static void start_thread(struct names *names)
{
    pthread_t thread;
    sigset_t all, before;
    if (names->threads >= NAMES_THREADS)
        return;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int code = pthread_create(&thread, NULL, run, names);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (code) {
        log_event(LOG_ERROR, "names.no-thread", "why=\"%s\"", strerror(code));
        return;
    }
    pthread_detach(thread);
    names->threads++;
    names->users++;
}

/* ---- asking ---------------------------------------------------------------------------------- */

bool name_is_hosts(const char *host)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";
    size_t len = strlen(host);
    return len > 0 && len < NAME_SIZE && host[0] != '-' && strspn(host, letters) == len;
}

/* A place for a name: a new one, or that of the one which was answered longest ago. */
static struct entry *place_for(struct names *names)
{
    struct entry *oldest = NULL;
    if (names->count < NAMES_MAX)
        return &names->entries[names->count++];
    for (size_t i = 0; i < names->count; i++) {
        struct entry *entry = &names->entries[i];
        if (entry->lookup == LOOKUP_NONE && (!oldest || entry->answered_ms < oldest->answered_ms))
            oldest = entry;
    }
    return oldest;
}

static void ask(struct names *names, struct entry *entry, int64_t now_ms)
{
    entry->lookup = LOOKUP_WAITS;
    entry->asked_ms = now_ms;
    start_thread(names);
}

static bool is_due(const struct entry *entry, int64_t now_ms)
{
    int64_t age_ms = now_ms - entry->answered_ms;
    return entry->lookup == LOOKUP_NONE &&
           (entry->answer.state == NAME_ASKED ||
            age_ms >= (entry->answer.state == NAME_FOUND ? NAME_KEPT_MS : NAME_AGAIN_MS));
}

static struct name_answer judge(const struct entry *entry, int64_t now_ms)
{
    struct name_answer answer = entry->answer;
    if (answer.state != NAME_ASKED || now_ms - entry->asked_ms < NAMES_PATIENCE_MS)
        return answer;
    answer.state = NAME_FAILED;
    snprintf(answer.why, sizeof(answer.why), "no name server has answered for %d s", NAMES_PATIENCE_MS / 1000);
    return answer;
}

struct name_answer names_find(struct names *names, const char *host, int64_t now_ms)
{
    struct name_answer answer = {.state = NAME_ASKED};
    if (!name_is_hosts(host)) {
        answer.state = NAME_FAILED;
        snprintf(answer.why, sizeof(answer.why), "it is not the name of a host");
        return answer;
    }
    pthread_mutex_lock(&names->lock);
    struct entry *entry = find_entry(names, host);
    if (!entry && (entry = place_for(names))) {
        *entry = (struct entry){0};
        snprintf(entry->host, sizeof(entry->host), "%s", host);
    }
    if (entry && is_due(entry, now_ms))
        ask(names, entry, now_ms);
    else if (entry && entry->lookup == LOOKUP_WAITS)
        start_thread(names);
    if (entry)
        answer = judge(entry, now_ms);
    pthread_mutex_unlock(&names->lock);
    return answer;
}
