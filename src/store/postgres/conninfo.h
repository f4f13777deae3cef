/* conninfo.h: connection strings of PostgreSQL, and what may be told of them.
 *
 * Such a string may hold a password, and libpq repeats parts of one that it does not understand; so
 * nobody prints a connection string, or what libpq says about it, without these. */
#ifndef HF_STORE_POSTGRES_CONNINFO_H
#define HF_STORE_POSTGRES_CONNINFO_H

#include "holdfast.h"

/* hf_conninfo_check: can libpq read this? conninfo: borrowed; "" is the string that leaves all to
 * the environment of libpq and to its defaults. why: out. HF_OK, HF_INVALID_REQUEST with a sentence
 * that repeats nothing of it, or HF_NO_MEMORY. */
HF_MUST_USE enum hf_status hf_conninfo_check(const char *conninfo, struct hf_error *why);

/* hf_conninfo_show: which database that is, for people, such as: database "shop" at
 * db1:5432,db2:5432. Never the password. out: `room` bytes. */
void hf_conninfo_show(const char *conninfo, char *out, size_t room);

/* hf_conninfo_hide: in `text`, put *** in place of every password of the connection string and of
 * PGPASSWORD. In place; what is longer than what it stands for pushes the end out of `room`. */
void hf_conninfo_hide(const char *conninfo, char *text, size_t room);

/* hf_conninfo_value: the value of one parameter of libpq, such as "port": of the connection string,
 * else of libpq's environment, else libpq's default. Out: `room` bytes, "" if there is none or it
 * does not fit. */
void hf_conninfo_value(const char *conninfo, const char *keyword, char *out, size_t room);

#endif
