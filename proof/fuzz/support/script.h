/* script.h: requests out of bytes.
 *
 * Names, keys, times and fences come from small pools, so that requests meet each other, with
 * things among them that no request may have. A few bytes are a request; any bytes are some. */
#ifndef HF_PROOF_FUZZ_SUPPORT_SCRIPT_H
#define HF_PROOF_FUZZ_SUPPORT_SCRIPT_H

#include "fuzz/support/fuzz.h"
#include "judge/judge.h"

enum { FUZZ_IDS = 8, FUZZ_EFFECTS = 4 };

/* What the function of an apply does, and what it did. */
struct fuzz_apply {
    struct {
        enum { FUZZ_PUT, FUZZ_DELETE, FUZZ_ENQUEUE, FUZZ_RESULT, FUZZ_APPLY_STEPS } what;
        struct hf_bytes name, bytes;
    } steps[FUZZ_EFFECTS];
    size_t step_count;
    enum hf_status returns;
    struct judge_effect effect;
    struct judge_row rows[FUZZ_EFFECTS];
    struct judge_intent intents[FUZZ_EFFECTS];
};

struct fuzz_script {
    struct fuzz_input in;
    char ids[FUZZ_IDS][HF_ID_SIZE]; /* of holds that were answered, newest over oldest */
    unsigned id_next;
    uint64_t fence; /* that was answered last */
    /* The next request lives here. */
    struct hf_request request;
    struct hf_value value;
    struct hf_item items[4];
    uint8_t fingerprint[HF_DIGEST_SIZE];
    struct fuzz_apply apply;
};

/* Make s->request. Good until the next one is made. */
void fuzz_script_next(struct fuzz_script *s);
/* Note what the answer brings for later requests. */
void fuzz_script_learn(struct fuzz_script *s, const struct hf_result *result);

#endif
