/* json_tree.h: JSON as a tree, and a small judge of JSON Schema, for tests that hold answers
 * against their description.
 *
 * The judge knows what the description of the interface uses: $ref, type, const, enum, properties,
 * required, items, additionalProperties, anyOf, oneOf, minimum, maximum, minLength, pattern only as
 * far as "hexadecimal or duration". It is stricter than JSON Schema in one way: a member that is
 * not among the properties is wrong. */
#ifndef HF_TESTS_SERVER_KIT_JSON_TREE_H
#define HF_TESTS_SERVER_KIT_JSON_TREE_H

#include "json/reader.h"

struct tree {
    enum hf_reader_type type;
    struct hf_bytes text; /* of a string, unescaped; of a number, as written */
    struct hf_bytes name; /* within its object */
    struct tree *child;   /* of an object or array: the first */
    struct tree *next;    /* the one behind it in the same object or array */
};

/* Read the whole text; NULL with the reason on stderr if it is not JSON. text: borrowed. Lives in
 * the arena. */
struct tree *tree_read(struct hf_bytes text, struct hf_arena *arena);

/* The member of an object, or NULL. t may be NULL. */
struct tree *tree_get(const struct tree *t, const char *name);
/* A member's member's member: tree_at(t, "info", "version", NULL). NULL if one is missing. */
struct tree *tree_at(const struct tree *t, ...) __attribute__((sentinel));
size_t tree_count(const struct tree *t);
bool tree_is(const struct tree *t, const char *text);
/* Has the array this string? */
bool tree_has(const struct tree *array, const char *text);
/* What a "#/a/b" points to, with ~1 and ~0 understood; NULL if nothing. */
struct tree *tree_resolve(struct tree *document, struct hf_bytes pointer);

/* Does the value obey the schema? If not, `why` says where. */
bool tree_obeys(struct tree *document, struct tree *schema, const struct tree *value,
                char why[256]);

#endif
