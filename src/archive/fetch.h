/* Conversation with a git server over smart HTTP (gitprotocol-http): reads the refs of a
 * repository, and a pack of its objects. Nothing is stored here. docs/archive.md, "Fetching", has
 * the rules.
 *
 *     git_remote_open()      GET info/refs, and with protocol version 2 also ls-refs
 *     git_remote_refs()      the refs of the server
 *     git_remote_fetch()     POST git-upload-pack: a pack; again for the next pack
 *     git_remote_close()
 *
 * The server may be hostile. Every answer is limited in size and time. Memory is bounded: it holds
 * the list of refs (refs.h) and about 0.6 MiB more. Every failure becomes a struct fetch_fault,
 * which has the values for an `.error` object.
 *
 * A git_remote belongs to one thread at a time. */
#ifndef ARCHIVE_FETCH_H
#define ARCHIVE_FETCH_H

#include "archive/advert.h"
#include "archive/fault.h"

enum {
    /* Most ids that one fetch asks for. The limit exists because git http-backend accepts bodies of
     * at most 10 MB. */
    GIT_WANTS_MAX = 100 * 1000,
    GIT_HAVES_MAX = 20 * 1000,
    /* How often refs may change between listing and fetching before weir gives up. */
    GIT_REFRESH_MAX = 3,
    GIT_REDIRECTS_MAX = 3,
};

/* Limits of one conversation. A value of 0 means the default, which each comment names last. */
struct fetch_limits {
    uint64_t idle_ms; /* longest time without any byte; 60 s */
    /* Longest time without a byte of the pack, even if other packets come; 15 min. */
    uint64_t pack_idle_ms;
    /* An answer fails if its average speed over `slow_ms` is lower than this. The speed of a pack
     * is measured from its first byte on. Default: 1 KiB/s over 5 min. */
    uint64_t slow_bytes_per_s;
    uint64_t slow_ms;
    uint64_t total_ms; /* from git_remote_open() to the last byte; 12 h */
    uint64_t pack_max; /* bytes of a pack; 64 GiB */
};

/* Strings are borrowed until the close. */
struct git_remote_options {
    /* Borrowed until the close. It must use no proxy (client_options.direct): behind a proxy weir
     * could not check the addresses to which it connects. */
    struct client *client;
    const char *url; /* URL of the repository, as `git clone` accepts it */
    /* Sent as HTTP Basic, and only to the host of `url`; empty: none. */
    struct str token_user, token;
    /* Set if an administrator has configured the hosts of `url` and `same_host`. Then these hosts
     * may have loopback or private addresses. Otherwise weir connects only to public addresses
     * (http/hosts.h). */
    bool allow_private;
    struct str same_host; /* another host[:port] that redirects may lead to; empty: none */
    struct fetch_limits limits;
    const _Atomic(bool) *cancel; /* may be NULL */
    struct large_hold *hold;     /* pays for the refs; NULL: they are not counted */
};

struct git_remote;

/* Reads the refs of a repository and sorts them. A repository without refs is a success. When the
 * call fails, *fault has the reason; for ERR_CANCELED the code in *fault is ARCHIVE_OK. */
int git_remote_open(struct git_remote **out, const struct git_remote_options *o,
                    struct fetch_fault *fault, struct err *err) MUST_CHECK;
void git_remote_close(struct git_remote *r); /* NULL is fine; also closes an open pack */

/* Valid until the next refresh, or the close. */
const struct git_refs *git_remote_refs(const struct git_remote *r);
/* The URL that answered after redirects. If it differs from the URL that was asked for, the forge
 * has renamed the repository. */
struct str git_remote_url(const struct git_remote *r);
bool git_remote_is_v2(const struct git_remote *r);

/* Frees the list of refs, but keeps HEAD and what it leads to. */
void git_remote_forget_refs(struct git_remote *r);

/* Reads the refs again, after git_remote_fetch() has returned ERR_CONFLICT. */
int git_remote_refresh(struct git_remote *r, struct fetch_fault *fault, struct err *err) MUST_CHECK;

/* Asks for a pack. *pack reads the bytes of the pack as the server sends them. It reports its end
 * only when the server's answer has ended as it should. The caller closes the reader before any
 * other call.
 *
 * `f` has at most GIT_WANTS_MAX wants. A repository with more wants takes several fetches; the
 * wants of earlier fetches are haves of later ones (bundle.h, bundle_wants_init()). Only the first
 * GIT_HAVES_MAX haves are sent.
 *
 * ERR_CONFLICT: a ref has moved since the refs were read ("not our ref"); the caller calls
 * git_remote_refresh() and asks again, GIT_REFRESH_MAX times at most. Other errors: as in
 * git_remote_open(). */
int git_remote_fetch(struct git_remote *r, const struct git_fetch *f, struct reader **pack,
                     struct fetch_fault *fault, struct err *err) MUST_CHECK;
/* The reason why the pack's reader failed. NULL: the reader did not fail, so the failure is in the
 * code that reads from it. */
const struct fetch_fault *git_remote_fault(const struct git_remote *r);

#endif
