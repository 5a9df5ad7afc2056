/* descriptors.h - how many descriptors a program may have open. */
#ifndef SLUICE_COMMON_BASE_DESCRIPTORS_H
#define SLUICE_COMMON_BASE_DESCRIPTORS_H

/* As many as it may without anybody's leave: what it starts with is mostly 1024. */
void descriptors_allow_all(void);

#endif
