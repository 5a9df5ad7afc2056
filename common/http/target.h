/*
 * target.h - what a request's first line asks for, as http_server.h has it: the path decoded once, the query cut into
 * names and values. What could be meant as something else is a fault. Pure.
 */
#ifndef SLUICE_COMMON_HTTP_TARGET_H
#define SLUICE_COMMON_HTTP_TARGET_H

#include <stdbool.h>
#include <stddef.h>

struct target {
    char *raw;         /* as it came; what may not stand there is `?` */
    const char *path;  /* "" where there is a fault */
    const char *query; /* each name and each value with a NUL behind it */
    size_t query_len;
    const char *fault; /* in words; NULL: none */
};

/* False: out of memory. `ret` is to be finished in any case. */
bool target_parse(const char *raw, bool takes_encoded_slashes, struct target *ret);
void target_finish(struct target *target);

/* The value of the first of that name; NULL: there is none. */
const char *target_query(const struct target *target, const char *name);
size_t target_query_count(const struct target *target, const char *name);

#endif
