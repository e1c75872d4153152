/* POST form uploads (multipart/form-data): fields first, then the file, read as it streams.
 *
 *     form_open    reads the fields up to where the file's bytes begin
 *     form_check   checks who signed the policy, and whether the form fulfils it
 *     form.file    reads the file, up to the boundary behind it
 *
 * Fields behind the file are ignored, as in S3. Names of fields are case-insensitive. In every
 * field but policy and signatures, "${filename}" is replaced by the name of the file without
 * folders.
 *
 * Limits: a boundary of 70 characters, FORM_FIELDS_MAX fields of FORM_FIELD_MAX bytes, part heads
 * of FORM_HEAD_MAX bytes.
 *
 * Errors (codes of error.h). Opening: RequestIsNotMultiPartContent, MalformedPOSTRequest,
 * MaxPostPreDataLengthExceededError, IncorrectNumberOfFilesInPostRequest (no file), IncompleteBody.
 * Checking: UserKeyMustBeSpecified (no key), InvalidArgument (a field of the signature is missing),
 * InvalidPolicyDocument (malformed), AccessDenied ("Invalid according to Policy: ..."),
 * InvalidAccessKeyId, SignatureDoesNotMatch. Reading: EntityTooLarge, EntityTooSmall,
 * MalformedPOSTRequest (the body ends without its boundary). A form has one owner at a time. */
#ifndef S3_GATEWAY_FORM_H
#define S3_GATEWAY_FORM_H

#include "os/stream.h"
#include "s3/access/auth.h"

enum {
    FORM_FIELDS_MAX = 100,
    FORM_FIELD_MAX = 20 * 1024,
    FORM_HEAD_MAX = 4 * 1024,
    FORM_BOUNDARY_MAX = 70,
    FORM_BUFFER = 32 * 1024,
};

struct form_field {
    struct str name, value; /* both are in the arena */
};

struct form {
    struct reader file; /* its close() is form_close() */
    struct reader *body;
    struct arena *arena;
    const char *part; /* name of the part that is the file */
    struct form_field fields[FORM_FIELDS_MAX];
    size_t field_count;
    struct str filename;  /* name of the file in the form, without folders; may be empty */
    struct str file_type; /* Content-Type of the file; may be empty */
    char delimiter[FORM_BOUNDARY_MAX + 5]; /* the text before each part: "\r\n--boundary" */
    size_t delimiter_len;
    uint64_t min, max;   /* bounds on the file's length in bytes, from the policy */
    bool date_is_signed; /* the policy has a condition for x-amz-date */
    uint64_t given;      /* bytes of the file that were handed out */
    bool ended;          /* the boundary behind the file was read */
    int failed;
    size_t start, end; /* where the bytes in `buffer` that are not used yet start and end */
    size_t known;      /* number of bytes at `start` that certainly belong to the file */
    char *buffer;      /* FORM_BUFFER bytes */
};

/* Whether the Content-Type is that of a form. */
bool form_is_type(struct str content_type);

/* Reads the fields of the form. `body` and `arena` are borrowed until form_close(). After an error
 * there is nothing to close. */
int form_open(struct form *f, struct arena *arena, struct reader *body, struct str content_type,
              struct err *err) MUST_CHECK;
/* Like form_open(), for a form whose file is the part called `part`; S3 calls it "file". */
int form_open_part(struct form *f, struct arena *arena, struct reader *body,
                   struct str content_type, const char *part, struct err *err) MUST_CHECK;
void form_close(struct form *f);

/* Returns the value of the first field of this name, in upper or lower case; NULL p: there is
 * none. */
struct str form_field(const struct form *f, const char *name);

struct form_options {
    struct str bucket; /* the bucket that the form was sent to */
    int64_t now_ms;
    const struct auth_options *auth;
};

struct form_result {
    /* AUTH_ANONYMOUS: the form has no policy. Else AUTH_V4_HEADER or AUTH_V2_HEADER. */
    enum auth_kind kind;
    struct str access_key;
    int64_t signed_ms; /* when the form was signed; 0: the form does not say */
    void *user;
    struct str key;                              /* never empty */
    struct str success_status, success_redirect; /* as the client sent them; may be empty */
};

/* Checks the form's policy and its signature, and sets the bounds of the file's length. A form
 * with neither a policy nor a signature is anonymous, and only its key is checked. A signature
 * without a policy is refused. Returns 0, an S3 code, or the error of auth_options.find_key. */
int form_check(struct form_result *out, struct form *f, const struct form_options *o,
               struct err *err) MUST_CHECK;

/* Checks the fields against the policy document (JSON). Called by form_check(); declared for
 * tests. */
int form_check_policy(struct form *f, struct str document, const struct form_options *o,
                      struct err *err) MUST_CHECK;

#endif
