/* Random steps, from one pattern a command. */
#include "store_diff/generate.h"

#include <ctype.h>
#include <stdio.h>

/* In a pattern a word in capitals stands for itself and a letter for a random argument:
 *   k key    x key of a set whose scores are all 0    v value      f field    m member
 *   n integer to add    r float to add    s score     i index      c count    o offset
 *   b score bound       l lex bound       e relative time that is wrong or in the past
 *   t absolute seconds  T absolute milliseconds       g glob       y type     u 1 to 3
 * [ ] may be left out, { } comes one to four times, ( / ) is one of several.
 *
 * Left out because Redis itself is not sure: DBSIZE (counts keys past their time until they are
 * collected), scores of 1e17 and more and -0 (printed by how the set is encoded), lex ranges over
 * different scores, TIME, and SCAN in pages. */
enum pattern_flags { PLAIN = 0, UNORDERED = 1, RANDOM = 2, CLOCK = 4, GROWS = 8, SHRINKS = 16 };

static const struct pattern {
    const char *text;
    enum pattern_flags flags;
} patterns[] = {
    {"APPEND k v", PLAIN},
    {"DECR k", PLAIN},
    {"DECRBY k n", PLAIN},
    {"DEL { k }", SHRINKS},
    {"ECHO v", PLAIN},
    {"EXISTS { k }", PLAIN},
    {"EXPIRE k e [ ( NX / XX / GT / LT ) ]", SHRINKS},
    {"EXPIREAT k t [ ( NX / XX / GT / LT ) ]", SHRINKS},
    {"EXPIRETIME k", PLAIN},
    {"GET k", PLAIN},
    {"GETDEL k", SHRINKS},
    {"GETEX k [ ( EXAT t / PXAT T / PERSIST / EX e ) ]", PLAIN},
    {"GETRANGE k i i", PLAIN},
    {"GETSET k v", PLAIN},
    {"HDEL k { f }", PLAIN},
    {"HEXISTS k f", PLAIN},
    {"HGET k f", PLAIN},
    {"HGETALL k", UNORDERED},
    {"HINCRBY k f n", PLAIN},
    {"HINCRBYFLOAT k f r", PLAIN},
    {"HKEYS k", UNORDERED},
    {"HLEN k", PLAIN},
    {"HMGET k { f }", PLAIN},
    {"HMSET k { f v }", GROWS},
    {"HRANDFIELD k [ c [ WITHVALUES ] ]", RANDOM},
    {"HSCAN k 0 COUNT 1000000 [ MATCH g ]", UNORDERED},
    {"HSET k { f v }", GROWS},
    {"HSET k { { { f v } } }", GROWS},
    {"HSETNX k f v", PLAIN},
    {"HSTRLEN k f", PLAIN},
    {"HVALS k", UNORDERED},
    {"INCR k", PLAIN},
    {"INCRBY k n", PLAIN},
    {"INCRBYFLOAT k r", PLAIN},
    {"KEYS g", UNORDERED},
    {"LINDEX k i", PLAIN},
    {"LINSERT k ( BEFORE / AFTER ) v v", PLAIN},
    {"LLEN k", PLAIN},
    {"LMOVE k k ( LEFT / RIGHT ) ( LEFT / RIGHT )", GROWS},
    {"LPOP k [ c ]", SHRINKS},
    {"LPOS k v [ RANK i ] [ COUNT c ] [ MAXLEN c ]", PLAIN},
    {"LPUSH k { v }", GROWS},
    {"LPUSHX k { v }", PLAIN},
    {"LRANGE k i i", PLAIN},
    {"LREM k i v", PLAIN},
    {"LSET k i v", PLAIN},
    {"LTRIM k i i", SHRINKS},
    {"MGET { k }", PLAIN},
    {"MSET { k v }", SHRINKS},
    {"MSETNX { k v }", PLAIN},
    {"PERSIST k", PLAIN},
    {"PEXPIRE k e [ ( NX / XX / GT / LT ) ]", SHRINKS},
    {"PEXPIREAT k T [ ( NX / XX / GT / LT ) ]", SHRINKS},
    {"PEXPIRETIME k", PLAIN},
    {"PING [ v ]", PLAIN},
    {"PSETEX k e v", SHRINKS},
    {"PTTL k", CLOCK},
    {"RANDOMKEY", RANDOM},
    {"RENAME k k", SHRINKS},
    {"RENAMENX k k", SHRINKS},
    {"RPOP k [ c ]", SHRINKS},
    {"RPOPLPUSH k k", PLAIN},
    {"RPUSH k { v }", GROWS},
    {"RPUSH k { { { v } } }", GROWS},
    {"RPUSHX k { v }", PLAIN},
    {"SADD k { m }", GROWS},
    {"SADD k { { { m } } }", GROWS},
    {"SCAN 0 COUNT 1000000 [ MATCH g ] [ TYPE y ]", UNORDERED},
    {"SCARD k", PLAIN},
    {"SDIFF { k }", UNORDERED},
    {"SDIFFSTORE k { k }", SHRINKS},
    {"SET k v", PLAIN},
    {"SET k v [ ( NX / XX ) ] [ GET ] [ ( EXAT t / PXAT T / KEEPTTL / EX e ) ]", PLAIN},
    {"SETEX k e v", SHRINKS},
    {"SETNX k v", PLAIN},
    {"SETRANGE k o v", PLAIN},
    {"SINTER { k }", UNORDERED},
    {"SINTERCARD u { k } [ LIMIT c ]", PLAIN},
    {"SINTERSTORE k { k }", SHRINKS},
    {"SISMEMBER k m", PLAIN},
    {"SMEMBERS k", UNORDERED},
    {"SMISMEMBER k { m }", PLAIN},
    {"SMOVE k k m", PLAIN},
    {"SPOP k [ c ]", RANDOM | SHRINKS},
    {"SRANDMEMBER k [ c ]", RANDOM},
    {"SREM k { m }", PLAIN},
    {"SSCAN k 0 COUNT 1000000 [ MATCH g ]", UNORDERED},
    {"STRLEN k", PLAIN},
    {"SUNION { k }", UNORDERED},
    {"SUNIONSTORE k { k }", GROWS},
    {"TTL k", CLOCK},
    {"TYPE k", PLAIN},
    {"UNLINK { k }", SHRINKS},
    {"ZADD k [ ( NX / XX ) ] [ ( GT / LT ) ] [ CH ] [ INCR ] { s m }", PLAIN},
    {"ZADD k { s m }", GROWS},
    {"ZADD k { { { s m } } }", GROWS},
    {"ZADD x { 0 m }", GROWS},
    {"ZCARD k", PLAIN},
    {"ZCOUNT k b b", PLAIN},
    {"ZINCRBY k s m", GROWS},
    {"ZLEXCOUNT x l l", PLAIN},
    {"ZMSCORE k { m }", PLAIN},
    {"ZPOPMAX k [ c ]", SHRINKS},
    {"ZPOPMIN k [ c ]", SHRINKS},
    {"ZRANDMEMBER k [ c [ WITHSCORES ] ]", RANDOM},
    {"ZRANGE k i i [ REV ] [ WITHSCORES ]", PLAIN},
    {"ZRANGE k b b BYSCORE [ REV ] [ LIMIT i i ] [ WITHSCORES ]", PLAIN},
    {"ZRANGE x l l BYLEX [ REV ] [ LIMIT i i ]", PLAIN},
    {"ZRANGEBYLEX x l l [ LIMIT i i ]", PLAIN},
    {"ZRANGEBYSCORE k b b [ WITHSCORES ] [ LIMIT i i ]", PLAIN},
    {"ZRANK k m", PLAIN},
    {"ZREM k { m }", PLAIN},
    {"ZREMRANGEBYLEX x l l", SHRINKS},
    {"ZREMRANGEBYRANK k i i", SHRINKS},
    {"ZREMRANGEBYSCORE k b b", SHRINKS},
    {"ZREVRANGE k i i [ WITHSCORES ]", PLAIN},
    {"ZREVRANGEBYLEX x l l [ LIMIT i i ]", PLAIN},
    {"ZREVRANGEBYSCORE k b b [ WITHSCORES ] [ LIMIT i i ]", PLAIN},
    {"ZREVRANK k m", PLAIN},
    {"ZSCAN k 0 COUNT 1000000 [ MATCH g ]", UNORDERED},
    {"ZSCORE k m", PLAIN},
};

