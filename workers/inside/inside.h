/* inside.h - the programs of tools/ that run inside sandboxes, as bytes (embed.cmake). */
#ifndef SLUICE_WORKERS_INSIDE_INSIDE_H
#define SLUICE_WORKERS_INSIDE_INSIDE_H

#include <stddef.h>

extern const unsigned char swe_witness_py[];
extern const size_t swe_witness_py_len;
extern const unsigned char code_driver_py[], ipython_driver_py[], ipython_zygote_py[], jupyter_driver_py[];
extern const size_t code_driver_py_len, ipython_driver_py_len, ipython_zygote_py_len, jupyter_driver_py_len;

#endif
