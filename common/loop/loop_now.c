#include "common/loop/loop_now.h"

#include "common/base/clock.h"
#include "common/loop/loop.h"

int64_t loop_now_us(void) { return clock_us(); }
