#include "workers/runtime/switch.h"

#include <stdint.h>

#if defined(SWITCH_BY_UCONTEXT)

void switch_make(struct switch_point *ret, void *stack, size_t size, void (*run)(void))
{
    getcontext(&ret->context);
    ret->context.uc_stack.ss_sp = stack;
    ret->context.uc_stack.ss_size = size;
    ret->context.uc_link = NULL;
    makecontext(&ret->context, run, 0);
}

void switch_to(struct switch_point *from, const struct switch_point *to) { swapcontext(&from->context, &to->context); }

void *switch_top(const struct switch_point *point)
{
    (void)point;
    return NULL;
}

#else

/* What switch_to (switch_<machine>.S) pushes, lowest address first. */
struct frame {
#if defined(__x86_64__)
    uint32_t mxcsr;
    uint16_t x87, unused;
    uint64_t r15, r14, r13, r12;
    void (*run)(void); /* rbx */
    uint64_t rbp;
    void (*back)(void);
#else
    uint64_t fpcr, unused;
    uint64_t d8_to_d15[8];
    void (*run)(void); /* x19 */
    uint64_t x20_to_x28[9], x29;
    void (*back)(void); /* x30 */
#endif
};

/* Calls frame.run; below it debuggers and profilers look for nothing. */
void switch_begin(void);

void switch_make(struct switch_point *ret, void *stack, size_t size, void (*run)(void))
{
    uintptr_t end = ((uintptr_t)stack + size) & ~(uintptr_t)15;
    struct frame *frame = (struct frame *)(end - sizeof(*frame));
    *frame = (struct frame){.run = run, .back = switch_begin};
#if defined(__x86_64__)
    __asm__("stmxcsr %0\n\tfnstcw %1" : "=m"(frame->mxcsr), "=m"(frame->x87));
#else
    __asm__("mrs %0, fpcr" : "=r"(frame->fpcr));
#endif
    ret->top = frame;
}

void *switch_top(const struct switch_point *point) { return point->top; }

#endif
