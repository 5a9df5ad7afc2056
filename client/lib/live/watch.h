/* watch.h - the end of what sluice_watch began. */
#ifndef SLUICE_CLIENT_LIB_LIVE_WATCH_H
#define SLUICE_CLIENT_LIB_LIVE_WATCH_H

struct watching;

void watch_close(struct watching **watching);

#endif
