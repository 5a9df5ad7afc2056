/*
 * engines.h - which addresses may be registered as engines over HTTP. Workers will call what is registered: without a
 * list, whoever may ask here could have them call anything that they can reach.
 */
#ifndef SLUICE_CLIENT_GATEWAY_DOOR_ENGINES_H
#define SLUICE_CLIENT_GATEWAY_DOOR_ENGINES_H

#include <stdbool.h>

#include "common/base/fail.h"

/*
 * Whether anything may be sent to the URL's host. rules: HOST, HOST:PORT, ADDRESS/BITS; ended by NULL. "loopback"
 * stands for this machine. `option` is the one that allows others, for the sentence: -EACCES, or -EINVAL for no URL.
 */
bool address_allow(const char *const *rules, const char *url, const char *option, struct fail *fail);
/* The same of an engine. */
bool engines_allow(const char *const *rules, const char *url, struct fail *fail);
/* -EINVAL: it is no rule. */
int engines_rule_check(const char *rule, struct fail *fail);

#endif
