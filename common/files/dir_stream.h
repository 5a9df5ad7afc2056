/*
 * dir_stream.h - the names in a directory, one after the other. What cannot be read on is an error and not the end:
 * readdir returns NULL for both, and whoever takes one for the other leaves out the rest without a word.
 */
#ifndef SLUICE_COMMON_FILES_DIR_STREAM_H
#define SLUICE_COMMON_FILES_DIR_STREAM_H

#include <dirent.h>
#include <stddef.h>

/* Of a descriptor of its own, from the beginning; `dir` stays the caller's, who closedirs what is returned. NULL with
 * errno. */
DIR *dir_stream_open(int dir);
/* The next entry but "." and "..", valid until the next call: 1; 0 behind the last; or negative errno. */
int dir_stream_next(DIR *stream, const struct dirent **ret);

static inline void dir_stream_cleanup(DIR **stream)
{
    if (*stream)
        closedir(*stream);
}
#define AUTO_DIR __attribute__((cleanup(dir_stream_cleanup))) DIR *

#endif
