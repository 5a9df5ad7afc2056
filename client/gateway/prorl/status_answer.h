/* status_answer.h - {"status": words}: what ProRL answers where there is nothing else to tell. */
#ifndef SLUICE_CLIENT_GATEWAY_PRORL_STATUS_ANSWER_H
#define SLUICE_CLIENT_GATEWAY_PRORL_STATUS_ANSWER_H

#include "client/gateway/http_call.h"

/* 200 with the words and what they are of, which may be "". */
void status_answer(struct http_call *call, const char *words, const char *of);

#endif
