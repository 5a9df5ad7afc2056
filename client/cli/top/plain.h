/* plain.h - the service in one line, for where there is no terminal. Pure. */
#ifndef SLUICE_CLIENT_CLI_TOP_PLAIN_H
#define SLUICE_CLIENT_CLI_TOP_PLAIN_H

#include "client/cli/top/model.h"
#include "common/base/buffer.h"

/* "14:22:07  healthy  214 live  init 4+12/32  ...", tame, without its line end. */
void plain_line(const struct model *model, const char *time_of_day, struct buffer *ret);

#endif
