/* Commands and scripts through store/, by either engine.
 *
 *     bench_store volatile:DIR|durable:DIR|redis:URL OPERATION SECONDS THREADS KEYS
 *
 * The operation "fill" writes the data that the others read. Prints the CPU time of this process
 * per operation too: with the embedded engine that is the whole cost. */
#include "db/db.h"
#include "load.h"
#include "store/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

struct bench;
struct worker {
    const struct bench *bench;
    struct arena arena;
};

typedef bool operation_fn(struct worker *w, uint64_t n);

struct bench {
    struct store *store;
    struct db *db;
    uint64_t keys;
    operation_fn *operation;
    struct script read, write;
};

static void die(const char *what, const struct err *err)
{
    fprintf(stderr, "%s: %s\n", what, err->text);
    exit(2);
}

static bool good(int code, const struct reply *r, const struct err *err)
{
    if (code == 0 && r->type != REPLY_ERROR && r->type != REPLY_NIL)
        return true;
    if (code < 0)
        fprintf(stderr, "%s\n", err->text);
    else
        fprintf(stderr, "reply " STR_FMT "\n", STR_ARG(r->str));
    return false;
}

static bool ask(struct worker *w, const struct str *argv, size_t argc)
{
    struct err err = {0};
    struct reply *r = NULL;
    int code = store_command(w->bench->store, &w->arena, &r, argv, argc, &err);
    return good(code, r, &err);
}

#define ASK(w, ...)                                                                                \
    ask((w), (const struct str[]){__VA_ARGS__},                                                    \
        sizeof((const struct str[]){__VA_ARGS__}) / sizeof(struct str))

static struct str string_key(char out[LOAD_KEY], const struct worker *w, uint64_t n)
{
    load_key(out, "string", n % w->bench->keys);
    return str_n(out, LOAD_KEY);
}

static struct str hash_key(char out[LOAD_KEY], const struct worker *w, uint64_t n)
{
    load_key(out, "hash", n / LOAD_FIELDS % (w->bench->keys / LOAD_FIELDS));
    return str_n(out, LOAD_KEY);
}

static struct str field(char out[16], uint64_t n)
{
    return str_n(out, (size_t)snprintf(out, 16, "field%u", (unsigned)(n % LOAD_FIELDS)));
}

static struct str value(char out[LOAD_VALUE], uint64_t n)
{
    load_value(out, n);
    return str_n(out, LOAD_VALUE);
}

static bool set(struct worker *w, uint64_t n)
{
    char k[LOAD_KEY], v[LOAD_VALUE];
    return ASK(w, STR("SET"), string_key(k, w, n), value(v, n));
}

static bool get(struct worker *w, uint64_t n)
{
    char k[LOAD_KEY];
    return ASK(w, STR("GET"), string_key(k, w, n));
}

static bool hset(struct worker *w, uint64_t n)
{
    char k[LOAD_KEY], f[16], v[LOAD_VALUE];
    return ASK(w, STR("HSET"), hash_key(k, w, n), field(f, n), value(v, n));
}

static bool hget(struct worker *w, uint64_t n)
{
    char k[LOAD_KEY], f[16];
    return ASK(w, STR("HGET"), hash_key(k, w, n), field(f, n));
}

static bool hincrby(struct worker *w, uint64_t n)
{
    char k[LOAD_KEY];
    return ASK(w, STR("HINCRBY"), hash_key(k, w, n), STR("count"), STR("1"));
}

static bool eval(struct worker *w, const struct script *script, uint64_t n, size_t argc)
{
    char h[LOAD_KEY], s[LOAD_KEY], f[16], v[LOAD_VALUE];
    struct str keys[2] = {hash_key(h, w, n), string_key(s, w, n)};
    struct str args[2] = {field(f, n), argc > 1 ? value(v, n) : STR_EMPTY};
    struct err err = {0};
    struct reply *r = NULL;
    const struct script_run run = {script, {keys, 2}, {args, argc}};
    int code = store_eval(w->bench->store, &w->arena, &r, &run, &err);
    return good(code, r, &err);
}