/* Arguments of a kind, one of them at random, separated by blanks; seldom a wrong one. */
static const struct {
    char kind;
    const char *values, *wrong;
} choices[] = {
    {'x', "lex0 lex1", "nolex"},
    {'n', "1 1 2 5 -1 -3 10 0 9223372036854775807 -9223372036854775808 4611686018427387904",
     "9223372036854775808 1.5 abc +1 007"},
    {'r', "1 0.5 -0.25 3 1e3 2.5e-3 -7 0.1 100.125 1e5 -1e-3 0", "abc nan inf"},
    {'s', "0 1 1 2 3 -1 2.5 0.1 10 1e3 inf -inf +inf -2.25 5 7 100 3.14159 1e15 -1e-7", "nan abc"},
    {'i', "0 0 1 2 3 5 10 -1 -1 -1 -2 -3 -5 -100 100 50", "abc 9223372036854775808"},
    {'c', "1 1 2 3 5 0 10 100 -1 -2 -5", "abc 1.5"},
    {'o', "0 1 2 5 10 40 200", "-1 abc 536870912"},
    {'b', "-inf -inf +inf inf 0 1 2 3 (1 (2 (0 2.5 (2.5 -1 10 100 (inf (-inf 1e3", "abc ( nan"},
    {'l', "- - - + + + [a (a [b (b [m (m [m1 [m2 (m3 [z [ ( [k (k", "a bad 1"},
    {'e', "0 -1 -100", "abc 9223372036854775807 -9223372036854775808 1.5"},
    {'t', "33177117420 33177117420 33177117421 33177117500 1 1000", "0 -1 abc 9223372036854775807"},
    {'T', "33177117420000 33177117420123 33177117421999 33177117420500 1 1000 9223372036854775807",
     "0 -1 abc"},
    {'g', "* * h* z? *1 [t]* [^l]* s0* a* *2* m* f* ?? \\h* [a-m]* [z-a]* nothing x?", "[ \\"},
    {'y', "string list set zset hash STRING", "stream"},
    {'u', "1 1 2 2 2 3 3", "0 -1 abc"},
};

