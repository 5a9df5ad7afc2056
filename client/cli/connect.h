/* connect.h - what all commands do alike: connect to the broker, and say what is wrong. */
#ifndef SLUICE_CLIENT_CLI_CONNECT_H
#define SLUICE_CLIENT_CLI_CONNECT_H

#include "client/cli/command.h"

struct sluice_client *cli_connect(const struct invocation *in); /* NULL after saying why */
/* Says the client's sentence, and what to do when no broker answers on this machine; returns EXITS_FAILED. */
int cli_failed(const struct sluice_client *client);
/* "sluice: ..." on stderr. */
void cli_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same with a hint to --help; returns EXITS_USAGE. */
int cli_usage(const struct command *command, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Whether it can be the name of a stream, a back-up, a version; if not, that is said. what: as --help has it. */
bool cli_is_rollout(const struct command *command, const char *text);
bool cli_is_name(const struct command *command, const char *what, const char *text);

#endif
