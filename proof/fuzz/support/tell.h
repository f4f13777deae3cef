/* tell.h: short stories told to a store through the public library, for stores and inputs to begin
 * with. */
#ifndef HF_PROOF_FUZZ_SUPPORT_TELL_H
#define HF_PROOF_FUZZ_SUPPORT_TELL_H

#include "holdfast.h"

/* One story each; all of them are about the tenants "" and "t", and name what they make by these
 * names. */
enum fuzz_story {
    FUZZ_STORY_HOLDS,
    FUZZ_STORY_GUARDS,
    FUZZ_STORY_CLAIMS,
    FUZZ_STORY_REGISTERS,
    FUZZ_STORY_NUMBERS, /* of a client */
    FUZZ_STORY_APPLY,   /* needs segments of 2 MiB */
    FUZZ_STORIES
};

/* Tell it. round: a number that makes keys differ, so that a story can be told again. */
void fuzz_tell(struct hf_db *db, enum fuzz_story story, unsigned round);
/* Go on until the next segment of the journal has begun, as it soon does: a merge asks for more
 * room than it uses. */
void fuzz_tell_segment(struct hf_db *db, unsigned round);

#endif
