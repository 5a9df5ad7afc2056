#include "workers/sandbox/container/seccomp/seccomp.h"

#include <assert.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define NATIVE_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define NATIVE_ARCH AUDIT_ARCH_AARCH64
#else
#error "the system call filter knows x86_64 and aarch64"
#endif

/* Calls from FIRST_UNKNOWN on are answered as by the kernel before them, so that no new one is a new
 * way out; those of x32 are far above. */
enum { FIRST_UNKNOWN = 463 };

/* ---- the rules ---------------------------------------------------------------------- */

void seccomp_add(struct seccomp_rules *rules, const uint32_t *calls, size_t count, uint32_t action)
{
    assert(rules->count + count <= SECCOMP_RULES_MAX);
    for (size_t i = 0; i < count; i++)
        rules->each[rules->count++] = (struct seccomp_rule){calls[i], action, NULL};
}

void seccomp_add_arguments(struct seccomp_rules *rules, const struct seccomp_argument *arguments, size_t count)
{
    assert(rules->count + count <= SECCOMP_RULES_MAX);
    for (size_t i = 0; i < count; i++)
        rules->each[rules->count++] = (struct seccomp_rule){arguments[i].call, 0, &arguments[i]};
}

static int compare_rules(const void *a, const void *b)
{
    const struct seccomp_rule *x = a, *y = b;
    return (x->call > y->call) - (x->call < y->call);
}

/* ---- the program -------------------------------------------------------------------- */

static void put(struct seccomp_filter *filter, uint16_t code, uint32_t value, uint8_t yes, uint8_t no)
{
    assert(filter->len < SECCOMP_CODE_MAX);
    filter->code[filter->len++] = (struct sock_filter){code, yes, no, value};
}

static void put_load(struct seccomp_filter *filter, size_t offset)
{
    put(filter, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

static void put_return(struct seccomp_filter *filter, uint32_t action) { put(filter, BPF_RET | BPF_K, action, 0, 0); }

/* If what was loaded compares as `test` with value, the program ends here. */
static void put_verdict(struct seccomp_filter *filter, uint16_t test, uint32_t value, uint32_t action)
{
    put(filter, BPF_JMP | test | BPF_K, value, 0, 1);
    put_return(filter, action);
}

static void put_load_argument(struct seccomp_filter *filter, uint32_t number)
{
    put_load(filter, offsetof(struct seccomp_data, args) + number * sizeof(uint64_t));
}

static void put_argument(struct seccomp_filter *filter, const struct seccomp_argument *rule)
{
    size_t len = 2 + 2 * rule->count + (rule->has_other ? 3 : 0);
    put(filter, BPF_JMP | BPF_JEQ | BPF_K, rule->call, 0, (uint8_t)len);
    if (rule->has_other) {
        put_load_argument(filter, rule->other_number);
        put(filter, BPF_JMP | BPF_JEQ | BPF_K, rule->other_value, 1, 0);
        put_return(filter, rule->otherwise);
    }
    put_load_argument(filter, rule->number);
    for (size_t i = 0; i < rule->count; i++)
        put_verdict(filter, rule->test, rule->table[i], rule->found);
    put_return(filter, rule->otherwise);
}

/*
 * A search by halves: the kernel runs the program for each of its calls when it is set, to learn
 * which are always allowed, and that is most of what setting it costs.
 */
static void put_search(struct seccomp_filter *filter, const struct seccomp_rule *rules, size_t count)
{
    if (count > 1) {
        unsigned short branch = filter->len;
        put(filter, BPF_JMP | BPF_JGE | BPF_K, rules[count / 2].call, 0, 0);
        put_search(filter, rules, count / 2);
        assert(filter->len - branch - 1 <= UINT8_MAX);
        filter->code[branch].jt = (uint8_t)(filter->len - branch - 1);
        put_search(filter, rules + count / 2, count - count / 2);
        return;
    }
    if (rules->argument)
        put_argument(filter, rules->argument);
    else
        put_verdict(filter, BPF_JEQ, rules->call, rules->action);
    put_return(filter, SECCOMP_RET_ALLOW);
}

void seccomp_make(struct seccomp_filter *filter, struct seccomp_rules *rules)
{
    qsort(rules->each, rules->count, sizeof(*rules->each), compare_rules);
    filter->len = 0;
    put_load(filter, offsetof(struct seccomp_data, arch));
    put(filter, BPF_JMP | BPF_JEQ | BPF_K, NATIVE_ARCH, 1, 0);
    put_return(filter, SECCOMP_RET_KILL_PROCESS);
    put_load(filter, offsetof(struct seccomp_data, nr));
    put_verdict(filter, BPF_JGE, FIRST_UNKNOWN, SECCOMP_RET_ERRNO | ENOSYS);
    put_search(filter, rules->each, rules->count);
}

int seccomp_apply(const struct seccomp_filter *filter, unsigned flags, struct fail *fail)
{
    struct sock_fprog program = {filter->len, (struct sock_filter *)(uintptr_t)filter->code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return fail_set(fail, -errno, "no_new_privs: %s", strerror(errno));
    long listener = syscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
    return listener < 0 ? fail_set(fail, -errno, "seccomp: %s", strerror(errno)) : (int)listener;
}
