/* Computes how different two names are, as the "optimal string alignment distance". Only three rows
 * of its table are needed at a time. */
#include "conf/nearest.h"

#include <ctype.h>

static bool letters_match(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

size_t nearest_distance(struct str a, struct str b)
{
    size_t rows[3][NEAREST_MAX + 1];
    size_t *before = rows[0], *above = rows[1], *row = rows[2];

    if (a.len > NEAREST_MAX || b.len > NEAREST_MAX)
        return NEAREST_MAX;
    for (size_t j = 0; j <= b.len; j++)
        row[j] = j;
    for (size_t i = 1; i <= a.len; i++) {
        size_t *spare = before;
        before = above;
        above = row;
        row = spare;
        row[0] = i;
        for (size_t j = 1; j <= b.len; j++) {
            size_t change = above[j - 1] + !letters_match(a.p[i - 1], b.p[j - 1]);
            row[j] = size_min(change, size_min(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && letters_match(a.p[i - 1], b.p[j - 2]) &&
                letters_match(a.p[i - 2], b.p[j - 1]))
                row[j] = size_min(row[j], before[j - 2] + 1);
        }
    }
    return row[b.len];
}

void nearest_offer(struct nearest *n, const char *name)
{
    size_t distance = nearest_distance(n->typed, str_z(name));
    if (distance < n->distance) {
        n->distance = distance;
        n->best = name;
    }
}
