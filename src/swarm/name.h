/* Names that people give for a torrent. */
#ifndef SWARM_NAME_H
#define SWARM_NAME_H

#include "base/err.h"
#include "swarm/announce.h"

/* Takes 40 hexadecimal digits; 64 digits of a version 2 hash, of which the first 40 count (BEP 52);
 * or a magnet link, by its first btih (hexadecimal or base 32) or btmh. ERR_INVALID. */
int info_hash_parse(uint8_t out[INFO_HASH_LEN], struct str text, struct err *err) MUST_CHECK;

#endif
