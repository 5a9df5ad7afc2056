/* problem.h - what is wrong with a request of Polar's: which field, and why. */
#ifndef SLUICE_CLIENT_GATEWAY_POLAR_PROBLEM_H
#define SLUICE_CLIENT_GATEWAY_POLAR_PROBLEM_H

#include <jansson.h>
#include <stdbool.h>

struct problem {
    char field[160]; /* "runtime.prepare.2.command" */
    char words[400];
};

/* False, so that whoever finds it returns it. */
bool problem_set(struct problem *problem, const char *field, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* A field that is there and not null, of that type; NULL where it is not there. False: it is of another. */
bool problem_read(struct problem *problem, const json_t *object, const char *place, const char *name, json_type type,
                  json_t **ret);
/* Of a field that Sluice has nothing for: it is absent, null, false, 0 or empty. */
bool problem_none(struct problem *problem, const json_t *object, const char *place, const char *name, const char *why);

#endif
