/* The statements of the postgres driver, and the codes for the server's errors. */
#include "kv/postgres_int.h"

/* The numbers of types in PostgreSQL's table pg_type. They never change. */
enum {
    T_BYTEA = 17,
    T_INT8 = 20,
    T_INT4 = 23,
    T_TEXT = 25,
    T_BYTEAS = 1001,
    T_INT2S = 1005,
    T_INT4S = 1007
};

/* The body of the function weir_kv_write. The changes are passed sorted by name, so that two
 * writers never wait for each other in a circle. When a condition fails, an exception undoes the
 * changes that were made so far; the variable `failed` keeps its value. kind_number() in
 * postgres_write.c has the numbers of the kinds. */
#define FUNCTION_BODY                                                                              \
    "DECLARE c record; failed int4; hit int8;\n"                                                   \
    "BEGIN\n"                                                                                      \
    " FOR c IN SELECT * FROM unnest(kinds, places, partitions, keys, vals, stamps)\n"              \
    "  AS u(kind, place, p, k, v, s) LOOP\n"                                                       \
    "  CASE c.kind\n"                                                                              \
    "  WHEN 0 THEN\n"                                                                              \
    "   INSERT INTO kv VALUES (c.p, c.k, c.v)\n"                                                   \
    "   ON CONFLICT (partition_key, key) DO UPDATE SET value = excluded.value;\n"                  \
    "  WHEN 1 THEN\n"                                                                              \
    "   INSERT INTO kv VALUES (c.p, c.k, c.v) ON CONFLICT (partition_key, key) DO NOTHING;\n"      \
    "  WHEN 2 THEN UPDATE kv SET value = c.v WHERE partition_key = c.p AND key = c.k;\n"           \
    "  WHEN 3 THEN\n"                                                                              \
    "   UPDATE kv SET value = c.v WHERE partition_key = c.p AND key = c.k AND value = c.s;\n"      \
    "  WHEN 4, 6 THEN DELETE FROM kv WHERE partition_key = c.p AND key = c.k;\n"                   \
    "  WHEN 7 THEN\n"                                                                              \
    "   DELETE FROM kv WHERE partition_key = c.p AND key = c.k AND value = c.s;\n"                 \
    "  WHEN 10 THEN\n"                                                                             \
    "   PERFORM 1 FROM kv WHERE partition_key = c.p AND key = c.k FOR SHARE;\n"                    \
    "  WHEN 11 THEN\n"                                                                             \
    "   PERFORM 1 FROM kv WHERE partition_key = c.p AND key = c.k AND value = c.s FOR SHARE;\n"    \
    "  END CASE;\n"                                                                                \
    "  GET DIAGNOSTICS hit = ROW_COUNT;\n"                                                         \
    "  IF hit = 0 AND c.kind NOT IN (0, 4) THEN failed := least(failed, c.place); END IF;\n"       \
    " END LOOP;\n"                                                                                 \
    " IF failed IS NOT NULL THEN RAISE EXCEPTION USING ERRCODE = 'WKV01'; END IF;\n"               \
    " RETURN -1;\n"                                                                                \
    "EXCEPTION WHEN SQLSTATE 'WKV01' THEN RETURN failed;\n"                                        \
    "END"

#define WITH_LOCK "PERFORM pg_advisory_xact_lock(hashtextextended('weir:kv', 0)); "

const char sql_function_body[] = FUNCTION_BODY;
#define FUNCTION_MAKE                                                                              \
    "DO $do$ BEGIN " WITH_LOCK                                                                     \
    "CREATE OR REPLACE FUNCTION weir_kv_write(kinds int2[], places int4[], partitions bytea[],"    \
    " keys bytea[], vals bytea[], stamps bytea[]) RETURNS int4 LANGUAGE plpgsql"                   \
    " SET plan_cache_mode = force_custom_plan"                                                     \
    " AS $body$" FUNCTION_BODY "$body$; END $do$"

#define FUNCTION_NAME "weir_kv_write(int2[], int4[], bytea[], bytea[], bytea[], bytea[])"

