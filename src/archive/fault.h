/* Why a repository could not be read from a git server: an outcome of the archive (outcome.h) with
 * the details for an `.error` object. docs/archive.md has the table of HTTP statuses and
 * outcomes. */
#ifndef ARCHIVE_FAULT_H
#define ARCHIVE_FAULT_H

#include "archive/outcome.h"
#include "http/client.h"

enum { FETCH_WORDS_MAX = 256, FETCH_RETRY_AFTER_MAX_S = 24 * 3600 };

struct fetch_fault {
    enum archive_code code;
    int http_status;             /* status of the answer that failed; 0: there was no answer */
    int64_t retry_after_s;       /* value of Retry-After, at most a day; -1: not sent */
    char words[FETCH_WORDS_MAX]; /* the server's message without control characters; "": none */
};

/* The fault of an answer whose status is not 200; `body` is the beginning of its body. A status
 * alone never proves that a repository is gone: ARCHIVE_GONE stands for 404 and 410, and the caller
 * asks the forge's API before it believes that. */
void fetch_fault_answer(struct fetch_fault *out, const struct client_response *head,
                        struct str body);
/* The fault for a message in git's protocol by which the server refuses. */
void fetch_fault_words(struct fetch_fault *out, struct str words);
/* The fault for an error code of the network. */
void fetch_fault_network(struct fetch_fault *out, int code);

#endif
