/*
 * engines.h - which addresses may be registered as engines over HTTP. Workers will call what is registered: without a
 * list, whoever may ask here could have them call anything that they can reach.
 */
#ifndef SLUICE_CLIENT_GATEWAY_DOOR_ENGINES_H
#define SLUICE_CLIENT_GATEWAY_DOOR_ENGINES_H

#include <stdbool.h>
#include <sys/socket.h>

#include "common/base/fail.h"

/*
 * Whether anything may be sent to the URL's host. rules: HOST, HOST:PORT, ADDRESS/BITS; ended by NULL. "loopback"
 * stands for this machine. `option` is the one that allows others, for the sentence: -EACCES, or -EINVAL for no URL.
 */
bool address_allow(const char *const *rules, const char *url, const char *option, struct fail *fail);
/*
 * Whether what a URL's host has turned out to be may be reached. A name that is allowed says nothing of where it leads:
 * whoever answers for it could lead it to this machine, or to what only its own link reaches (DNS rebinding). So these
 * are reached by a rule for the address alone; loopback and localhost are this machine.
 */
bool address_may_be_reached(const char *const *rules, const char *url, const struct sockaddr *address);
/* The same of an engine. */
bool engines_allow(const char *const *rules, const char *url, struct fail *fail);
/* -EINVAL: it is no rule. */
int engines_rule_check(const char *rule, struct fail *fail);

#endif