const struct sql sql_table[SQL_COUNT] = {
    /* enable_seqscan is off, so that every statement finds its rows by the primary key, even if its
     * plan was made while the table was small. */
    [SQL_SESSION] =
        {"session",
         "SELECT pg_is_in_recovery(),"
         " set_config('statement_timeout', $1, false),"
         " set_config('idle_in_transaction_session_timeout', $1, false),"
         " set_config('enable_seqscan', 'off', false),"
         " set_config('default_transaction_isolation', 'read committed', false),"
         " set_config('synchronous_commit', CASE current_setting('synchronous_commit')"
         "  WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END, false)",
         {T_TEXT},
         1,
         true},
    [SQL_TABLES] = {"tables",
                    "DO $do$ BEGIN " WITH_LOCK "IF to_regclass('kv') IS NULL THEN"
                    " CREATE TABLE kv (partition_key bytea NOT NULL, key bytea NOT NULL,"
                    "  value bytea NOT NULL, PRIMARY KEY (partition_key, key))"
                    "  PARTITION BY HASH (partition_key);"
                    " FOR i IN 0 .. 99 LOOP"
                    "  EXECUTE format('CREATE TABLE kv_%s PARTITION OF kv"
                    " FOR VALUES WITH (MODULUS 100, REMAINDER %s)', i, i);"
                    " END LOOP; END IF; END $do$",
                    {0},
                    0,
                    true},
    [SQL_LAYOUT] =
        {"layout",
         "SELECT count(*) = 100 AND satisfies_hash_partition(to_regclass('kv'), 100, $1, $2)"
         " FROM pg_inherits JOIN pg_class AS t ON t.oid = inhrelid"
         " WHERE inhparent = to_regclass('kv') AND t.oid = to_regclass(relname::text)"
         " AND pg_get_expr(relpartbound, t.oid) ="
         "  'FOR VALUES WITH (modulus 100, remainder ' || substr(relname, 4) || ')'"
         " AND has_table_privilege(t.oid, 'SELECT') AND has_table_privilege(t.oid, 'INSERT')"
         " AND has_table_privilege(t.oid, 'UPDATE') AND has_table_privilege(t.oid, 'DELETE')",
         {T_INT4, T_BYTEA},
         2,
         true},
    [SQL_FUNCTION_TEXT] = {"function_text",
                           "SELECT prosrc FROM pg_proc WHERE oid = to_regprocedure('" FUNCTION_NAME
                           "')",
                           {0},
                           0,
                           true},
    [SQL_FUNCTION] = {"function", FUNCTION_MAKE, {0}, 0, true},
    [SQL_PROBE] = {"probe",
                   "SELECT pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on'",
                   {0},
                   0},
    [SQL_GET] = {"get",
                 "SELECT value FROM @ WHERE partition_key = $1 AND key = $2",
                 {T_BYTEA, T_BYTEA},
                 2,
                 .routed = true},
    [SQL_PUT] = {"put",
                 "INSERT INTO @ VALUES ($1, $2, $3)"
                 " ON CONFLICT (partition_key, key) DO UPDATE SET value = excluded.value",
                 {T_BYTEA, T_BYTEA, T_BYTEA},
                 3,
                 .routed = true},
    [SQL_PUT_ABSENT] = {"put_absent",
                        "INSERT INTO @ VALUES ($1, $2, $3)"
                        " ON CONFLICT (partition_key, key) DO NOTHING",
                        {T_BYTEA, T_BYTEA, T_BYTEA},
                        3,
                        .routed = true},
    [SQL_PUT_EXISTS] = {"put_exists",
                        "UPDATE @ SET value = $3 WHERE partition_key = $1 AND key = $2",
                        {T_BYTEA, T_BYTEA, T_BYTEA},
                        3,
                        .routed = true},
    [SQL_PUT_SAME] =
        {"put_same",
         "UPDATE @ SET value = $3 WHERE partition_key = $1 AND key = $2 AND value = $4",
         {T_BYTEA, T_BYTEA, T_BYTEA, T_BYTEA},
         4,
         .routed = true},
    [SQL_REMOVE] = {"remove",
                    "DELETE FROM @ WHERE partition_key = $1 AND key = $2",
                    {T_BYTEA, T_BYTEA},
                    2,
                    .routed = true},
    [SQL_REMOVE_SAME] = {"remove_same",
                         "DELETE FROM @ WHERE partition_key = $1 AND key = $2 AND value = $3",
                         {T_BYTEA, T_BYTEA, T_BYTEA},
                         3,
                         .routed = true},
    [SQL_CHECK_EXISTS] = {"check_exists",
                          "SELECT 1 FROM @ WHERE partition_key = $1 AND key = $2",
                          {T_BYTEA, T_BYTEA},
                          2,
                          .routed = true},
    [SQL_CHECK_SAME] = {"check_same",
                        "SELECT 1 FROM @ WHERE partition_key = $1 AND key = $2 AND value = $3",
                        {T_BYTEA, T_BYTEA, T_BYTEA},
                        3,
                        .routed = true},
    [SQL_PUT_ROWS] = {"put_rows",
                      "INSERT INTO @ SELECT $1, * FROM unnest($2, $3)"
                      " ON CONFLICT (partition_key, key) DO UPDATE SET value = excluded.value",
                      {T_BYTEA, T_BYTEAS, T_BYTEAS},
                      3,
                      .routed = true},
    /* Records for the rest of the transaction whether the row has the expected value: appends the
     * digit 1 (yes) or 0 (no) to the setting weir.seen. */
    [SQL_GLANCE] = {"glance",
                    "SELECT count(*) > 0, set_config('weir.seen',"
                    " coalesce(current_setting('weir.seen', true), '') || count(*), true)"
                    " FROM @ WHERE partition_key = $1 AND key = $2 AND value = $3",
                    {T_BYTEA, T_BYTEA, T_BYTEA},
                    3,
                    .routed = true},
    [SQL_PUT_SEEN] = {"put_seen",
                      "INSERT INTO @ SELECT $1, * FROM unnest($2, $3)"
                      " WHERE position('0' IN current_setting('weir.seen')) = 0"
                      " ON CONFLICT (partition_key, key) DO UPDATE SET value = excluded.value",
                      {T_BYTEA, T_BYTEAS, T_BYTEAS},
                      3,
                      .routed = true},
    [SQL_PUT_MANY] = {"put_many",
                      "INSERT INTO kv SELECT * FROM unnest($1, $2, $3)"
                      " ON CONFLICT (partition_key, key) DO UPDATE SET value = excluded.value",
                      {T_BYTEAS, T_BYTEAS, T_BYTEAS},
                      3},
    [SQL_WRITE] = {"write",
                   "SELECT weir_kv_write($1, $2, $3, $4, $5, $6)",
                   {T_INT2S, T_INT4S, T_BYTEAS, T_BYTEAS, T_BYTEAS, T_BYTEAS},
                   6},
/* A page ends after the row that makes its values, taken together, at least $4 bytes long. */
#define PAGE(and_to)                                                                               \
    "SELECT key, value FROM (SELECT key, value, sum(length(value)) OVER"                           \
    "  (ORDER BY key ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) - length(value) AS before"  \
    " FROM @ WHERE partition_key = $1 AND key >= $2" and_to " ORDER BY key LIMIT $3) AS page"      \
    " WHERE before < $4 ORDER BY key"
    [SQL_PAGE] = {"page", PAGE(""), {T_BYTEA, T_BYTEA, T_INT8, T_INT8}, 4, .routed = true},
    [SQL_PAGE_TO] = {"page_to",
                     PAGE(" AND key < $5"),
                     {T_BYTEA, T_BYTEA, T_INT8, T_INT8, T_BYTEA},
                     5,
                     .routed = true},
#undef PAGE
    [SQL_DROP_BOUND] = {"drop_bound",
                        "SELECT key FROM @ WHERE partition_key = $1 AND key >= $2"
                        " ORDER BY key OFFSET 9999 LIMIT 1",
                        {T_BYTEA, T_BYTEA},
                        2,
                        .routed = true},
    [SQL_DROP_TO] = {"drop_to",
                     "DELETE FROM @ WHERE partition_key = $1 AND key >= $2 AND key <= $3",
                     {T_BYTEA, T_BYTEA, T_BYTEA},
                     3,
                     .routed = true},
    [SQL_DROP_REST] = {"drop_rest",
                       "DELETE FROM @ WHERE partition_key = $1 AND key >= $2",
                       {T_BYTEA, T_BYTEA},
                       2,
                       .routed = true},
};

