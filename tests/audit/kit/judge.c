#include "audit/kit/judge.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

struct judge judge;

int judge_setup(void **state)
{
    (void)state;
    story_open(&judge.story);
    return 0;
}

int judge_teardown(void **state)
{
    (void)state;
    hf_audit_report_free(&judge.report);
    story_remove(&judge.story);
    return 0;
}

void judge_run(void)
{
    struct hf_error why;
    story_close(&judge.story);
    assert_int_equal(hf_audit_run(judge.story.dir, NULL, &judge.report, &why), HF_OK);
}

void judge_show(void)
{
    for (size_t i = 0; i < HF_AUDIT_CHECKS; i++)
        for (size_t k = 0; k < judge.report.checks[i].example_count; k++)
            print_message("%s: %s\n", judge.report.checks[i].name,
                          judge.report.checks[i].examples[k]);
}

static bool sentence_found(const struct hf_audit_check *c, const char *words)
{
    for (size_t k = 0; k < c->example_count; k++)
        if (strstr(c->examples[k], words))
            return true;
    return false;
}

void judged(const char *name, const char *words)
{
    if (judge.story.w.open)
        story_commit(&judge.story);
    if (judge.story.w.segment)
        judge_run();
    assert_int_not_equal(judge.report.verdict, HF_AUDIT_OK);
    for (size_t i = 0; i < HF_AUDIT_CHECKS; i++)
        if (strcmp(judge.report.checks[i].name, name) == 0 &&
            sentence_found(&judge.report.checks[i], words))
            return;
    judge_show();
    fail_msg("%s does not say \"%s\"", name, words);
}

void judged_only(const char *names)
{
    for (size_t i = 0; i < HF_AUDIT_CHECKS; i++) {
        char word[32];
        snprintf(word, sizeof word, " %s ", judge.report.checks[i].name);
        if (judge.report.checks[i].violations > 0 && !strstr(names, word)) {
            judge_show();
            fail_msg("%s is broken too", judge.report.checks[i].name);
        }
    }
}
