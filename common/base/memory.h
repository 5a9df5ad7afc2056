/*
 * memory.h - memory that a program which serves keeps for what comes next. By default malloc gives back to the
 * kernel whatever lies free at the end of its heap; what a message or a job let go is then taken anew for the next
 * one, page by page, each of which the kernel clears.
 */
#ifndef SLUICE_COMMON_BASE_MEMORY_H
#define SLUICE_COMMON_BASE_MEMORY_H

#include <stddef.h>

/* So much may lie free at the end of the heap of a thread. Before other threads are made. */
void memory_keep(size_t bytes);

#endif
