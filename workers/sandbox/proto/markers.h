/*
 * markers.h - names in a layer's tar that say something instead of naming a file. OCI image
 * specification, "Whiteouts": MARKER and a name: that is gone from below; MARKER_OPAQUE: nothing
 * from below shows in this directory; other names that begin with MARKER twice mean nothing.
 * Of those last ones we take one for ourselves: a file whose own name begins with MARKER is stored
 * with MARKER_LITERAL in front of it, in every path it is part of.
 */
#ifndef SLUICE_WORKERS_SANDBOX_PROTO_MARKERS_H
#define SLUICE_WORKERS_SANDBOX_PROTO_MARKERS_H

#define MARKER ".wh."
#define MARKER_OPAQUE ".wh..wh..opq"
#define MARKER_LITERAL ".wh..wh.sluice."

#endif
