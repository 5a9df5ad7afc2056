/* gym_kept.h - what NeMo Gym's API keeps while the gateway runs. */
#ifndef SLUICE_CLIENT_GATEWAY_GYM_GYM_KEPT_H
#define SLUICE_CLIENT_GATEWAY_GYM_GYM_KEPT_H

struct runs;
struct outgoing;

struct gym {
    struct runs *runs;
    struct outgoing *outgoing;
};

#endif
