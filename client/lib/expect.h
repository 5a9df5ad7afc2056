/* expect.h - of what template and tokenizer traces have to be. */
#ifndef SLUICE_CLIENT_LIB_EXPECT_H
#define SLUICE_CLIENT_LIB_EXPECT_H

#include "client/lib/client.h"

/* 0, or -EILSEQ where a trace is not of what sluice_expect said. */
int client_check_expected(struct sluice_client *client, const struct sluice_trajectory *given);

#endif
