/* Serves a bundle to git: the server's side of smart HTTP, versions 0 and 2 (gitprotocol-http,
 * gitprotocol-v2). This file reads requests and makes answers; rest/git.c sends them.
 *
 * The refs are those of the bundle's header, and the pack is the stored pack, unchanged. So a clone
 * costs about as much as reading the object. A client that already has some of the objects gets all
 * of them again. There are no shallow clones and no filters.
 *
 * git refuses a pack from a server if the pack has an object twice. A pack that was appended to may
 * have such an object. serve_is_safe() tells whether a pack can be served (docs/archive.md, R7).
 *
 * Clients may be hostile. Requests have limits, and every id that a client wants must be in the
 * header. Nothing in this file blocks, except reads from the given readers. */
#ifndef ARCHIVE_SERVE_H
#define ARCHIVE_SERVE_H

#include "archive/audit.h"
#include "archive/bundle.h"

enum {
    SERVE_BODY_MAX = 16 * 1024 * 1024,    /* most bytes of a request, unpacked */
    SERVE_ANSWER_MAX = 256 * 1024 * 1024, /* most bytes of a list of refs */
    SERVE_PREFIXES_MAX = 64,
    SERVE_FRAME = 65515, /* most bytes of the pack in one packet */
};

/* Whether git accepts the stored pack, which must have no object twice. `audit` is the newest
 * verdict about the bundle, or NULL. A verdict about another ETag does not count. */
bool serve_is_safe(const struct bundle_old *bundle, const struct audit_verdict *audit);

/* The answer to GET info/refs?service=git-upload-pack. */
void serve_advert(struct buf *out, const struct bundle_header *h, bool is_v2);

/* A request: the body of POST git-upload-pack. */
struct serve_ask {
    bool is_v2;
    enum { SERVE_NOTHING, SERVE_LS_REFS, SERVE_FETCH } command;
    bool symrefs, unborn; /* arguments of ls-refs */
    /* For ls-refs: beginnings of the names to list; in the arena. */
    struct str prefixes[SERVE_PREFIXES_MAX];
    size_t prefix_count;
    bool all_prefixes; /* for ls-refs: the client named too many prefixes, so it gets every ref */
    size_t wants;      /* for fetch: number of ids that the client wants */
    bool haves, done;
    bool side_band; /* v0: the client understands side-band-64k */
    /* The text for the client if the request is refused; NULL: it is accepted. */
    const char *refusal;
};
/* Reads a request about the bundle with this header. If the request cannot be served, the call
 * succeeds, and `refusal` has the reason. ERR_PARSE, ERR_CLOSED, ERR_TOO_LARGE: the body is not a
 * request. */
int serve_ask_read(struct serve_ask *out, struct arena *a, struct reader *body, bool is_v2,
                   const struct bundle_header *h, struct err *err) MUST_CHECK;

/* Writes the answer, or its part before the pack. Returns whether the pack follows. */
bool serve_answer(struct buf *out, const struct serve_ask *ask, const struct bundle_header *h);

/* A reader of the pack in packets of the side-band, with the flush at the end. With `is_plain` it
 * reads the pack without packets, for clients of version 0 without a side-band. The inner reader is
 * borrowed, and must have exactly `len` bytes. If it ends early, the result is ERR_CLOSED. */
struct serve_pack {
    struct reader reader;
    struct reader *inner;
    uint64_t left;
    bool is_plain, ended;
    size_t at, len; /* range of the bytes of `frame` that are not read yet */
    char *frame;
};
void serve_pack_init(struct serve_pack *p, struct reader *inner, uint64_t len, bool is_plain);
void serve_pack_release(struct serve_pack *p);
/* How many bytes the reader returns in all. */
uint64_t serve_pack_size(const struct serve_pack *p);

/* A reader that unpacks a gzip stream, which git sends for bodies of more than 1 KiB. The inner
 * reader is borrowed. ERR_PARSE: its bytes are not gzip. */
struct gunzip_reader {
    struct reader reader;
    struct reader *inner;
    struct inflate_state *state;
    unsigned char *in;
    uint64_t left; /* how many more unpacked bytes are allowed */
};
void gunzip_reader_init(struct gunzip_reader *r, struct reader *inner, uint64_t max);
void gunzip_reader_release(struct gunzip_reader *r);

#endif
