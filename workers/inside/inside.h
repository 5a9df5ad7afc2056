/* inside.h - the programs that run inside sandboxes, as bytes (embed.cmake): of tools, evaluators, harnesses. */
#ifndef SLUICE_WORKERS_INSIDE_INSIDE_H
#define SLUICE_WORKERS_INSIDE_INSIDE_H

#include <stddef.h>

extern const unsigned char swe_witness_py[];
extern const size_t swe_witness_py_len;
extern const unsigned char code_driver_py[], ipython_driver_py[], ipython_zygote_py[], jupyter_driver_py[];
extern const size_t code_driver_py_len, ipython_driver_py_len, ipython_zygote_py_len, jupyter_driver_py_len;
extern const unsigned char claude_code_sh[], codex_sh[], mini_swe_agent_sh[], opencode_sh[], openhands_sh[], pi_sh[],
    qwen_code_sh[], terminus_2_sh[];
extern const size_t claude_code_sh_len, codex_sh_len, mini_swe_agent_sh_len, opencode_sh_len, openhands_sh_len,
    pi_sh_len, qwen_code_sh_len, terminus_2_sh_len;

#endif
