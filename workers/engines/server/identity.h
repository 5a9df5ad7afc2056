/*
 * identity.h - who an engine is while it is asked. Behind one address another server may stand at any moment:
 * restarted with another model, or a proxy that was switched. So whatever is done with an engine is an *act*: it hears
 * all over one line, and what it heard counts only if who is there was the same before and after it.
 *
 *   - Before an act that is proven by a mark (dialect.h), unless the line's connection is still the one over which it
 *     was asked last, nothing was doubted since, and nothing else was learnt of the engine.
 *   - After an act that sent anything, it is asked again. An act that trusts it may leave that to those behind it.
 *   - A mark that is not among those known makes everything be learnt anew (discovery.h). If that is somebody
 *     else, the facts get another number, and acts that began under the old one end with -ESTALE.
 *
 * Everything here tries once; awaits.
 */
#ifndef SLUICE_WORKERS_ENGINES_SERVER_IDENTITY_H
#define SLUICE_WORKERS_ENGINES_SERVER_IDENTITY_H

#include "workers/engines/server/engine_state.h"

/*
 * `act` (NULL: nothing, and the engine is asked who it is in any case). After 0 the engine's facts are those of who was
 * asked. -ESTALE: it became another meanwhile. -EAGAIN: it did, and back, or is several that are not alike.
 */
int engine_act(struct engine *engine, int (*act)(void *arg, struct fail *fail), void *arg, struct fail *fail);
/* Finds out who it is (discovery.h), once for all that ask meanwhile. */
int engine_learn(struct engine *engine, struct fail *fail);
/* As single_flight_run, with something that is learnt of who the facts tell of, in an act or in none. */
int engine_learn_once(struct engine *engine, struct single_flight *once, int (*make)(void *arg, struct fail *fail),
                      void *arg, struct fail *fail);
/* Who is there is not proven any more: a call failed, or a pause ended. */
void engine_doubt(struct engine *engine);

/*
 * The act in hand trusts who is there, if it succeeds: nobody is asked behind it while the same connection was proven
 * within TRUST_MS and under the same version of the policy, and the engine gave the same mark, that of one start,
 * STEADY_PROOFS times in a row. Whoever keeps what it brought has it confirmed before that counts (engine_settle).
 */
enum { TRUST_MS = 2000, STEADY_PROOFS = 8 };
void engine_trust(struct engine *engine);
/*
 * Asks who is there if an act has trusted it and nobody has asked since. Where it does not answer, or is paused, what
 * it said last stands: 0. -ESTALE: somebody else is there who does not say who. Else the facts are those of who is.
 */
int engine_settle(struct engine *engine, struct fail *fail);

/* What the current fiber's requests go over; NULL: any connection. */
struct http_line *engine_connection_http(const struct engine *engine);
void engine_connections_finish(struct engine *engine);

#endif
