/* Fields: the description of one value of a request or of an answer. The same description checks
 * and reads JSON into a struct, and writes a struct as JSON.
 *
 *     struct bird { struct str name; int64_t grams; };
 *
 *     static const struct rest_field bird_fields[] = {
 *         {"name", "The bird's name.", .required = true, REST_AT(struct bird, name)},
 *         {"grams", "Its weight.", REST_INTEGER, .max = 20000, REST_AT(struct bird, grams)},
 *         {0},
 *     };
 *
 * Reading is strict for weir's own calls. It refuses a member that no field has (and names the
 * nearest), a value of another type, a value beyond its limits, a missing required member, a text
 * with a NUL, and a text or list without an own limit that is longer than REST_TEXT_MAX or
 * REST_ITEMS_MAX. The message begins with the member's name, or has it in quotes.
 *
 * Fields are constant. The functions keep no state, and any thread may call them. */
#ifndef REST_FIELD_H
#define REST_FIELD_H

#include "base/arena.h"
#include "base/json.h"

#include <stddef.h>

enum rest_type {
    REST_STRING,
    REST_INTEGER,
    REST_NUMBER, /* an integer or a fraction */
    REST_BOOLEAN,
    REST_TIME,     /* a string such as "2026-01-31T03:00:00.000Z"; "" for no time in an answer */
    REST_DURATION, /* a string such as "500ms" or "5m"; its limits are in milliseconds */
    REST_STRINGS,  /* an array of strings */
    REST_OBJECT,
    REST_OBJECTS, /* an array of objects */
    REST_MAP,     /* an object whose members are strings */
    REST_ANY,     /* any JSON value */
};

/* The upper limits, in strict reading, of a text and of a list whose field has none. */
enum { REST_TEXT_MAX = 4096, REST_ITEMS_MAX = 10000 };

/* How the value lies in the struct. */
enum rest_place {
    REST_NO_PLACE,
    REST_AT_STR,   /* of ANY: its JSON; a text that is not JSON is written as a string */
    REST_AT_Z,     /* const char *; NULL: absent */
    REST_AT_CHARS, /* an array of char that ends with a NUL */
    REST_AT_BOOL,
    REST_AT_INT,
    REST_AT_UNSIGNED, /* also an enum; of a STRING with choices: the number of the choice */
    REST_AT_I64,      /* of a TIME: milliseconds since 1970; 0: no time */
    REST_AT_U64,      /* of a DURATION: milliseconds */
    REST_AT_F64,
    REST_AT_KNOWN,   /* struct rest_known */
    REST_AT_ITEMS,   /* a pointer to items, and at `count_at` their number, a size_t */
    REST_AT_INSIDE,  /* a struct with the places of `members` */
    REST_AT_POINTER, /* a pointer to such a struct; NULL: absent */
};

/* A number that may be absent from a request, or not known in an answer. */
struct rest_known {
    bool known;
    int64_t value;
};

/* An array of fields ends with an empty field. */
struct rest_field {
    const char *name;
    const char *doc; /* one line, a full sentence */
    enum rest_type type;
    bool required;  /* a request without this value is answered 400 */
    bool sometimes; /* the member may be absent from an answer */
    bool nullable;  /* the member may be null in an answer */
    bool secret;    /* a password, a key or a token */
    /* Limits of a value in a request. They limit a number itself, the length of a string in bytes,
     * or how many items an array has. With max 0 there is no upper limit but, in strict reading,
     * REST_TEXT_MAX and REST_ITEMS_MAX; with min and max both 0 an INTEGER has no limits at all,
     * and a NUMBER is 0 or more. */
    int64_t min, max;
    /* The default: the value of an INTEGER or NUMBER that the request does not have. */
    int64_t usual;
    const char *const *choices; /* the allowed strings, ended by NULL; NULL: any string */
    /* Members of an OBJECT or of each of OBJECTS; NULL: any. In a request they are checked like the
     * members of the body. */
    const struct rest_field *members;
    /* The place in the struct, set by the macros below. A member without a place is neither read
     * into the struct nor written from it. */
    enum rest_place as;
    size_t at, count_at;
    size_t item_size; /* of an item of ITEMS, or of what a POINTER points to */
};

/* Arrays of fields and of choices, for the initializers of rows. */
#define REST_FIELDS(...)  ((const struct rest_field[]){__VA_ARGS__, {0}})
#define REST_CHOICES(...) ((const char *const[]){__VA_ARGS__, NULL})

/* The place of a value in a struct. The compiler takes how the value lies there from the member's
 * type, and refuses a type that can hold no value. The unit tests of the routes check that the
 * place can hold the field's type. */
#define REST_MEMBER(type, member) (((type *)NULL)->member)
#define REST_AT(type, member)                                                                      \
    .at = offsetof(type, member),                                                                  \
    .as = _Generic(&REST_MEMBER(type, member),                                                     \
        struct str *: REST_AT_STR,                                                                 \
        const char **: REST_AT_Z,                                                                  \
        bool *: REST_AT_BOOL,                                                                      \
        int *: REST_AT_INT,                                                                        \
        unsigned *: REST_AT_UNSIGNED,                                                              \
        int64_t *: REST_AT_I64,                                                                    \
        uint64_t *: REST_AT_U64,                                                                   \
        double *: REST_AT_F64,                                                                     \
        struct rest_known *: REST_AT_KNOWN)
#define REST_CHARS(type, member)  .at = offsetof(type, member), .as = REST_AT_CHARS
#define REST_INSIDE(type, member) .at = offsetof(type, member), .as = REST_AT_INSIDE
#define REST_POINTER(type, member)                                                                 \
    .at = offsetof(type, member), .as = REST_AT_POINTER,                                           \
    .item_size = sizeof(*REST_MEMBER(type, member))
/* The items of STRINGS may be structs that begin with a struct str. Reading makes them with only
 * that member set. */
#define REST_ITEMS(type, pointer, count)                                                           \
    .at = offsetof(type, pointer), .count_at = offsetof(type, count), .as = REST_AT_ITEMS,         \
    .item_size = sizeof(*REST_MEMBER(type, pointer))

enum rest_manner {
    REST_STRICT,
    /* As leniently as many other programs read: members that no field has are ignored, and null
     * means that a member is absent. */
    REST_LENIENT,
};

/* Checks a JSON object strictly and fills the struct *out, which the caller has zeroed. An absent
 * member stays 0, or becomes the field's `usual`. Strings in *out are borrowed from the object;
 * items and structs are in the arena. ERR_INVALID: the text of `err` names the member. */
int rest_fields_read(void *out, const struct rest_field *fields, const json_t *object,
                     struct arena *arena, struct err *err) MUST_CHECK;

/* Writes the struct's values as members of the JSON object that is open in `w`. */
void rest_fields_write(struct json_out *w, const struct rest_field *fields, const void *thing);

/* Writes a member with a time, such as "2026-01-31T03:00:00.000Z". The time is given in
 * milliseconds since 1970; 0 becomes "". */
void rest_time(struct json_out *w, const char *name, int64_t wall_ms);

#endif
