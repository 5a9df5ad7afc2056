#include "workers/engines/server/dialect.h"

void engine_info_finish(struct engine_info *info)
{
    tokens_finish(&info->prefix);
    tokens_finish(&info->ends);
    *info = (struct engine_info){0};
}