/* Columns: the beginning of PostgreSQL's error code; weir's code. The first entry that matches is
 * used. */
int sql_state_code(const char *state)
{
    static const struct {
        struct str begins;
        int code;
    } states[] = {
        {STR("40001"), ERR_AGAIN},       /* serialization failure */
        {STR("40P01"), ERR_AGAIN},       /* deadlock */
        {STR("55P03"), ERR_BUSY},        /* a lock was not free in time */
        {STR("57014"), ERR_BUSY},        /* statement_timeout */
        {STR("53100"), ERR_NO_SPACE},    /* disk full */
        {STR("53"), ERR_BUSY},           /* too many connections, out of memory */
        {STR("25006"), ERR_UNAVAILABLE}, /* read only: a standby */
        {STR("57P"), ERR_UNAVAILABLE},   /* shutting down or starting */
        {STR("08"), ERR_UNAVAILABLE},    /* connection */
        {STR("28"), ERR_DENIED},         /* wrong user or password */
        {STR("42501"), ERR_DENIED},      /* no right */
        {STR("3D"), ERR_INVALID},        /* no such database */
    };

    for (size_t i = 0; state && i < ARRAY_SIZE(states); i++)
        if (str_starts(str_z(state), states[i].begins))
            return states[i].code;
    return ERR_PEER;
}
