#include "workers/engines/lines.h"

#include <stdlib.h>

#include "common/base/cleanup.h"
#include "workers/engines/dialects/dialect.h"
#include "workers/runtime/fiber.h"

static void line_destroy(struct engine_lines *list, struct engine_line *line)
{
    TAILQ_REMOVE(list, line, links);
    http_line_close(&line->http);
    free(line);
}

static struct engine_line *line_create(struct engine *engine)
{
    AUTO_FREE struct engine_line *line = calloc(1, sizeof(*line));
    if (!line || !(line->http = http_line_open()))
        return NULL;
    TAILQ_INSERT_HEAD(&engine->idle, line, links);
    return take_ptr(&line);
}

struct engine_line *line_take(struct engine *engine)
{
    struct engine_line *line = TAILQ_FIRST(&engine->idle);
    if (!line && !(line = line_create(engine)))
        return NULL;
    TAILQ_REMOVE(&engine->idle, line, links);
    TAILQ_INSERT_HEAD(&engine->busy, line, links);
    line->fiber = fiber_current();
    return line;
}

void line_give_back(struct engine *engine, struct engine_line *line)
{
    struct engine_line *last;
    TAILQ_REMOVE(&engine->busy, line, links);
    TAILQ_INSERT_HEAD(&engine->idle, line, links);
    line->fiber = NULL;
    line->used_ms = loop_now_ms();
    while ((last = TAILQ_LAST(&engine->idle, engine_lines)) != line &&
           line->used_ms - last->used_ms > LINE_IDLE_MS)
        line_destroy(&engine->idle, last);
}

struct engine_line *line_current(const struct engine *engine)
{
    const struct fiber *fiber = fiber_current();
    struct engine_line *line;
    TAILQ_FOREACH(line, &engine->busy, links)
    if (line->fiber == fiber)
        return line;
    return NULL;
}

struct http_line *line_http(const struct engine *engine)
{
    const struct engine_line *line = line_current(engine);
    return line ? line->http : NULL;
}

void lines_finish(struct engine *engine)
{
    struct engine_line *line;
    while ((line = TAILQ_FIRST(&engine->busy)))
        line_destroy(&engine->busy, line);
    while ((line = TAILQ_FIRST(&engine->idle)))
        line_destroy(&engine->idle, line);
}
