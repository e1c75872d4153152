/* Finds the trees of the last dump of refs. No commit names these trees; only the manifest does, a
 * file in the namespace (docs/lake-moving.md, D2). */
#include "lake/gc_int.h"
#include "lake/names.h"
#include "lake/place.h"

enum { DUMP_MANIFEST_MAX = 64 << 10 }; /* bytes of the file */

/* Calls fn() for every id in the file, as if each were the id of a tree. */
static int dump_each_id(struct str text, gc_tree_fn *fn, void *ctx, struct err *err)
{
    struct str word;
    int code = 0;

    while (code == 0 && str_token(&text, "\" \t\r\n,:{}[]", &word))
        if (lake_is_commit_id(word)) {
            code = fn(ctx, word, err);
            code = code == ERR_CORRUPT ? 0 : code; /* the id is not that of a tree */
        }
    return code;
}

int gc_dump_trees(struct gc_run *g, gc_tree_fn *fn, void *ctx, struct err *err)
{
    struct buf text = BUF_INIT(DUMP_MANIFEST_MAX);
    struct arena a = {0};
    struct object_place p;
    int code = lake_place_open_below(&p, g->lake, &a, g->repo,
                                     STR(LAKE_NODES "/refs_manifest.json"), PLACE_READ, err);

    if (code == 0)
        code = object_place_end(&p, object_place_read(&p, &text, NULL, err), err);
    if (code == 0)
        code = dump_each_id(buf_str(&text), fn, ctx, err);
    buf_release(&text);
    arena_release(&a);
    return code == ERR_NOT_FOUND ? 0 : code;
}
