/* The client with which commands call the API of a running weir. It takes the API's URL from --url
 * or the configuration, and the administrator's keys from the configuration or the data folder. */
#ifndef COMMAND_CLIENT_H
#define COMMAND_CLIENT_H

#include "base/arena.h"
#include "base/json.h"
#include "command/command.h"
#include "http/client.h"

struct api_client {
    struct arena arena; /* memory of the answers */
    struct client *client;
    char *url;                /* the API's URL, without a path */
    struct buf authorization; /* value of the header Authorization; empty: no keys were found */
    struct err no_keys;       /* the reason why no keys were found; set only in that case */
    bool called;              /* a request was sent */
};

/* The flags --json, --url and --insecure, which every command that calls the API has. */
#define CLIENT_FLAGS                                                                               \
    {"json", FLAG_SWITCH, NULL, NULL, "Write JSON for programs instead of a table for people."},   \
        {"url", FLAG_TEXT, "URL", NULL,                                                            \
         "Address of the API of the weir to call; default: the address of api.listen."},           \
    {                                                                                              \
        "insecure", FLAG_SWITCH, NULL, NULL, "Do not check the certificate of an https:// URL."    \
    }
extern const struct flag client_flags[];

/* Prepares calls to the API; the first call connects. Keys may be absent: then the API refuses
 * calls that need them. Each call may take at most `timeout_ms`. */
int api_client_connect(struct api_client *r, const struct invocation *inv, const struct conf *conf,
                       uint64_t timeout_ms, struct err *err) MUST_CHECK;
void api_client_close(struct api_client *r);

/* Sends a GET, or a POST of JSON if there is a `body`. The call succeeds whatever the status of the
 * answer is. ERR_UNAVAILABLE: weir is not running. */
int api_client_call(struct api_client *r, const char *path, const char *body,
                    struct client_response *out, struct err *err) MUST_CHECK;

/* Like api_client_call(), but with any method. If the answer's status is not 2xx, the call fails
 * with the error of api_client_error(). *out is the answer's JSON, owned by the caller, or NULL
 * when the answer has no body. `out` and `body` may be NULL. */
int api_client_send(struct api_client *r, const char *method, const char *path, const char *body,
                    json_t **out, struct err *err) MUST_CHECK;

/* Makes a call whose body or answer is not JSON. The caller sets method and body of the request and
 * its callbacks; `type` is the Content-Type, or NULL. The call succeeds whatever the status of the
 * answer is. */
int api_client_exchange(struct api_client *r, const char *path, struct client_request *request,
                        const char *type, struct client_response *out, struct err *err) MUST_CHECK;

/* Sends a GET whose answer is large. The caller reads the body with client_stream_reader(). The
 * body may be slow, but must not stop. The caller closes *out. If the answer's status is not 2xx,
 * the call fails with the error of api_client_error(). *head is set to the head of the answer; its
 * status is 0 if there was no answer. */
int api_client_open(struct api_client *r, const char *path, struct client_response *head,
                    struct client_stream **out, struct err *err) MUST_CHECK;

/* Sets the error for an answer whose status is not 2xx. The text is the message in the answer's
 * JSON. Otherwise it says that the answer is not from the API, or that keys are needed and where
 * weir has searched for them. */
int api_client_error(const struct api_client *r, const struct client_response *response,
                     struct err *err);

#endif
