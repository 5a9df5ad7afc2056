/* The images that live groups have, and those that have failed of late. */
#include "broker/core/engines/images.h"
#include "broker/core/engines/breaker.h"
#include "broker/core/state/state.h"

#include <stdlib.h>

/* ---- life -------------------------------------------------------------------------- */

static void destroy(struct image *image)
{
    free(image->verdict);
    free(image);
}

static struct image *create(struct core *core, struct slice name)
{
    struct image *image = core_alloc(core, 1, sizeof(*image) + name.len + 1);
    if (!image)
        return NULL;
    memcpy(image->name, name.data, name.len);
    image->name_len = (uint32_t)name.len;
    image->round = 1;
    image->breaker.of_image = true;
    list_init(&image->idle);
    list_init(&image->failed);
    list_init(&image->working);
    list_init(&image->waiting.jobs);
    if (table_put(&core->images, image_name(image), image))
        return image;
    core->failed = true;
    free(image);
    return NULL;
}

static void forget(struct core *core, struct image *image)
{
    table_take(&core->images, image_name(image));
    breaker_reset(core, &image->breaker);
    list_remove(&image->idle);
    list_remove(&image->failed);
    list_remove(&image->working);
    destroy(image);
}

void image_join(struct core *core, struct group_work *work, struct slice name)
{
    struct image *image = name.len ? table_find(&core->images, name) : NULL;
    if (name.len && !image) {
        if (core->images.count >= IMAGES_MAX && !list_is_empty(&core->idle_images))
            forget(core, container_of(core->idle_images.next, struct image, idle));
        image = core->images.count < IMAGES_MAX ? create(core, name) : NULL;
    }
    if (!image)
        return;
    list_remove(&image->idle);
    image->groups++;
    work->image = image;
}

void image_part(struct core *core, struct group_work *work)
{
    struct image *image = work->image;
    work->image = NULL;
    if (!image || --image->groups > 0)
        return;
    if (image->breaker.faults)
        list_push_back(&core->idle_images, &image->idle);
    else
        forget(core, image);
}

void images_finish(struct core *core)
{
    size_t at = 0;
    for (struct image *image; (image = table_next(&core->images, &at));)
        destroy(image);
    table_finish(&core->images);
}

/* ---- health ------------------------------------------------------------------------ */

void image_works(struct core *core, struct image *image)
{
    if (!image || !image->breaker.faults)
        return;
    image->round++;
    if (breaker_close(core, &image->breaker) && list_is_empty(&image->working))
        list_push_back(&core->working_images, &image->working);
}
