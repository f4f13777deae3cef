/* judge.h: one story, one audit, and what is expected of it. For the tests of the auditor's
 * checks. */
#ifndef HF_TESTS_AUDIT_KIT_JUDGE_H
#define HF_TESTS_AUDIT_KIT_JUDGE_H

#include "audit/audit.h"
#include "audit/kit/journal_story.h"

struct judge {
    struct story story;
    struct hf_audit_report report;
};

extern struct judge judge;

/* A fresh story, and the end of it: setup and teardown of a test. */
int judge_setup(void **state);
int judge_teardown(void **state);

/* Write the story out and audit it. */
void judge_run(void);

/* Print all violations. */
void judge_show(void);

/* Commit what is open, audit (once a test), and expect a violation of the check `name` whose
 * sentence has `words` in it. */
void judged(const char *name, const char *words);

/* Expect that no other check is broken than those named, each between spaces: " PC1 IR5 ". */
void judged_only(const char *names);

#endif
