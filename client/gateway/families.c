#include "client/gateway/families.h"

#include <stdio.h>
#include <string.h>

#include "client/gateway/api/native.h"
#include "client/gateway/api/root.h"
#include "client/gateway/gym/gym.h"
#include "client/gateway/polar/polar.h"
#include "client/gateway/prorl/prorl.h"
#include "client/gateway/sandboxfusion/sandboxfusion.h"

static const struct route_family *const all[] = {&native_family, &prorl_family, &gym_family, &polar_family,
                                                 &sandboxfusion_family};
enum { ALL = sizeof(all) / sizeof(*all) };

static bool is_among(const char *name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return count == 0;
}

size_t families_choose(const char *const *names, size_t count, const struct route_family **ret)
{
    size_t chosen = 0;
    ret[chosen++] = &root_family;
    for (size_t i = 0; i < ALL; i++)
        if (is_among(all[i]->name, names, count))
            ret[chosen++] = all[i];
    return chosen;
}

bool family_is_known(const char *name)
{
    for (size_t i = 0; i < ALL; i++)
        if (strcmp(all[i]->name, name) == 0)
            return true;
    return false;
}

const char *family_names(void)
{
    static char names[256];
    names[0] = '\0';
    for (size_t i = 0; i < ALL; i++) {
        const size_t len = strlen(names);
        snprintf(names + len, sizeof(names) - len, "%s%s", i ? "|" : "", all[i]->name);
    }
    return names;
}
