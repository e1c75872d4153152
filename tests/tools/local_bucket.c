/* Changes buckets of a stopped weir past it, as a mishap might:
 *
 *     local_bucket DATA remove BUCKET       removes the bucket with all its objects
 *     local_bucket DATA put BUCKET KEY      puts an object whose body is the key
 */
#include "object/local/local.h"
#include "unit/server_db.h"

#include <stdio.h>

static int empty_bucket(struct bucket *b, struct err *err)
{
    struct arena a = ARENA_INIT(0);
    struct list_options o = {.limit = OBJECT_LIST_MAX};
    struct list_result list = {.count = 1};
    struct remove_result removed;
    int code = 0;

    while (code == 0 && list.count) {
        code = b->ops->list(b, &a, &o, &list, err);
        for (size_t i = 0; code == 0 && i < list.count; i++)
            code = b->ops->remove(b, &a, list.entries[i].info.key, &(struct remove_options){0},
                                  &removed, err);
    }
    arena_release(&a);
    return code;
}

static int put_key(struct bucket *b, struct str key, struct err *err)
{
    struct arena a = ARENA_INIT(0);
    struct put_options o = {0};
    struct put_result made;
    struct str_reader body;

    str_reader_init(&body, key);
    int code = b->ops->put(b, &a, key, &body.reader, key.len, &o, &made, err);
    arena_release(&a);
    return code;
}

static int change_bucket(struct storage *s, int argc, char **argv, struct err *err)
{
    struct str name = str_z(argv[3]);
    struct bucket *b = NULL;
    int code = s->ops->open_bucket(&b, s, STR_EMPTY, name, err);

    if (code == 0)
        code = argc > 4 ? put_key(b, str_z(argv[4]), err) : empty_bucket(b, err);
    if (b)
        b->ops->unref(b);
    return code == 0 && argc == 4 ? s->ops->remove_bucket(s, STR_EMPTY, name, err) : code;
}

int main(int argc, char **argv)
{
    struct storage *s = NULL;
    struct db *db = NULL;
    char folder[512];
    struct err err = {0};

    if (argc != 4 && argc != 5)
        return 2;
    snprintf(folder, sizeof(folder), "%s/objects", argv[1]);
    int code = server_db_open(&db, argv[1], &err);
    if (code == 0)
        code = local_open(
            &s,
            &(struct local_options){
                .name = "local", .folder = folder, .db = db, .id = 1, .reserve_bytes = 1},
            &err);
    if (code == 0)
        code = change_bucket(s, argc, argv, &err);
    if (s)
        s->ops->close(s);
    db_close(db);
    if (code < 0)
        fprintf(stderr, "local_bucket: %s\n", err.text);
    return code < 0;
}
