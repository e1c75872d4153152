/* The chosen paths of a commit that takes only some of the staged changes. */
#include "lake/chosen.h"
#include "lake/names.h"

#include <stdlib.h>

static int chosen_order(const void *a, const void *b)
{
    return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

/* Whether the chosen path `one` is `path` or a folder above it. */
static bool chosen_covers(struct str one, struct str path)
{
    return str_eq(one, path) || (str_ends(one, STR("/")) && str_starts(path, one));
}

int chosen_make(struct chosen *out, struct arena *a, const struct str *paths, size_t count,
                struct err *err)
{
    *out = (struct chosen){.is_some = paths != NULL};
    if (!paths)
        return 0;
    out->paths = arena_array(a, count ? count : 1, sizeof(*out->paths));
    if (!out->paths)
        return err_code(err, ERR_NO_MEMORY);
    for (size_t i = 0; i < count; i++) {
        int code = lake_check_path(paths[i], err);
        if (code < 0)
            return code;
        out->paths[i] = paths[i];
    }
    qsort(out->paths, count, sizeof(*out->paths), chosen_order);
    for (size_t i = 0; i < count; i++)
        if (out->count == 0 || !chosen_covers(out->paths[out->count - 1], out->paths[i]))
            out->paths[out->count++] = out->paths[i];
    return 0;
}

/* Whether the path is chosen. No chosen path is below another one, so only the greatest chosen path
 * that is not greater than `path` can cover it. */
bool chosen_has(const struct chosen *c, struct str path)
{
    size_t low = 0, high = c->count;

    if (!c->is_some)
        return true;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (str_cmp(c->paths[middle], path) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 && chosen_covers(c->paths[low - 1], path);
}
