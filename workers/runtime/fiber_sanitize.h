/*
 * fiber_sanitize.h - tells AddressSanitizer and ThreadSanitizer which stack is in use.
 * Part of fiber.c; without a sanitizer all of it is empty. `enter` and `leave` come just
 * before a switch to the fiber or the loop, `entered_*` first thing after it.
 */
#ifndef SLUICE_WORKERS_RUNTIME_FIBER_SANITIZE_H
#define SLUICE_WORKERS_RUNTIME_FIBER_SANITIZE_H

#include <stdbool.h>
#include <stddef.h>

struct sanitize {
    void *fiber_fake, *loop_fake; /* ASan's fake stacks */
    const void *loop_stack;
    size_t loop_size;
    void *fiber_tsan, *loop_tsan;
};

#if defined(__has_feature) /* clang says it so, gcc by macros */
#if __has_feature(address_sanitizer) && !defined(__SANITIZE_ADDRESS__)
#define __SANITIZE_ADDRESS__ 1
#elif __has_feature(thread_sanitizer) && !defined(__SANITIZE_THREAD__)
#define __SANITIZE_THREAD__ 1
#endif
#endif

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>

static inline void sanitize_init(struct sanitize *s) { *s = (struct sanitize){0}; }
static inline void sanitize_finish(struct sanitize *s) { (void)s; }

static inline void sanitize_forget(void *stack, size_t size) { __asan_unpoison_memory_region(stack, size); }

static inline void sanitize_enter(struct sanitize *s, void *stack, size_t size)
{
    __sanitizer_start_switch_fiber(&s->loop_fake, stack, size);
}

static inline void sanitize_entered_fiber(struct sanitize *s)
{
    __sanitizer_finish_switch_fiber(s->fiber_fake, &s->loop_stack, &s->loop_size);
}

static inline void sanitize_leave(struct sanitize *s, bool for_good)
{
    __sanitizer_start_switch_fiber(for_good ? NULL : &s->fiber_fake, s->loop_stack, s->loop_size);
}

static inline void sanitize_entered_loop(struct sanitize *s)
{
    __sanitizer_finish_switch_fiber(s->loop_fake, NULL, NULL);
}

#elif defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>

static inline void sanitize_init(struct sanitize *s) { *s = (struct sanitize){.fiber_tsan = __tsan_create_fiber(0)}; }

static inline void sanitize_finish(struct sanitize *s) { __tsan_destroy_fiber(s->fiber_tsan); }
static inline void sanitize_forget(void *stack, size_t size) { (void)stack, (void)size; }

static inline void sanitize_enter(struct sanitize *s, void *stack, size_t size)
{
    (void)stack, (void)size;
    s->loop_tsan = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(s->fiber_tsan, 0);
}

static inline void sanitize_entered_fiber(struct sanitize *s) { (void)s; }

static inline void sanitize_leave(struct sanitize *s, bool for_good)
{
    (void)for_good;
    __tsan_switch_to_fiber(s->loop_tsan, 0);
}

static inline void sanitize_entered_loop(struct sanitize *s) { (void)s; }

#else

static inline void sanitize_init(struct sanitize *s) { (void)s; }
static inline void sanitize_finish(struct sanitize *s) { (void)s; }
static inline void sanitize_forget(void *stack, size_t size) { (void)stack, (void)size; }
static inline void sanitize_enter(struct sanitize *s, void *stack, size_t size) { (void)s, (void)stack, (void)size; }
static inline void sanitize_entered_fiber(struct sanitize *s) { (void)s; }
static inline void sanitize_leave(struct sanitize *s, bool for_good) { (void)s, (void)for_good; }
static inline void sanitize_entered_loop(struct sanitize *s) { (void)s; }
#endif

#endif
