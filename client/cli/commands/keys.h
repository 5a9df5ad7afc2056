/*
 * keys.h - the certificate directory, as the one who keeps it sees it:
 *     DIR/broker.key                  the broker's own
 *     DIR/NAME.key                    to hand out, and then to delete here
 *     DIR/trusted/ROLE/NAME.pub       what the broker goes by
 */
#ifndef SLUICE_CLIENT_CLI_COMMANDS_KEYS_H
#define SLUICE_CLIENT_CLI_COMMANDS_KEYS_H

#include <stdbool.h>
#include <stddef.h>

#include "common/net/keys.h"

/* The path of DIR/NAME.key, which is made with its certificate if it is not there. False: said why. */
bool keys_ensure(const char *dir, enum key_role role, const char *name, char *ret_path, size_t size);

#endif
