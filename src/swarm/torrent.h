/* Makes torrent files and magnet links of one body (BEP 3, 12, 19, 52; docs/torrents.md). The info
 * dictionary has only the mandatory keys, so the same bytes with the same name always have the same
 * info hash. The functions have no side effects. Any thread may call them. */
#ifndef SWARM_TORRENT_H
#define SWARM_TORRENT_H

#include "base/buf.h"
#include "swarm/pieces.h"

enum torrent_kind { TORRENT_V1, TORRENT_V2, TORRENT_HYBRID, TORRENT_KINDS };
extern const char *const torrent_kind_names[TORRENT_KINDS]; /* "1", "2", "hybrid" */

/* Finds a kind by its name. False: no kind has this name. */
bool torrent_kind_parse(enum torrent_kind *out, struct str name);

enum { TORRENT_NAME_MAX = 240, TORRENT_ANNOUNCES_MAX = 2, TORRENT_SEEDS_MAX = 2 };

struct torrent_file {
    enum torrent_kind kind;
    struct str name; /* as torrent_name() makes it */
    bool is_private; /* the private flag of BEP 27 */
    const struct pieces *pieces;
    struct str announces[TORRENT_ANNOUNCES_MAX]; /* URLs, in the order in which clients try them */
    size_t announce_count;
    struct str web_seeds[TORRENT_SEEDS_MAX]; /* URLs (BEP 19) */
    size_t web_seed_count;
    struct str http_seed; /* URL (BEP 17); empty: none */
};

struct torrent_hashes {
    bool has_v1, has_v2;
    uint8_t v1[SHA1_LEN];
    uint8_t v2[SHA256_LEN]; /* trackers use only its first SHA1_LEN bytes */
};

/* Makes a file name from the last part of an object's key: UTF-8 without control characters, '/' or
 * '\\', not "." or "..", at most TORRENT_NAME_MAX bytes, never empty. */
void torrent_name(struct buf *out, struct str key);

/* Sets the web seeds: URLs from which clients get the object's bytes. f->kind and f->name must be
 * set. Usually the only web seed is the URL of the object. In a version 2 torrent libtorrent 2.0
 * appends the file's name to the URL. So if the URL's path ends in '/' and that name, such a
 * torrent gets the URL up to this '/', to which every client appends the name (BEP 19). If the URL
 * has a query, the whole URL is a web seed too. */
void torrent_seed(struct torrent_file *f, struct str url);

/* torrent_info() writes the info dictionary; torrent_hash() computes the info hashes from its
 * bytes. */
void torrent_info(struct buf *out, const struct torrent_file *f);
void torrent_hash(struct torrent_hashes *out, enum torrent_kind kind, struct str info);

/* Writes the whole torrent file. `info` is the info dictionary from torrent_info(). The file
 * contains no date, so equal input gives equal files. */
void torrent_write(struct buf *out, const struct torrent_file *f, struct str info);

void torrent_magnet(struct buf *out, const struct torrent_file *f, const struct torrent_hashes *h);

#endif
