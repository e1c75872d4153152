/* Torrent files and magnet links of one body (BEP 3, 12, 19, 52; docs/torrents.md). The info
 * dictionary has only what is mandatory, so the same bytes under the same name have the same info
 * hash wherever the torrent was made. Pure, any thread. */
#ifndef SWARM_TORRENT_H
#define SWARM_TORRENT_H

#include "base/buf.h"
#include "swarm/pieces.h"

enum torrent_kind { TORRENT_V1, TORRENT_V2, TORRENT_HYBRID, TORRENT_KINDS };
extern const char *const torrent_kind_names[TORRENT_KINDS]; /* "1", "2", "hybrid" */

/* False: it is none of the names. */
bool torrent_kind_parse(struct str name, enum torrent_kind *out);

enum { TORRENT_NAME_MAX = 240, TORRENT_ANNOUNCES_MAX = 2, TORRENT_SEEDS_MAX = 2 };

struct torrent_file {
    enum torrent_kind kind;
    struct str name; /* as torrent_name() makes it */
    bool is_private; /* BEP 27 */
    const struct pieces *pieces;
    struct str announces[TORRENT_ANNOUNCES_MAX]; /* in the order in which clients are to try them */
    size_t announce_count;
    struct str web_seeds[TORRENT_SEEDS_MAX]; /* BEP 19 */
    size_t web_seed_count;
    struct str http_seed; /* BEP 17; empty: none */
};

struct torrent_hashes {
    bool has_v1, has_v2;
    uint8_t v1[SHA1_LEN];
    uint8_t v2[SHA256_LEN]; /* trackers are told the first SHA1_LEN bytes */
};

/* The last part of an object's key, as a file's name: UTF-8 without controls, '/' or '\\', not "."
 * or "..", at most TORRENT_NAME_MAX bytes, never empty. */
void torrent_name(struct buf *out, struct str key);

/* Names the address of the object as the web seed; kind and name are there. libtorrent (2.0) takes
 * a torrent of version 2 for one of several files, and adds the file's name to the address: it gets
 * one that ends in '/', to which BEP 19 has every client add the name, where that leads to the
 * object. */
void torrent_seed(struct torrent_file *f, struct str url);

/* The info dictionary's bytes, and their hashes. */
void torrent_info(struct buf *out, const struct torrent_file *f);
void torrent_hash(struct torrent_hashes *out, enum torrent_kind kind, struct str info);

/* The whole file; `info` as torrent_info() made it. No date is in it: the same gives the same. */
void torrent_write(struct buf *out, const struct torrent_file *f, struct str info);

void torrent_magnet(struct buf *out, const struct torrent_file *f, const struct torrent_hashes *h);

#endif
