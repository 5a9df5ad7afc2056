#include "workers/engines/server/connections.h"

#include <stdlib.h>

#include "common/base/cleanup.h"
#include "workers/engines/server/engine_state.h"
#include "workers/runtime/fiber.h"

static void line_destroy(struct engine_connections *list, struct engine_connection *line)
{
    TAILQ_REMOVE(list, line, links);
    http_line_close(&line->http);
    free(line);
}

static struct engine_connection *line_create(struct engine *engine)
{
    AUTO_FREE struct engine_connection *line = calloc(1, sizeof(*line));
    if (!line || !(line->http = http_line_open()))
        return NULL;
    TAILQ_INSERT_HEAD(&engine->idle, line, links);
    return take_ptr(&line);
}

struct engine_connection *engine_connection_take(struct engine *engine)
{
    struct engine_connection *line = TAILQ_FIRST(&engine->idle);
    if (!line && !(line = line_create(engine)))
        return NULL;
    TAILQ_REMOVE(&engine->idle, line, links);
    TAILQ_INSERT_HEAD(&engine->busy, line, links);
    line->fiber = fiber_current();
    return line;
}

void engine_connection_give_back(struct engine *engine, struct engine_connection *line)
{
    struct engine_connection *last;
    TAILQ_REMOVE(&engine->busy, line, links);
    TAILQ_INSERT_HEAD(&engine->idle, line, links);
    line->fiber = NULL;
    line->used_ms = loop_now_ms();
    while ((last = TAILQ_LAST(&engine->idle, engine_connections)) != line &&
           line->used_ms - last->used_ms > LINE_IDLE_MS)
        line_destroy(&engine->idle, last);
}

struct engine_connection *engine_connection_current(const struct engine *engine)
{
    const struct fiber *fiber = fiber_current();
    struct engine_connection *line;
    TAILQ_FOREACH(line, &engine->busy, links)
    if (line->fiber == fiber)
        return line;
    return NULL;
}

struct http_line *engine_connection_http(const struct engine *engine)
{
    const struct engine_connection *line = engine_connection_current(engine);
    return line ? line->http : NULL;
}

void engine_connections_finish(struct engine *engine)
{
    struct engine_connection *line;
    while ((line = TAILQ_FIRST(&engine->busy)))
        line_destroy(&engine->busy, line);
    while ((line = TAILQ_FIRST(&engine->idle)))
        line_destroy(&engine->idle, line);
}
