/* hostile.h: the hostile requests of tests/http/hostile, whose README tells the format. */
#ifndef HF_TESTS_SERVER_KIT_HOSTILE_H
#define HF_TESTS_SERVER_KIT_HOSTILE_H

#include <stdbool.h>
#include <stddef.h>

enum hf_hostile_layer {
    HF_HOSTILE_NONE,
    HF_HOSTILE_HEAD,
    HF_HOSTILE_CHUNK,
    HF_HOSTILE_BODY,
    HF_HOSTILE_AUTH,
    HF_HOSTILE_ROUTE,
    HF_HOSTILE_DECODE,
    HF_HOSTILE_CORE,
    HF_HOSTILE_LAYERS
};

enum hf_hostile_close { HF_HOSTILE_MUST_CLOSE, HF_HOSTILE_MUST_STAY, HF_HOSTILE_MAY_CLOSE };

#define HF_HOSTILE_ANSWERS 4
#define HF_HOSTILE_CHOICES 4

struct hf_hostile_case {
    char *where; /* "file:line", of the line with its name */
    char *name;
    bool auth; /* for the server with credentials */
    enum hf_hostile_layer layer;
    enum hf_hostile_close close;
    size_t answers; /* 1 .. HF_HOSTILE_ANSWERS */
    unsigned status[HF_HOSTILE_ANSWERS]
                   [HF_HOSTILE_CHOICES]; /* any of them, 0 where there are fewer */
    char *bytes;
    size_t size;
};

struct hf_hostile {
    struct hf_hostile_case *cases;
    size_t count;
};

/* Read all *.case files of `dir`, in the order of their names. NULL: the folder that came with the
 * source. A file that breaks a rule of the format fails the test, with its name and line. Owned,
 * free with hf_hostile_free. */
struct hf_hostile hf_hostile_load(const char *dir);
void hf_hostile_free(struct hf_hostile *h);

/* May answer number `answer` (0, 1, ...) of the case have this status? */
bool hf_hostile_allows(const struct hf_hostile_case *c, size_t answer, unsigned status);

/* "head", "chunk", ... Static. */
const char *hf_hostile_layer_name(enum hf_hostile_layer layer);

#endif
