/*
 * moment.h - a moment by the machine's clocks, and how much time has passed since an earlier one.
 *
 * The wall clock may be stepped by years (a clock chip without a battery, until NTP has answered).
 * Within one boot of the machine CLOCK_BOOTTIME says what passed. Over a reboot nobody knows for
 * certain: what the wall clock says, but no more than the machine has been up since.
 */
#ifndef SLUICE_BROKER_LEDGER_MOMENT_H
#define SLUICE_BROKER_LEDGER_MOMENT_H

#include <stdint.h>

struct moment {
    int64_t wall_ms, boot_ms;
    uint64_t boot; /* which boot of which machine; 0: it does not say */
};

struct moment moment_now(void);
/* Never negative. */
int64_t moment_passed(const struct moment *then, const struct moment *now);

#endif
