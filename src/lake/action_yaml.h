/* A YAML document as a small tree, of limited size and depth. For action_file.c and action_yaml.c
 * alone. */
#ifndef LAKE_ACTION_YAML_H
#define LAKE_ACTION_YAML_H

#include "base/arena.h"
#include "base/err.h"

enum action_kind { ACTION_TEXT, ACTION_MAP, ACTION_LIST };

struct action_node {
    enum action_kind kind;
    size_t line;                      /* counted from 1 */
    struct str key;                   /* the key, if the node is a member of a map */
    struct str text;                  /* the text, if the node is an ACTION_TEXT */
    struct action_node *first, *next; /* first child; next sibling */
};

/* Parses one document. ERR_INVALID: the text is not one YAML document, has a key twice in one map,
 * or exceeds a limit; the error's text names the line. */
int action_yaml_read(struct action_node **out, struct arena *a, struct str text,
                     struct err *err) MUST_CHECK;
/* Finds a member of a map; NULL: there is none. */
const struct action_node *action_yaml_member(const struct action_node *map, const char *key);

#endif
