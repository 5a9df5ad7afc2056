/* layers/unpack/name.h - what a path of a layer's tar stands for (sandbox/proto/markers.h). */
#ifndef SLUICE_WORKERS_LAYERS_UNPACK_NAME_H
#define SLUICE_WORKERS_LAYERS_UNPACK_NAME_H

enum layer_name {
    LAYER_NAME_FILE,     /* a file of whatever type is there */
    LAYER_NAME_WHITEOUT, /* what is there in the layers below is gone */
    LAYER_NAME_OPAQUE,   /* nothing from below shows in that directory */
    LAYER_NAME_NOTHING,  /* to be passed over */
    LAYER_NAME_BAD       /* escaped without need: no name of ours, and perhaps a trick */
};

/* `path` is clean (dirtree.h) and becomes the path that is meant, which is never longer, and clean. */
enum layer_name layer_name_read(char *path);

#endif
