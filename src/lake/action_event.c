/* Finds the tree that an event is about, and the action files in it that match the event. */
#include "lake/actions_int.h"
#include "lake/address.h"
#include "lake/read.h"

#define ACTION_FOLDER STR("_lakefs_actions/")

static const char *const event_words[] = {
    [LAKE_ON_COMMIT] = "commit",
    [LAKE_ON_MERGE] = "merge",
    [LAKE_ON_REVERT] = "revert",
    [LAKE_ON_CHERRY_PICK] = "cherry-pick",
    [LAKE_ON_CREATE_BRANCH] = "create-branch",
    [LAKE_ON_DELETE_BRANCH] = "delete-branch",
    [LAKE_ON_CREATE_TAG] = "create-tag",
    [LAKE_ON_DELETE_TAG] = "delete-tag",
};

struct str action_event_name(struct arena *a, enum lake_event event, bool is_pre)
{
    if (event == LAKE_ON_PREPARE_COMMIT)
        return STR("prepare-commit");
    return arena_fmt(a, "%s-%s", is_pre ? "pre" : "post", event_words[event]);
}

bool action_event_is_tag(enum lake_event event)
{
    return event == LAKE_ON_CREATE_TAG || event == LAKE_ON_DELETE_TAG;
}

/* --- the tree of the event --- */

/* Opens the tree that the event is about; its root is empty when there is no commit yet. */
static int event_tree(struct action_call *c, struct head_tree *out, struct err *err)
{
    struct lake_ref ref;
    struct str id = c->commit_id;
    int code = 0;

    *out = (struct head_tree){0};
    if (c->commit) {
        code = lake_tree_store(c->lake, c->repo, &out->store, err);
        out->is_open = code == 0;
        out->root = c->commit->tree;
        return code;
    }
    if (id.len == 0) { /* the event has no commit yet: the tree is that of the branch's head */
        code = lake_ref_resolve(c->lake, c->arena, c->repo, c->ref, &ref, err);
        id = code == 0 ? ref.commit_id : id;
    }
    return code < 0 ? code : head_tree_open(out, c->lake, c->arena, c->repo, id, err);
}

/* Whether the key is that of an action file: a file directly in the actions folder whose name ends
 * with .yaml. */
static bool event_is_file(struct str key)
{
    return str_starts(key, ACTION_FOLDER) && str_ends(key, STR(".yaml")) &&
           str_chr(str_skip(key, ACTION_FOLDER.len), '/') < 0;
}

/* Moves to the next action file. ERR_END: there are no more. */
static int event_next_file(struct tree_iter *it, struct tree_record *out, struct err *err)
{
    int code;

    do
        code = tree_iter_next(it, out, err);
    while (code == 0 && !event_is_file(out->key) && str_starts(out->key, ACTION_FOLDER));
    return code == 0 && !event_is_file(out->key) ? ERR_END : code;
}

static int event_open(struct action_call *c, struct head_tree *tree, struct tree_iter **it,
                      struct err *err)
{
    int code = event_tree(c, tree, err);

    *it = NULL;
    if (code == 0 && tree->root.len)
        code = tree_iter_open(it, &tree->store, tree->root, err);
    if (code == 0 && *it)
        tree_iter_seek(*it, ACTION_FOLDER);
    return code;
}

static void event_close(struct action_call *c, struct head_tree *tree, struct tree_iter *it)
{
    tree_iter_close(it);
    head_tree_release(tree, c->lake);
}

/* Turns the result of a walk over the action files into the caller's code. If a node of the tree is
 * missing or damaged, the result is ERR_GONE, an error for the client: most likely the node was
 * removed from the namespace, and the client can choose another commit. */
static int event_code(const struct action_call *c, int code, struct err *err)
{
    if (code == ERR_CORRUPT)
        return err_wrap(err, ERR_GONE, "the content of '" STR_FMT "' cannot be read",
                        STR_ARG(c->commit_id.len ? c->commit_id : c->ref));
    return code == ERR_END ? 0 : code;
}

int action_any(struct action_call *c, bool *out, struct err *err)
{
    struct tree_record record;
    struct head_tree tree;
    struct tree_iter *it;
    int code = event_open(c, &tree, &it, err);

    *out = false;
    if (code == 0 && it) {
        code = event_next_file(it, &record, err);
        *out = code == 0;
    }
    event_close(c, &tree, it);
    return event_code(c, code, err);
}

/* --- files --- */

static int event_read_file(struct action_call *c, const struct tree_record *record,
                           struct action *out, struct err *err)
{
    struct buf text = BUF_INIT(ACTION_BYTES_MAX + 1);
    struct lake_entry e = {0};
    struct object_info info = {0};
    struct object_place p;
    int code = lake_entry_read(&e, c->arena, arena_str(c->arena, record->data), err);

    if (code == 0 && e.size > ACTION_BYTES_MAX)
        code = err_set(err, ERR_INVALID, "an action file has 1 to %d bytes", ACTION_BYTES_MAX);
    if (code == 0)
        code = lake_address_open(&p, c->lake, c->arena, c->repo, &e, PLACE_READ, err);
    if (code == 0) {
        code = object_place_read(&p, &text, &info, err);
        if (code == 0)
            code = lake_address_check(&p, &e, &info, err);
        code = object_place_end(&p, code, err);
    }
    if (code == 0)
        code = action_read(out, c->arena, buf_str(&text), err);
    buf_release(&text);
    return code < 0 ? err_wrap(err, code, STR_FMT, STR_ARG(record->key)) : 0;
}

static int event_add_file(struct action_call *c, const struct tree_record *record,
                          struct action *actions, size_t *count, struct err *err)
{
    struct str event = action_event_name(c->arena, c->event, c->is_pre);
    struct str branch = action_event_is_tag(c->event) ? STR_EMPTY : c->ref;
    int code =
        *count == ACTION_FILES_MAX
            ? err_set(err, ERR_INVALID, "there are more than %d action files", ACTION_FILES_MAX)
            : event_read_file(c, record, &actions[*count], err);

    if (code == 0 && action_matches(&actions[*count], event, branch))
        (*count)++;
    return code;
}

int action_find(struct action_call *c, struct action **out, size_t *count, struct err *err)
{
    struct tree_record record;
    struct head_tree tree;
    struct tree_iter *it;
    int code = event_open(c, &tree, &it, err);

    *count = 0;
    *out = NULL;
    while (code == 0 && it && (code = event_next_file(it, &record, err)) == 0) {
        if (!*out)
            *out = arena_array(c->arena, ACTION_FILES_MAX, sizeof(**out));
        code = *out ? event_add_file(c, &record, *out, count, err) : err_code(err, ERR_NO_MEMORY);
    }
    event_close(c, &tree, it);
    return event_code(c, code, err);
}
