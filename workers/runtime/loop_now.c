#include "workers/runtime/loop_now.h"

#include "common/base/clock.h"
#include "workers/runtime/loop.h"

int64_t loop_now_us(void) { return clock_us(); }
