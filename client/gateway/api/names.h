/* names.h - names for groups whose submitter gave none. */
#ifndef SLUICE_CLIENT_GATEWAY_API_NAMES_H
#define SLUICE_CLIENT_GATEWAY_API_NAMES_H

#include "client/gateway/api/message_json.h"

/* PREFIX- and 96 random bits, kept. False: out of memory, or the system gives no random bits. */
bool names_make(const char *prefix, struct kept_texts *kept, struct slice *ret);

#endif
