/* numbers.h - counts and times as people read them. */
#ifndef SLUICE_BROKER_SIMULATE_REPORT_NUMBERS_H
#define SLUICE_BROKER_SIMULATE_REPORT_NUMBERS_H

/* 1234567.8 as "1,234,568"; what is below 100 with three digits. */
void print_count(double count, char ret[32]);
/* "0.25s", "12s", "4m05s", "3h20m" */
void print_seconds(double seconds, char ret[32]);

#endif
