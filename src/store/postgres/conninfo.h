/* conninfo.h: connection strings of PostgreSQL, and how to print them.
 *
 * A connection string may hold a password, and libpq quotes parts of a string that it cannot parse.
 * So print a connection string, or libpq's message about it, only with these functions. */
#ifndef HF_STORE_POSTGRES_CONNINFO_H
#define HF_STORE_POSTGRES_CONNINFO_H

#include "holdfast.h"

/* hf_conninfo_check: can libpq parse this? conninfo: borrowed; "" uses libpq's environment and
 * defaults. why: out. HF_OK, HF_INVALID_REQUEST with a sentence that quotes nothing of it, or
 * HF_NO_MEMORY. */
HF_MUST_USE enum hf_status hf_conninfo_check(const char *conninfo, struct hf_error *why);

/* hf_conninfo_show: the database's name and address for people, such as: database "shop" at
 * db1:5432,db2:5432. Never the password. out: `room` bytes. */
void hf_conninfo_show(const char *conninfo, char *out, size_t room);

/* hf_conninfo_hide: replace every password of the connection string and of PGPASSWORD in `text` by
 * ***. In place; if the text grows, its end is cut at `room`. */
void hf_conninfo_hide(const char *conninfo, char *text, size_t room);

/* hf_conninfo_value: the value of one parameter of libpq, such as "port": from the connection
 * string, else from libpq's environment, else libpq's default. Out: `room` bytes, "" if there is
 * none or it does not fit. */
void hf_conninfo_value(const char *conninfo, const char *keyword, char *out, size_t room);

#endif
