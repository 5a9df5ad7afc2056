/* What may go wrong often, in the log no more than once a second. */
#include "broker/io/inner.h"

#include "common/base/clock.h"
#include "common/base/log.h"

void io_complain(struct complaint *complaint, const char *id, const char *text)
{
    int64_t now_ms = clock_ms();
    if (complaint->said_ms && now_ms - complaint->said_ms < 1000) {
        complaint->unsaid++;
        return;
    }
    log_event(LOG_WARN, id, "text=\"%.600s\" unsaid=%llu", text, (unsigned long long)complaint->unsaid);
    *complaint = (struct complaint){.said_ms = now_ms};
}
