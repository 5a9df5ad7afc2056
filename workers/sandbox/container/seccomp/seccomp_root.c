#include "workers/sandbox/container/seccomp/seccomp_root.h"

#include <linux/seccomp.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "workers/sandbox/container/seccomp/seccomp.h"

#define SUCCESS SECCOMP_RET_ERRNO /* with the errno 0 */
#define COUNT(table) (sizeof(table) / sizeof(*(table)))

static const uint32_t faked_calls[] = {
#ifdef __NR_chown
    __NR_chown,    __NR_lchown,
#endif
    __NR_fchown,   __NR_fchownat,  __NR_setuid,    __NR_setgid,   __NR_setgroups, __NR_setreuid,
    __NR_setregid, __NR_setresuid, __NR_setresgid, __NR_setfsuid, __NR_setfsgid,  __NR_capset,
};

/* S_IFCHR and S_IFBLK have it, and no other type: files, FIFOs and sockets are made. */
static const uint32_t device_bit = S_IFCHR;

static const struct seccomp_argument device_rules[] = {
#ifdef __NR_mknod
    {__NR_mknod, 1, BPF_JSET, &device_bit, 1, SUCCESS, SECCOMP_RET_ALLOW},
#endif
    {__NR_mknodat, 2, BPF_JSET, &device_bit, 1, SUCCESS, SECCOMP_RET_ALLOW},
};

static struct seccomp_filter filter;

void seccomp_root_prepare(void)
{
    struct seccomp_rules rules = {.count = 0};
    seccomp_add(&rules, faked_calls, COUNT(faked_calls), SUCCESS);
    seccomp_add_arguments(&rules, device_rules, COUNT(device_rules));
    seccomp_make(&filter, &rules);
}

int seccomp_root_apply(struct fail *fail) { return seccomp_apply(&filter, 0, fail); }
