/* Keys and names of the archive: a key that is taken apart is written back as it was. */
#include "archive/names.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena a = {0};
    struct archive_account c;
    struct archive_object o;
    struct err err = {0};
    struct str text = str_n(data, size);

    if (archive_account_read(&c, &a, text, &err) == 0) {
        struct archive_account again;
        BUG_ON(archive_account_read(&again, &a, archive_account_member(&c, &a), &err) < 0);
        BUG_ON(!str_eq(again.login, c.login) || !str_eq(again.host, c.host));
    }
    if (archive_key_read(&o, text) == 0) {
        BUG_ON(archive_account_make(&c, &a, STR("h"), o.login, &err) < 0);
        struct str name =
            o.kind == ARCHIVE_EXTRA ? arena_fmt(&a, STR_FMT "@", STR_ARG(o.repo)) : o.repo;
        struct str key = archive_key(&c, &a, o.kind, name);
        BUG_ON(!str_starts(text, key) || key.len + o.extra.len != size);
    }
    arena_release(&a);
    return 0;
}