/* Which type a command is about, by the longest prefix: its keys are mostly of that type, so that
 * values grow, and sometimes of another, so that types collide. */
static const struct {
    const char *prefix;
    char family; /* first letter of the keys */
} families[] = {
    {"APPEND", 't'}, {"DECR", 't'}, {"GET", 't'},    {"H", 'h'},   {"INCR", 't'}, {"L", 'l'},
    {"MGET", 't'},   {"MSET", 't'}, {"PSETEX", 't'}, {"RPO", 'l'}, {"RPU", 'l'},  {"S", 's'},
    {"SCAN", 0},     {"SET", 't'},  {"STRLEN", 't'}, {"Z", 'z'},
};

static const char *const scripts[] = {
    "return redis.call(unpack(ARGV))",
    "return redis.pcall(unpack(ARGV))",
    "local r = redis.pcall(unpack(ARGV)) if type(r) == 'table' and r.err then return {'err', "
    "r.err} "
    "end return {type(r), r}",
    "for i = 1, 3 do redis.call(unpack(ARGV)) end return redis.call('TYPE', KEYS[1])",
    "if redis.call('EXISTS', KEYS[1]) == 1 then return redis.pcall(unpack(ARGV)) else return "
    "redis.status_reply('none') end",
    "redis.pcall(unpack(ARGV)) return redis.error_reply('MY ' .. redis.call('TYPE', KEYS[1]).ok)",
    "return {1.5, {redis.pcall(unpack(ARGV))}, KEYS, ARGV, {ok = 'x'}, {err = 'E y'}, false, true}",
    "redis.call('SET', KEYS[1], 0.1 + #ARGV) return redis.call(unpack(ARGV))",
    "local ok, e = pcall(redis.call, unpack(ARGV)) return {tostring(ok), e}",
    "local t = {} for i, a in ipairs(ARGV) do t[i] = #a end redis.call(unpack(ARGV)) return t",
    "redis.call('RPUSH', KEYS[1], unpack(ARGV)) return redis.call(unpack(ARGV))",
    "local n = redis.pcall('INCR', KEYS[1]) if type(n) == 'number' and n % 2 == 0 then return "
    "redis.call(unpack(ARGV)) end return n",
    "local r = redis.call(unpack(ARGV)) if type(r) == 'table' then return #r end return r",
    "return redis.call('SET', KEYS[1], redis.sha1hex(ARGV[1]))",
    "local k, r = ARGV[2], {} r[1] = redis.pcall('HLEN', k) r[2] = redis.pcall(unpack(ARGV)) r[3] "
    "= "
    "redis.pcall('HMGET', k, 'f0', 'f1', '2', 'f3') r[4] = redis.pcall('HINCRBY', k, 'n', 1) r[5] "
    "= "
    "redis.pcall('PERSIST', k) r[6] = redis.pcall('HLEN', k) return r",
    "local k = 'h' .. #ARGV % 7 redis.pcall('DEL', k) for i = 1, 7 * #ARGV do redis.call('HSET', "
    "k, "
    "'f' .. i % 50, ARGV[i % #ARGV + 1]) end redis.pcall('HDEL', k, 'f1') local r = "
    "redis.pcall(unpack(ARGV)) return {r, redis.call('EXISTS', k), redis.pcall('HGET', k, 'f2')}",
};

