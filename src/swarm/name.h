/* Reads the names by which people name a torrent: hexadecimal digits, or a magnet link. */
#ifndef SWARM_NAME_H
#define SWARM_NAME_H

#include "base/err.h"
#include "swarm/announce.h"

/* Reads an info hash from one of three forms: 40 hexadecimal digits; 64 hexadecimal digits of a
 * version 2 hash, whose first 40 are used (BEP 52); the first btih (hexadecimal or base 32) or btmh
 * of a magnet link. ERR_INVALID: the text has none of these forms. */
int info_hash_parse(uint8_t out[INFO_HASH_LEN], struct str text, struct err *err) MUST_CHECK;

#endif
