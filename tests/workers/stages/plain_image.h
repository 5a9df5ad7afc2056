/* plain_image.h - an image for stages to stand on: a directory with bash, the usual of coreutils, and what they are
 * linked to. */
#ifndef SLUICE_TESTS_WORKERS_STAGES_PLAIN_IMAGE_H
#define SLUICE_TESTS_WORKERS_STAGES_PLAIN_IMAGE_H

#include "tests/workers/stages/kinds_world.h"

/* At <directory>/<name>. */
static inline void make_plain_image(const char *name)
{
    char command[1024];
    snprintf(command, sizeof(command),
             "mkdir -p %s/%s/usr/bin && cd %s/%s && ln -s usr/bin bin && for p in bash cat ls mkdir cp rm id stat env "
             "touch chmod chown mkfifo sleep head tr grep find sort mv ln readlink wc truncate; do"
             " cp -L --parents $(ldd /usr/bin/$p | grep -o '/[^ ]*') . && cp -L /usr/bin/$p usr/bin/; done &&"
             " ln -s bash usr/bin/sh && mkdir -p etc root app home/me && chmod -R u+w .",
             directory, name, directory, name);
    assert_int_equal(system(command), 0);
}

#endif
