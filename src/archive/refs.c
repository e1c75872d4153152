/* Refs of a git repository. */
#include "archive/refs.h"

#include "base/hex.h"
#include "object/digest.h"
#include "os/pages.h"

#include <stdlib.h>

void git_refs_init(struct git_refs *r, bool is_sha256)
{
    *r = (struct git_refs){.is_sha256 = is_sha256, .max = GIT_REFS_BYTES_MAX};
}

void git_refs_forget(struct git_refs *r)
{
    vec_release(&r->list);
    pages_free(r->text, r->max);
    r->text = NULL;
    r->text_len = r->listed = r->reached = 0;
}

void git_refs_release(struct git_refs *r)
{
    git_refs_forget(r);
    free(r->head_text);
    *r = (struct git_refs){0};
}

/* --- names --- */

/* Bytes that no ref may have: git-check-ref-format, rules 4, 5 and 10. */
static bool ref_byte_ok(unsigned char c)
{
    return c > ' ' && c != 127 && !strchr("~^:?*[\\", c);
}

static bool ref_part_ok(struct str part)
{
    return part.len > 0 && part.p[0] != '.' && !str_ends(part, STR(".lock"));
}

bool git_ref_name_ok(struct str name)
{
    struct str part, rest = name;
    bool more = true;

    if (name.len > GIT_REF_NAME_MAX || !str_starts(name, STR("refs/")) ||
        name.p[name.len - 1] == '.')
        return false;
    for (size_t i = 0; i < name.len; i++)
        if (!ref_byte_ok((unsigned char)name.p[i]))
            return false;
    while (more) {
        more = str_cut(rest, '/', &part, &rest);
        if (!ref_part_ok(part))
            return false;
    }
    return str_find(name, STR("..")) < 0 && str_find(name, STR("@{")) < 0;
}

bool git_ref_is_kept(struct str name)
{
    static const struct ref_rule {
        const char *prefix, *suffix;
    } left_out[] = {
        {"refs/pull/", "/merge"}, {"refs/merge-requests/", "/merge"},
        {"refs/pipelines/", ""},  {"refs/keep-around/", ""},
        {"refs/weir/", ""},
    };

    if (str_eq(name, STR("refs/weir"))) /* git could not have it together with the refs below it */
        return false;

    for (size_t i = 0; i < ARRAY_SIZE(left_out); i++)
        if (str_starts(name, str_z(left_out[i].prefix)) &&
            str_ends(name, str_z(left_out[i].suffix)))
            return false;
    return true;
}

/* --- the list --- */

int git_refs_store(struct git_ref *out, struct git_refs *r, const unsigned char *id,
                   struct str name, size_t item, struct err *err)
{
    size_t id_len = git_id_len(r->is_sha256), need = 2 + name.len + id_len;
    size_t bytes = r->text_len + need + r->listed + item;

    if (bytes > r->max)
        return err_set(err, ERR_TOO_LARGE, "the refs take more than %zu MiB of memory",
                       r->max / MIB);
    int code = large_reach(r->hold, &r->reached, bytes, err);
    if (code < 0)
        return code;
    if (!r->text)
        r->text = pages_new(r->max);
    unsigned char *at = r->text + r->text_len;
    at[0] = (unsigned char)(name.len >> 8);
    at[1] = (unsigned char)name.len;
    memcpy(at + 2, name.p, name.len);
    memcpy(at + 2 + name.len, id, id_len);
    r->text_len += need;
    r->listed += item;
    out->at = at;
    return 0;
}

int git_refs_add(struct git_refs *r, struct str id, struct str name, struct err *err)
{
    unsigned char bytes[GIT_ID_MAX] = {0};
    struct git_ref ref;

    if (!hex_parse(id, bytes, git_id_len(r->is_sha256)))
        return err_set(err, ERR_PARSE, "the list of refs has a line without the id of an object");
    if (++r->seen > GIT_REFS_MAX)
        return err_set(err, ERR_TOO_LARGE, "the repository has more than %d refs", GIT_REFS_MAX);
    if (str_eq(name, STR("HEAD"))) {
        r->has_head = true;
        memcpy(r->head, bytes, sizeof(r->head));
        return 0;
    }
    if (!git_ref_name_ok(name) || !git_ref_is_kept(name)) {
        r->left_out++;
        return 0;
    }
    int code = git_refs_store(&ref, r, bytes, name, sizeof(ref), err);
    if (code == 0)
        vec_push(&r->list, ref);
    return code;
}

void git_refs_set_head_target(struct git_refs *r, struct str target)
{
    if (!git_ref_name_ok(target))
        return;
    char *text = str_dup(target);
    free(r->head_text);
    r->head_text = text;
    r->head_target = str_n(text, target.len);
}

static int ref_order(const void *a, const void *b)
{
    return str_cmp(git_ref_name(a), git_ref_name(b));
}

int git_refs_sort(struct git_refs *r, struct err *err)
{
    if (r->list.len)
        qsort(r->list.items, r->list.len, sizeof(*r->list.items), ref_order);
    for (size_t i = 1; i < r->list.len; i++)
        if (str_eq(git_ref_name(&r->list.items[i - 1]), git_ref_name(&r->list.items[i])))
            return err_set(err, ERR_PARSE, "the list of refs has '" STR_FMT "' twice",
                           STR_ARG(git_ref_name(&r->list.items[i])));
    return 0;
}

/* In a sorted list, a name is directly followed by all names that begin with it. So the function
 * keeps a stack of the names that are the beginning of the present name, and with it finds every
 * ref that is also a folder. */
void git_refs_leave_folders(struct git_refs *r)
{
    size_t above[GIT_REF_NAME_MAX + 1], depth = 0, kept = 0;
    struct git_ref *items = r->list.items;
    bool *is_folder = xzalloc(r->list.len + 1);

    for (size_t i = 0; i < r->list.len; i++) {
        struct str name = git_ref_name(&items[i]);
        while (depth && !str_starts(name, git_ref_name(&items[above[depth - 1]])))
            depth--;
        for (size_t k = 0; k < depth; k++)
            is_folder[above[k]] |= name.p[git_ref_name(&items[above[k]]).len] == '/';
        above[depth++] = i;
    }
    for (size_t i = 0; i < r->list.len; i++)
        if (!is_folder[i])
            items[kept++] = items[i];
    free(is_folder);
    r->left_out += r->list.len - kept;
    r->list.len = kept;
}

const struct git_ref *git_refs_find(const struct git_refs *r, struct str name)
{
    size_t low = 0, high = r->list.len;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = str_cmp(git_ref_name(&r->list.items[middle]), name);
        if (order == 0)
            return &r->list.items[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

void git_refs_digest(char out[GIT_DIGEST_LEN + 1], const struct git_refs *r)
{
    struct digests *sum = digests_new(1u << DIGEST_SHA256);
    size_t id_len = git_id_len(r->is_sha256);
    struct digest_value value;
    char hex[2 * GIT_ID_MAX + 1];

    vec_each (&r->list, const struct git_ref *, ref) {
        hex_write(hex, git_ref_id(ref), id_len);
        hex[2 * id_len] = ' ';
        digests_update(sum, str_n(hex, 2 * id_len + 1));
        digests_update(sum, git_ref_name(ref));
        digests_update(sum, STR("\n"));
    }
    digests_update(sum, STR("HEAD "));
    digests_update(sum, r->head_target);
    digests_update(sum, STR("\n"));
    digests_final(sum, DIGEST_SHA256, &value);
    digests_free(sum);
    hex_write(out, value.bytes, value.len);
    out[GIT_DIGEST_LEN] = '\0';
}
