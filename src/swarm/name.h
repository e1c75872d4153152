/* How people name a torrent. */
#ifndef SWARM_NAME_H
#define SWARM_NAME_H

#include "base/err.h"
#include "swarm/announce.h"

/* 40 hexadecimal digits; 64 of version 2, which are cut (BEP 52); or a magnet link with a btih (hex
 * or base 32) or a btmh, the first of both that is there. ERR_INVALID. */
int info_hash_parse(uint8_t out[INFO_HASH_LEN], struct str text, struct err *err) MUST_CHECK;

#endif
