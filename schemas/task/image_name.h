/*
 * image_name.h - names of images that live in a registry. Nothing here fetches anything: such a
 * name is refused with the command that makes a file of it.
 */
#ifndef SLUICE_SCHEMAS_TASK_IMAGE_NAME_H
#define SLUICE_SCHEMAS_TASK_IMAGE_NAME_H

#include <stdbool.h>
#include <stddef.h>

enum { IMAGE_NAME_WORDS = 400 };

/*
 * True when the name is a registry's ("docker://debian:12", "library://...", "debian:12"), with a
 * sentence that says what to run instead.
 */
bool image_name_explain(const char *name, char *ret_words, size_t size);

#endif
