/* Quotas of forges: how many requests a host still allows, and until when weir must send it none.
 *
 * A forge counts the requests of each token (the primary limit) and may ask for pauses (the
 * secondary limit: 403 or 429, perhaps with Retry-After). Its git servers ask for pauses of their
 * own. This state is in appDB, so when one process meets a limit, all processes obey it:
 *
 *   w:archive:host:<host>          hash: until (ms), strikes, struck (ms), words
 *   w:archive:token:<host>:<id>    hash: limit, remaining, reset (ms), until (ms), strikes, struck,
 *                                  dead (ms), words
 *   w:archive:seats:<host>:<side>  sorted set: a seat for each request (side "api") or transfer
 *                                  (side "git") that runs; the score is the time (ms) at which it
 *                                  expires
 *   w:rate:forge:<host>:<id>       the rate of a token's requests (coord/limit.h)
 *
 * A host or token *rests* until the time `until`. `strikes` counts the rests in a row, and `struck`
 * is the time of the last one. `<id>` names a token without revealing it; "-" stands for requests
 * without a token. Times are those of the store's clock, so that processes with wrong clocks agree.
 *
 * Q1  A token whose remaining requests are 0 rests until the forge's reset, and up to 10 s more.
 * Q2  Retry-After is obeyed exactly, up to 24 h. Without it the first rest lasts 60 s, and each
 *     further rest twice as long, up to 1 h. When no limit was met for twice the length of the
 *     last rest, the length starts at 60 s again.
 * Q3  At most 20 requests and 8 transfers run on a host at the same time.
 * Q4  A token that the forge has refused is dead: weir does not use it, and shows it as dead, until
 *     it is removed or added again.
 *
 * Any thread may call these functions. */
#ifndef ARCHIVE_QUOTA_H
#define ARCHIVE_QUOTA_H

#include "base/arena.h"
#include "base/err.h"
#include "base/log.h"
#include "store/store.h"

struct quota;

enum {
    QUOTA_API_SEATS = 20,
    QUOTA_GIT_SEATS = 8,
    QUOTA_RATE_PER_S = 15,           /* most requests a second with one token */
    QUOTA_REST_FIRST_S = 60,         /* length of the first rest without Retry-After */
    QUOTA_REST_DOUBLED_MAX_S = 3600, /* longest rest without Retry-After */
    QUOTA_REST_MAX_S = 24 * 3600,
    QUOTA_SEAT_MS = 120 * 1000, /* the seat of a request expires after this time */
    /* The seat of a transfer expires after this time, unless its process extends it. */
    QUOTA_GIT_SEAT_MS = 20 * 1000,
    QUOTA_SEAT_LEN = 32,
};

enum quota_side { QUOTA_API, QUOTA_GIT };

#define QUOTA_NO_TOKEN STR("-")

/* `rate` is the most requests a second with one token; 0: QUOTA_RATE_PER_S. */
int quota_open(struct quota **out, struct store *app, unsigned rate, const struct log *log,
               struct err *err) MUST_CHECK;
void quota_close(struct quota *q); /* NULL is fine */

/* The answer of quota_take(). */
struct quota_take {
    size_t token; /* index of the token to use; only when wait_ms and until_ms are 0 */
    char seat[QUOTA_SEAT_LEN + 1];
    /* If above 0: every seat is taken, or the token's rate is used up. Ask again after this
     * time. */
    uint64_t wait_ms;
    /* If above 0: the host, or every token, rests until this time (ms since 1970, by the clock of
     * this process). */
    int64_t until_ms;
    bool all_dead; /* every token is dead; no seat was taken */
};

/* Asks for permission to send a request now. `tokens` are the ids of the host's tokens; the token
 * with the most remaining requests is chosen. With QUOTA_NO_TOKEN as the only id, the request is
 * one without a token. For QUOTA_GIT no token is chosen. quota_give() returns the seat. */
int quota_take(struct quota *q, struct str host, enum quota_side side, const struct str *tokens,
               size_t count, struct quota_take *out, struct err *err) MUST_CHECK;
void quota_give(struct quota *q, struct str host, enum quota_side side, const char *seat);

/* The numbers in an answer's headers. -1: the answer does not have the number. */
struct quota_note {
    int64_t limit, remaining;
    int64_t reset_in_s; /* seconds until the reset of the primary limit */
};
/* Stores the numbers of an answer to a request with this token. */
int quota_note(struct quota *q, struct str host, struct str token, const struct quota_note *n,
               struct err *err) MUST_CHECK;

/* Lets a token rest, or the whole host when `token` is empty. If rest_s is 0, the server did not
 * say for how long (Q2). *until_ms becomes the end of the rest, by the clock of this process. */
int quota_rest(struct quota *q, struct str host, struct str token, int64_t rest_s, struct str words,
               int64_t *until_ms, struct err *err) MUST_CHECK;

/* Marks a token as dead (Q4), with the forge's message `words`. If `words` is empty, the token is
 * marked as alive again. */
int quota_set_dead(struct quota *q, struct str host, struct str token, struct str words,
                   struct err *err) MUST_CHECK;

/* The state of one token, or of the host when the id is empty. */
struct quota_state {
    struct str id;
    int64_t limit, remaining; /* -1: not known */
    int64_t reset_ms;         /* 0: not known */
    int64_t until_ms;         /* until when it rests; 0: it does not rest */
    int64_t dead_ms;          /* since when it is dead; 0: it is alive */
    struct str words;         /* the forge's message about the rest or the refusal */
};
/* Reads the state of the host (`host_state`) and of each token (`out`, which has `count` items). */
int quota_read(struct quota *q, struct arena *a, struct str host, const struct str *tokens,
               size_t count, struct quota_state *host_state, struct quota_state *out,
               struct err *err) MUST_CHECK;
/* Removes the stored state of a token. */
int quota_forget(struct quota *q, struct str host, struct str token, struct err *err) MUST_CHECK;

#endif
