/*
 * own_service.h - a broker and workers of this command's own, for as long as it runs: `sluice up` on sockets in a
 * directory that only its user can enter. Between the two is a process, the keeper: it ends the service and removes the
 * directory when the command ends, however that comes, kill -9 included. Of a keeper that is killed itself the command
 * removes what is left, and of both the next command does (own_directory.h).
 */
#ifndef SLUICE_CLIENT_CLI_GRADE_OWN_SERVICE_H
#define SLUICE_CLIENT_CLI_GRADE_OWN_SERVICE_H

#include <stdbool.h>
#include <sys/types.h>

#include "common/base/fail.h"

enum { OWN_SERVICE_OPTIONS_MAX = 900 };

/* Zero it first. */
struct own_service {
    const char *options[OWN_SERVICE_OPTIONS_MAX]; /* of `sluice up`; borrowed */
    size_t option_count;
    const char *data, *log; /* a directory and a file that stay; NULL: in its own directory */
    pid_t keeper;           /* 0: none */
    int life;               /* a pipe; the keeper sees this end closed */
    int lock;               /* of the directory; 0: none */
    int said;               /* what `sluice up` prints; its end is the service's */
    char directory[64], log_path[4096], url[96];
};

/* An option, and its value unless that is NULL. False where there are too many. */
bool own_service_add(struct own_service *service, const char *option, const char *value);

/*
 * Starts it and waits until all of it is ready. -EINTR: a signal came. On failure the sentence is the service's own
 * where it said one; own_service_stop is the caller's in any case.
 */
int own_service_start(struct own_service *service, struct fail *fail);
/* Whether it has ended by itself. */
bool own_service_has_ended(const struct own_service *service);
/* The last event of its log with this id, from there on; "" for none. */
void own_service_last_event(const struct own_service *service, const char *id, char *ret, size_t size);
/* Returns when all has ended and nothing of it is left. */
void own_service_stop(struct own_service *service);

#endif
