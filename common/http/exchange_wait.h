/*
 * exchange_wait.h - an exchange that has nothing to do sleeps, with its connection: MHD does nothing for it. It wakes
 * when there is more to tell, or when its client hangs up, which MHD would not notice.
 */
#ifndef SLUICE_COMMON_HTTP_EXCHANGE_WAIT_H
#define SLUICE_COMMON_HTTP_EXCHANGE_WAIT_H

#include "common/http/exchange_inside.h"

/* In a callback of MHD's for it. */
void exchange_sleep(struct exchange *exchange);
/* Does nothing where it does not sleep. */
void exchange_wake(struct exchange *exchange);
/* Before its connection goes. */
void exchange_stop_watching(struct exchange *exchange);

#endif
