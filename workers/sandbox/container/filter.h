/*
 * filter.h - system call filters, made from tables: what is not in them is allowed. A rule decides a
 * call, or by one argument of it, of which the lower 32 bits count.
 */
#ifndef SLUICE_WORKERS_SANDBOX_CONTAINER_FILTER_H
#define SLUICE_WORKERS_SANDBOX_CONTAINER_FILTER_H

#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/fail.h"

/* `found` where the argument is one of the table (for BPF_JSET: shares a bit with it; for BPF_JGT: is above
 * it), `otherwise` where not. Both are SECCOMP_RET_... */
struct filter_argument {
    uint32_t call, number;
    uint16_t test;
    const uint32_t *table;
    size_t count;
    uint32_t found, otherwise;
    bool has_other; /* another argument must be `other_value`, or it is `otherwise` */
    uint32_t other_number, other_value;
};

enum { FILTER_RULES_MAX = 128, FILTER_CODE_MAX = 1024 };

struct filter_rule {
    uint32_t call, action;
    const struct filter_argument *argument; /* or NULL: the action */
};

/* At most FILTER_RULES_MAX, one for a call. */
struct filter_rules {
    struct filter_rule each[FILTER_RULES_MAX];
    size_t count;
};
void filter_add(struct filter_rules *rules, const uint32_t *calls, size_t count, uint32_t action);
void filter_add_arguments(struct filter_rules *rules, const struct filter_argument *arguments, size_t count);

struct filter {
    struct sock_filter code[FILTER_CODE_MAX];
    unsigned short len;
};
void filter_make(struct filter *filter, struct filter_rules *rules);
/* For this process and its children, which gain no rights from now on. SECCOMP_FILTER_FLAG_...;
 * the listener where one is asked for, else 0; negative errno. */
int filter_apply(const struct filter *filter, unsigned flags, struct fail *fail);

#endif
