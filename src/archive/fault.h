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
 * alone never proves that a repository is gone. For 404 and 410 the code is ARCHIVE_GONE, and the
 * caller must then confirm it by asking the forge's API. */
void fetch_fault_answer(struct fetch_fault *out, const struct client_response *head,
                        struct str body);
/* The fault for a refusal that the server has sent as a message of git's protocol. */
void fetch_fault_words(struct fetch_fault *out, struct str words);
/* The fault for an error code of the network. */
void fetch_fault_network(struct fetch_fault *out, int code);

#endif