static bool script_read(struct worker *w, uint64_t n)
{
    return eval(w, &w->bench->read, n, 1);
}

static bool script_write(struct worker *w, uint64_t n)
{
    return eval(w, &w->bench->write, n, 2);
}

static const struct {
    const char *name;
    operation_fn *fn;
} operations[] = {
    {"set", set},
    {"get", get},
    {"hget", hget},
    {"hincrby", hincrby},
    {"script_read", script_read},
    {"script_write", script_write},
};

static void open_store(struct bench *b, const char *target)
{
    const char *place = strchr(target, ':');
    bool durable = strncmp(target, "durable:", 8) == 0;
    struct err err = {0};
    int code;

    if (!place)
        exit(2);
    place++;
    if (strncmp(target, "redis:", 6) == 0) {
        struct store_redis_options o = {.url = str_z(place), .max_connections = 64};
        code = store_open_redis(&b->store, &o, &err);
    } else {
        struct db_options o = {.path = place, .cfs = store_cf_specs(), .cf_count = STORE_DATABASES};
        if (db_open(&b->db, &o, &err) < 0)
            die("db_open", &err);
        code = store_open_embedded(&b->store, b->db, 0, durable ? STORE_DURABLE : STORE_VOLATILE,
                                   NULL, &err);
    }
    if (code < 0)
        die("store_open", &err);
}

static void begin(struct load_thread *t)
{
    struct worker *w = calloc(1, sizeof(*w));
    w->bench = t->ctx;
    t->ctx = w;
}

static bool step(struct load_thread *t)
{
    struct worker *w = t->ctx;
    arena_reset(&w->arena);
    return w->bench->operation(w, load_random(t));
}

static void end(struct load_thread *t)
{
    struct worker *w = t->ctx;
    arena_release(&w->arena);
    free(w);
}

static int fill(struct bench *b)
{
    struct worker w = {.bench = b};
    int failed = 0;

    for (uint64_t n = 0; n < b->keys; n++) {
        arena_reset(&w.arena);
        failed |= !set(&w, n) || !hset(&w, n);
    }
    arena_release(&w.arena);
    return failed;
}

/* The server it is held against has been running too: each key once before the clock starts. */
static void warm(struct bench *b)
{
    struct worker w = {.bench = b};

    for (uint64_t n = 0; n < b->keys; n++) {
        arena_reset(&w.arena);
        get(&w, n);
        hget(&w, n);
    }
    arena_release(&w.arena);
}

static double cpu_seconds(void)
{
    struct rusage r;
    getrusage(RUSAGE_SELF, &r);
    return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) +
           (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1e6;
}

int main(int argc, char **argv)
{
    struct bench b = {
        .read = {.name = "bench/read", .source = str_z(load_script_read), .readonly = true},
        .write = {.name = "bench/write", .source = str_z(load_script_write)}};
    if (argc != 6)
        return 2;
    b.keys = strtoull(argv[5], NULL, 10);
    for (size_t i = 0; i < ARRAY_SIZE(operations); i++)
        if (strcmp(argv[2], operations[i].name) == 0)
            b.operation = operations[i].fn;
    if (!b.operation && strcmp(argv[2], "fill") != 0)
        return 2;
    script_init(&b.read);
    script_init(&b.write);
    open_store(&b, argv[1]);
    if (b.operation && b.db)
        warm(&b);
    double cpu = cpu_seconds();
    struct load l = {atoi(argv[4]), atof(argv[3]), begin, end, step, &b};
    int status = b.operation ? load_run(&l) : fill(&b);
    printf("cpu %.6f\n", cpu_seconds() - cpu);
    store_close(b.store);
    if (b.db)
        db_close(b.db);
    return status;
}
