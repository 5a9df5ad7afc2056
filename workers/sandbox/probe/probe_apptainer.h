/* probe_apptainer.h - the installed program apptainer is tried. */
#ifndef SLUICE_WORKERS_SANDBOX_PROBE_PROBE_APPTAINER_H
#define SLUICE_WORKERS_SANDBOX_PROBE_PROBE_APPTAINER_H

/* Of all that apptainer wrote, which it cuts: why it ended. */
const char *probe_apptainer_reason(char *said);

#endif
