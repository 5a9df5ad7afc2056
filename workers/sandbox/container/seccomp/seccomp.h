/*
 * seccomp.h - system call filters, made from tables: what is not in them is allowed. A rule decides a
 * call, or by one argument of it, of which the lower 32 bits count.
 */
#ifndef SLUICE_WORKERS_SANDBOX_CONTAINER_SECCOMP_SECCOMP_H
#define SLUICE_WORKERS_SANDBOX_CONTAINER_SECCOMP_SECCOMP_H

#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/fail.h"

/* `found` where the argument is one of the table (for BPF_JSET: shares a bit with it; for BPF_JGT: is above
 * it), `otherwise` where not. Both are SECCOMP_RET_... */
struct seccomp_argument {
    uint32_t call, number;
    uint16_t test;
    const uint32_t *table;
    size_t count;
    uint32_t found, otherwise;
    bool has_other; /* another argument must be `other_value`, or it is `otherwise` */
    uint32_t other_number, other_value;
};

enum { SECCOMP_RULES_MAX = 128, SECCOMP_CODE_MAX = 1024 };

struct seccomp_rule {
    uint32_t call, action;
    const struct seccomp_argument *argument; /* or NULL: the action */
};

/* At most SECCOMP_RULES_MAX, one for a call. */
struct seccomp_rules {
    struct seccomp_rule each[SECCOMP_RULES_MAX];
    size_t count;
};
void seccomp_add(struct seccomp_rules *rules, const uint32_t *calls, size_t count, uint32_t action);
void seccomp_add_arguments(struct seccomp_rules *rules, const struct seccomp_argument *arguments, size_t count);

struct seccomp_filter {
    struct sock_filter code[SECCOMP_CODE_MAX];
    unsigned short len;
};
void seccomp_make(struct seccomp_filter *filter, struct seccomp_rules *rules);
/* For this process and its children, which gain no rights from now on. SECCOMP_FILTER_FLAG_...;
 * the listener where one is asked for, else 0; negative errno. */
int seccomp_apply(const struct seccomp_filter *filter, unsigned flags, struct fail *fail);

#endif
