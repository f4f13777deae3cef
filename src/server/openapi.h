/* openapi.h: shared by the files of the description at /v1/openapi.json; no other file includes it.
 *
 *   openapi.c          the document: every call of the table, with its parameters
 *   openapi_body.c     inputs of a call: fields, bodies, lines of a bulk request
 *   openapi_answer.c   answers of a call, by status
 *   openapi_schema.c   records and pages
 *   openapi_problem.c  refusals and their codes
 *
 * All functions append to the writer; "A value" means one value without a name. */
#ifndef HF_SERVER_OPENAPI_H
#define HF_SERVER_OPENAPI_H

#include "api/call.h"
#include "json/writer.h"

/* ---- openapi.c ---- */

/* A member with a text. name, text: borrowed. */
void hf_openapi_text(struct hf_json *j, const char *name, const char *text);
/* A value: {"$ref":"#/components/<kind>/<name>"}. */
void hf_openapi_ref(struct hf_json *j, const char *kind, const char *name);
/* A member "enum" from "a|b|c". */
void hf_openapi_choices(struct hf_json *j, const char *choices);

/* ---- openapi_body.c ---- */

/* A value: the schema of a field. with_help: add the help as its description (a parameter has its
 * description outside of the schema). */
void hf_openapi_field(struct hf_json *j, const struct hf_call_field *field, bool with_help);
/* A value: the schema of the call's body. */
void hf_openapi_body(struct hf_json *j, const struct hf_call *call);
/* Members: batch_<op> for each operation of a bulk request, and batch_operation: any one of
 * them. */
void hf_openapi_operations(struct hf_json *j);

/* ---- openapi_answer.c ---- */

/* A member "responses": all answers of the call. */
void hf_openapi_responses(struct hf_json *j, const struct hf_call *call);
/* A member "responses": the answers that calls refer to. */
void hf_openapi_shared_responses(struct hf_json *j);
/* A member named after the media type. schema: the name of a schema, or NULL: text. line: the
 * schema of each line, or NULL. OpenAPI 3.1 cannot describe a line; 3.2 has itemSchema. */
void hf_openapi_content(struct hf_json *j, const char *media, const char *schema, const char *line);

/* ---- openapi_schema.c and openapi_problem.c ---- */

/* Members: the schemas of all answers. */
void hf_openapi_answers(struct hf_json *j);
/* A member: the schema "problem". */
void hf_openapi_problem(struct hf_json *j);
/* The sentence that describes the schema of this name. Static. */
const char *hf_openapi_about(const char *schema);

#endif
