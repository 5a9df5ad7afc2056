#include "client/cli/command.h"

const struct option common_options[] = {
    {"broker", OPTION_TEXT, offsetof(struct invocation, broker), "URL", "The broker's FRONT.",
     .standard = "$SLUICE_BROKER, else " USUAL_BROKER},
    {"key", OPTION_TEXT, offsetof(struct invocation, key), "FILE",
     "Your key, for a broker that requires one: a file from `sluice keys add`.", .standard = "$SLUICE_KEY"},
    {"allow-plaintext", OPTION_FLAG, offsetof(struct invocation, allow_plaintext), NULL,
     "Connect over a network without a key; SLUICE_ALLOW_PLAINTEXT=1 does the same."},
};
