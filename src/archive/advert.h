/* The messages between weir and a git server over smart HTTP, in protocol versions 0, 1 and 2
 * (gitprotocol-http, gitprotocol-v2). This file writes and reads the messages; fetch.h sends
 * them. */
#ifndef ARCHIVE_ADVERT_H
#define ARCHIVE_ADVERT_H

#include "archive/pkt.h"
#include "archive/refs.h"

/* The answer to GET info/refs?service=git-upload-pack. */
struct git_advert {
    bool is_v2;
    bool is_sha256;
    bool has_unborn;    /* protocol version 2: ls-refs accepts the argument `unborn` */
    bool has_ofs_delta; /* protocol version 0: the server sends deltas by offset */
    bool has_side_band; /* protocol version 0: the server supports side-band-64k */
};

/* Reads the answer. With v2 it has only capabilities, and `refs` stays empty. Otherwise `refs` gets
 * the refs that the server lists. `refs` must be initialised; its kind of ids (SHA-1 or SHA-256) is
 * set to the server's. ERR_PARSE, ERR_CLOSED, ERR_PEER, ERR_TOO_LARGE: see pkt.h and refs.h.
 * ERR_UNSUPPORTED: the server uses an unknown kind of ids, or has no side-band. */
int git_advert_read(struct git_advert *out, struct pkt_in *in, struct git_refs *refs,
                    struct err *err) MUST_CHECK;

/* Protocol version 2: the first function writes the request for the refs, the second reads its
 * answer. */
void git_ls_refs_ask(struct buf *out, const struct git_advert *v);
int git_ls_refs_read(struct git_refs *refs, struct pkt_in *in, struct err *err) MUST_CHECK;

/* A request for a pack. Ids are binary, git_id_len() bytes each, one after another. */
struct git_fetch {
    const unsigned char *wants;
    size_t want_count;
    const unsigned char *haves;
    size_t have_count;
    unsigned depth; /* 0: all history */
};

/* Writes the body of POST git-upload-pack. Thin packs are never asked for (docs/archive.md, B6). */
void git_fetch_ask(struct buf *out, const struct git_advert *v, const struct git_fetch *f);

/* Reads the answer up to the first byte of the pack, which a band_reader over `in` then reads.
 * ERR_UNSUPPORTED: the server's repository is shallow (has no full history), which a bundle cannot
 * express. With a depth the server's list of shallow commits is expected, and skipped. */
int git_fetch_begin(struct pkt_in *in, const struct git_advert *v, const struct git_fetch *f,
                    struct err *err) MUST_CHECK;

#endif
