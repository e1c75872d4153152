/* The API of a running weir, as the commands call it: found by --url or the configuration, with the
 * administrator's keys from the configuration or the data folder. */
#ifndef COMMAND_REMOTE_H
#define COMMAND_REMOTE_H

#include "base/arena.h"
#include "base/json.h"
#include "command/command.h"
#include "http/client.h"

struct api_client {
    struct arena arena; /* answers live here */
    struct client *client;
    char *url; /* without a path */
    struct buf authorization;
    struct err no_keys; /* why there is none */
};

/* --json, --url and --insecure, for the commands that use this; the array ends with FLAG_END. */
#define CLIENT_FLAGS                                                                               \
    {"json", FLAG_SWITCH, NULL, NULL, "Write JSON for programs instead of a table for people."},   \
        {"url", FLAG_TEXT, "URL", NULL, "The API of the weir to ask; default: by api.listen."},    \
    {                                                                                              \
        "insecure", FLAG_SWITCH, NULL, NULL, "Do not check the certificate of an https:// URL."    \
    }
extern const struct flag client_flags[];

/* The keys may be absent: then calls that need them are refused by the peer. Each call may take
 * `timeout_ms`. */
int api_client_connect(struct api_client *r, const struct invocation *inv, const struct conf *conf,
                       uint64_t timeout_ms, struct err *err) MUST_CHECK;
void api_client_close(struct api_client *r);

/* `body` NULL: GET, else POST of JSON. Any status is success. ERR_UNAVAILABLE: not running. */
int api_client_call(struct api_client *r, struct client_response *out, const char *path,
                    const char *body, struct err *err) MUST_CHECK;

/* The same with a method; `body` may be NULL. The answer's JSON, the caller's, or NULL when it has
 * none. A status that is not 2xx is the error that its JSON tells. `out` may be NULL. */
int api_client_send(struct api_client *r, json_t **out, const char *method, const char *path,
                    const char *body, struct err *err) MUST_CHECK;

/* The error of an answer whose status is not 2xx, from its JSON; or that it is none of the API, or
 * that keys are needed and where they were looked for. */
int api_client_error(const struct api_client *r, const struct client_response *response,
                     struct err *err);

#endif
