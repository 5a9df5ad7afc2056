/*
 * names.h - what the names of hosts mean, asked by threads of their own.
 *
 * A name server that says nothing holds up whoever asks it for half a minute; libzmq would ask on the thread
 * that moves every peer's bytes. So names are looked up here, each once, and libzmq connects to numbers only.
 *
 * An answer counts for NAME_KEPT_MS and is then asked for again, while the old one still counts; a failure for
 * NAME_AGAIN_MS. Who asks hears within NAMES_PATIENCE_MS that there is no answer; one that comes later counts.
 * At most NAMES_MAX names are known, and NAMES_THREADS asked for at a time: others wait for a place.
 */
#ifndef SLUICE_BROKER_NET_NAMES_H
#define SLUICE_BROKER_NET_NAMES_H

#include <stdbool.h>
#include <stdint.h>

struct names;

enum {
    NAMES_MAX = 1024,
    NAMES_THREADS = 16,
    NAMES_PATIENCE_MS = 5000,
    NAME_KEPT_MS = 60000,
    NAME_AGAIN_MS = 5000,
    NAME_SIZE = 254,        /* with its end; a longer one is no host's */
    NAME_ADDRESS_SIZE = 46, /* an IPv4 or IPv6 address as text */
    NAME_WHY_SIZE = 96
};

/* NULL with errno. */
struct names *names_create(void);
/* Does not wait for lookups that are under way. NULL-safe. */
void names_destroy(struct names **names);

/* Readable (for poll) when there may be an answer, until names_hear. */
int names_fd(const struct names *names);
void names_hear(struct names *names);

enum name_state { NAME_ASKED, NAME_FOUND, NAME_FAILED };

struct name_answer {
    enum name_state state;
    char address[NAME_ADDRESS_SIZE]; /* found */
    char why[NAME_WHY_SIZE];         /* failed */
};

/* Whether it may be the name of a host: letters, digits, '.', '-' and '_'. */
bool name_is_hosts(const char *host);
/* What is known of `host`, which is asked for if need be. */
struct name_answer names_find(struct names *names, const char *host, int64_t now_ms);

#endif