/* splitmix64 */
static uint64_t next_random(struct generator *g)
{
    uint64_t z = (g->state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static size_t below(struct generator *g, size_t bound)
{
    return (size_t)(next_random(g) % bound);
}

static bool chance(struct generator *g, size_t percent)
{
    return below(g, 100) < percent;
}

void generator_init(struct generator *g, uint64_t seed, struct arena *arena)
{
    *g = (struct generator){.state = seed, .arena = arena};
}

/* --- words --- */

static struct str one_of(struct generator *g, const char *values)
{
    struct str rest = str_z(values), word = STR_EMPTY;
    size_t count = 0, at;

    while (str_token(&rest, " ", &word))
        count++;
    BUG_ON(count == 0);
    at = below(g, count);
    rest = str_z(values);
    do
        str_token(&rest, " ", &word);
    while (at--);
    return word;
}

static struct str random_value(struct generator *g)
{
    switch (below(g, 16)) {
    case 0:
        return STR("");
    case 1:
        return STR("\x00\xff\r\n \"x");
    case 2:
        return arena_fmt(g->arena, "%0*d", (int)below(g, chance(g, 20) ? 1300 : 300) + 1,
                         (int)below(g, 9));
    case 3:
        return one_of(g, "3.5 0.1 -2 1e5 abc 10.0 00 +7 9223372036854775806 -9223372036854775807");
    case 4:
    case 5:
    case 6:
    case 7:
        return arena_fmt(g->arena, "%d", (int)below(g, 20) - 5);
    default:
        return one_of(g, "a b c d m1 m2 hello value t1");
    }
}

/* Few names, so that they meet again; sometimes many, so that collections change their form. */
static struct str random_name(struct generator *g, char kind)
{
    size_t pick = below(g, 20);

    if (pick == 0)
        return random_value(g);
    if (pick < 4)
        return arena_fmt(g->arena, "%c%d", kind, (int)below(g, 1000));
    if (pick < 8)
        return arena_fmt(g->arena, "%d", (int)below(g, 12));
    return arena_fmt(g->arena, "%c%d", kind, (int)below(g, 8));
}

/* Few keys, so that they grow; sometimes one of many, which stay small. */
static struct str random_key(struct generator *g)
{
    char family = g->family && chance(g, 94) ? g->family : "thlsz"[below(g, 5)];

    return arena_fmt(g->arena, "%c%d", family, (int)below(g, chance(g, 20) ? 40 : 4));
}

static char family_of(struct str name)
{
    size_t longest = 0;
    char family = 0;

    for (size_t i = 0; i < ARRAY_SIZE(families); i++) {
        struct str prefix = str_z(families[i].prefix);
        if (str_starts(name, prefix) && prefix.len > longest) {
            longest = prefix.len;
            family = families[i].family;
        }
    }
    return family;
}

static struct str random_word(struct generator *g, char kind)
{
    if (kind == 'k')
        return random_key(g);
    if (kind == 'v')
        return random_value(g);
    if (kind == 'f' || kind == 'm')
        return random_name(g, kind);
    for (size_t i = 0; i < ARRAY_SIZE(choices); i++)
        if (choices[i].kind == kind)
            return one_of(g, chance(g, 2) ? choices[i].wrong : choices[i].values);
    BUG_ON(true);
}

/* --- patterns --- */

typedef VEC(struct str) words;

struct expansion {
    struct generator *g;
    words *out;
    bool muted; /* a part that is read but not taken */
};

static void expand(struct expansion *e, struct str *pattern, char end);

static void skip_group(struct expansion *e, struct str *pattern, char end)
{
    bool muted = e->muted;
    e->muted = true;
    expand(e, pattern, end);
    e->muted = muted;
}

static void expand_option(struct expansion *e, struct str *pattern)
{
    if (chance(e->g, 40))
        expand(e, pattern, ']');
    else
        skip_group(e, pattern, ']');
}

static void expand_repeat(struct expansion *e, struct str *pattern)
{
    struct str start = *pattern;

    for (size_t n = e->muted ? 1 : 1 + below(e->g, 4); n-- > 0;) {
        *pattern = start;
        expand(e, pattern, '}');
    }
}

/* One of ( A b / C / D e ): alternatives end at '/' or ')'. */
static void expand_choice(struct expansion *e, struct str *pattern)
{
    size_t count = 1, depth = 0, pick;

    for (size_t i = 0; i < pattern->len && (depth || pattern->p[i] != ')'); i++) {
        depth += pattern->p[i] == '(';
        depth -= pattern->p[i] == ')';
        count += pattern->p[i] == '/' && depth == 0;
    }
    pick = below(e->g, count);
    for (size_t i = 0; i < count; i++) {
        char end = i == count - 1 ? ')' : '/';
        if (i == pick)
            expand(e, pattern, end);
        else
            skip_group(e, pattern, end);
    }
}

static void expand(struct expansion *e, struct str *pattern, char end)
{
    struct str word;

    while (str_token(pattern, " ", &word)) {
        char c = word.p[0];
        if (word.len == 1 && c == end)
            return;
        if (word.len == 1 && c == '[')
            expand_option(e, pattern);
        else if (word.len == 1 && c == '{')
            expand_repeat(e, pattern);
        else if (word.len == 1 && c == '(')
            expand_choice(e, pattern);
        else if (!e->muted)
            vec_push(e->out,
                     word.len == 1 && isalpha((unsigned char)c) ? random_word(e->g, c) : word);
    }
}

static struct str lower(struct generator *g, struct str word)
{
    char *copy = arena_z(g->arena, word);

    for (char *c = copy; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    return str_n(copy, word.len);
}

/* A command that has none of `without`. */
static void generate_words(struct generator *g, enum pattern_flags without, words *out)
{
    const struct pattern *p;
    struct expansion e = {.g = g, .out = out};
    size_t start = out->len;
    struct str text;

    do
        p = &patterns[below(g, ARRAY_SIZE(patterns))];
    while (p->flags & without || !chance(g, p->flags & GROWS ? 100 : p->flags & SHRINKS ? 10 : 40));
    text = str_z(p->text);
    g->family = family_of(text);
    expand(&e, &text, 0);
    g->family = 0;
    if (chance(g, 10))
        out->items[start] = lower(g, out->items[start]);
    if (chance(g, 2) && out->len - start > 1)
        out->len--;
    else if (chance(g, 2))
        /* A surplus word of a random choice is its count: a huge one makes Redis answer for ever.
         */
        vec_push(out, random_word(g, p->flags & RANDOM ? 'c' : "kvfmniscbt"[below(g, 10)]));
    else if (chance(g, 1))
        out->items[start] = STR("NOSUCH");
}

static void generate_script(struct generator *g, words *out)
{
    vec_push(out, STR("EVAL"));
    vec_push(out, str_z(scripts[below(g, ARRAY_SIZE(scripts))]));
    vec_push(out, STR("1"));
    g->family = 't';
    vec_push(out, random_word(g, 'k'));
    generate_words(g, UNORDERED | RANDOM | CLOCK, out);
}

static void take_command(struct generator *g, struct play_step *step, words *w)
{
    struct str *argv = arena_array(g->arena, w->len, sizeof(*argv));

    memcpy(argv, w->items, w->len * sizeof(*argv));
    vec_push(&step->commands, ((struct store_args){argv, w->len}));
    w->len = 0;
}

void generate_step(struct generator *g, struct play_step *out)
{
    words w = {0};
    size_t pick = below(g, 100);

    *out = (struct play_step){0};
    if (pick < 5) {
        out->kind = pick < 4 ? PLAY_ATOMIC : PLAY_PIPELINE;
        for (size_t n = 1 + below(g, 6); n-- > 0;) {
            if (chance(g, 15))
                generate_script(g, &w);
            else
                generate_words(g, RANDOM | CLOCK, &w);
            take_command(g, out, &w);
        }
    } else {
        if (pick < 15)
            generate_script(g, &w);
        else
            generate_words(g, PLAIN, &w);
        take_command(g, out, &w);
    }
    vec_release(&w);
}

bool is_random_command(const struct store_args *command)
{
    for (size_t i = 0; i < ARRAY_SIZE(patterns); i++) {
        struct str name, rest;
        str_cut(str_z(patterns[i].text), ' ', &name, &rest);
        if (patterns[i].flags & RANDOM && str_ieq(name, command->argv[0]))
            return true;
    }
    return false;
}
