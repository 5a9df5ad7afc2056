/* families.h - the APIs that there are, in the order in which a path is looked up among them. */
#ifndef SLUICE_CLIENT_GATEWAY_FAMILIES_H
#define SLUICE_CLIENT_GATEWAY_FAMILIES_H

#include "client/gateway/route.h"

/* Those of these names, all where there are none; root_family is always there. How many. */
size_t families_choose(const char *const *names, size_t count, const struct route_family **ret);
bool family_is_known(const char *name);
/* "native|prorl|...". */
const char *family_names(void);

#endif
