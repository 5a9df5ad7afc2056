/* response.h - an exchange's answer as libmicrohttpd is given it. */
#ifndef SLUICE_COMMON_HTTP_RESPONSE_H
#define SLUICE_COMMON_HTTP_RESPONSE_H

#include "common/http/exchange_inside.h"

/* In MHD's callback for its request. False: its connection must end. */
bool response_queue(struct exchange *exchange);

#endif
