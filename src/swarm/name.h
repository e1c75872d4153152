/* The names by which people name a torrent. */
#ifndef SWARM_NAME_H
#define SWARM_NAME_H

#include "base/err.h"
#include "swarm/announce.h"

/* Reads an info hash from 40 hexadecimal digits, from 64 digits of a version 2 hash, of which the
 * first 40 count (BEP 52), or from a magnet link's first btih (hexadecimal or base 32) or btmh.
 * ERR_INVALID: none of these. */
int info_hash_parse(uint8_t out[INFO_HASH_LEN], struct str text, struct err *err) MUST_CHECK;

#endif
