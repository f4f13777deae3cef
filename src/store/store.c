#include "store/store.h"

#include "base/error.h"
#include "store/journal/writer.h"
#ifndef HF_NO_POSTGRES /* CMake: -DHF_POSTGRES=OFF leaves out the folder postgres */
#include "store/postgres/postgres.h"
#endif

enum hf_status hf_store_open(const char *path, const struct hf_options *options,
                             const struct hf_store_host *host, struct hf_store **out,
                             struct hf_error *why)
{
    if (!options->postgres)
        return hf_journal_store_open(path, options, host, out, why);
#ifdef HF_NO_POSTGRES
    return hf_error_set(why, HF_MISUSE,
                        "this library was built without PostgreSQL and can only open a "
                        "directory");
#else
    return hf_postgres_open(options, host, out, why);
#endif
}
