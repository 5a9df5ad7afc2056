/* As on a kernel too old to clone into a cgroup. */
#include <errno.h>
#include <linux/sched.h>
#include <sched.h>
#include <stdint.h>
#include <sys/syscall.h>

long __real_syscall(long number, long a, long b, long c, long d, long e, long f);
long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f);
long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f)
{
    if (number == SYS_clone3 && ((const struct clone_args *)(uintptr_t)a)->flags & CLONE_INTO_CGROUP) {
        errno = EINVAL;
        return -1;
    }
    return __real_syscall(number, a, b, c, d, e, f);
}
