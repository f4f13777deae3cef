/* The commands and their help. Dispatch, help, and the tests of man pages and completions use this
 * table. */
#include "cli/commands.h"

#include <string.h>

#define BIT HF_OPT_BIT
#define PLAIN (BIT(JSON) | BIT(HELP))
#define KEPT (BIT(DATA) | BIT(STORE) | BIT(POSTGRES))
#define PLACE (KEPT | BIT(SERVER) | BIT(CREDENTIAL_FILE) | BIT(TLS_CA) | BIT(TIMEOUT))
#define FILES (PLACE | PLAIN)
#define LOOK (FILES | BIT(TENANT))
#define CHANGES \
    (FILES | BIT(TENANT) | BIT(IDEMPOTENCY_WINDOW) | BIT(TOKEN_MAX_LENGTH) | BIT(REGISTRY))

#define SERVES                                                                                    \
    (BIT(LISTEN) | BIT(THREADS) | BIT(AUTH_FILE) | BIT(TLS_CERT) | BIT(TLS_KEY) | BIT(MAX_BODY) | \
     BIT(MAX_CONNECTIONS) | BIT(TENANT_CONNECTIONS) | BIT(TENANT_RATE) | BIT(MEMORY_MAX) |        \
     BIT(TENANT_MEMORY_MAX) | BIT(TENANT_RECORDS_MAX) | BIT(LOG) | BIT(LOG_KEYS) |                \
     BIT(LOG_DUPLICATES) | BIT(SANDBOX))
#define STORES (KEPT | BIT(IDEMPOTENCY_WINDOW) | BIT(TOKEN_MAX_LENGTH) | BIT(REGISTRY))
#define KEY HF_OPTS_KEY
#define KEYED_REFUSALS "invalid-request, token-collision"

const struct hf_cli_command hf_cli_commands[] = {
    { .name = "serve",
      .run = hf_cmd_serve,
      .args = "",
      .options = BIT(CONFIG) | BIT(WELCOME) | SERVES,
      .globals = STORES | BIT(HELP),
      .summary = "run the server: answer over HTTP",
      .about = "Opens the store and answers over HTTP. SIGTERM stops the server after it has "
               "finished the requests in progress. When it is ready, the first line on stdout "
               "names the address. SIGHUP makes it read the certificate and the auth file again. "
               "Every option can also be set in the config file, as `name = value`, or in the "
               "environment. The command line wins over the environment, and the environment over "
               "the file.",
      .example = "  $ holdfast serve --data ./holdfast-data\n"
                 "  holdfast: listening on http://127.0.0.1:4653\n",
      .refusals = NULL },
    { .name = "check-config",
      .run = hf_cmd_check_config,
      .args = "FILE",
      .args_min = 1,
      .args_max = 1,
      .options = SERVES,
      .globals = STORES | PLAIN,
      .checks = true,
      .summary = "check a config file of serve, without starting a server",
      .about = "Reads FILE as serve --config FILE would, and reports every mistake at once, with "
               "its line, what was found and what is expected. Also looks at what is named there: "
               "the auth file, the certificate and its key, the address, the store's directory. "
               "If there is no mistake, prints what is in force. Options that are given win over "
               "the file, as with serve; environment variables are not used. Opens no store and "
               "no port, and changes nothing.",
      .example = "  $ holdfast check-config holdfast.conf\n"
                 "  holdfast: holdfast.conf:3: threads: \"0\" is invalid; expected: a whole\n"
                 "  number from 1 to 64\n"
                 "  holdfast: holdfast.conf:7: \"0.0.0.0:4653\" is not a loopback address: ...\n"
                 "  holdfast: holdfast.conf has 2 mistakes\n",
      .refusals = NULL },
    { .name = "hold",
      .run = hf_cmd_hold,
      .args = "RESOURCE",
      .args_min = 1,
      .args_max = 1,
      .options = BIT(FOR) | BIT(DURATION) | BIT(FENCE) | KEY,
      .required = BIT(FOR) | BIT(DURATION),
      .globals = CHANGES,
      .keyed = true,
      .summary = "take one unit of a resource for a limited time",
      .about = "Takes one unit of RESOURCE for REQUESTER until the duration has passed. A hold "
               "ends once: confirmed, released or expired. A retry with the same key returns the "
               "first answer and takes no second unit.",
      .example = "  $ holdfast hold room-307 --for guest-91 --duration 15m --key order-8123\n"
                 "  id         2pchzd8hasq1k79e61jzn6k0wx\n"
                 "  state      held\n"
                 "  resource   room-307\n"
                 "  requester  guest-91\n"
                 "  placed     2026-11-15T21:39:57.123Z\n"
                 "  expires    2026-11-15T21:54:57.123Z  (15m)\n",
      .refusals = "refused: resource-unavailable, stale-fence, " KEYED_REFUSALS },
    { .name = "confirm",
      .run = hf_cmd_confirm,
      .args = "ID",
      .args_min = 1,
      .args_max = 1,
      .options = KEY | BIT(LATE),
      .globals = CHANGES,
      .keyed = true,
      .summary = "make a hold final, before it expires",
      .about =
          "Makes the hold final. Its unit stays taken; only reverse gives it back. An overdue hold "
          "cannot be confirmed: the answer is window-elapsed, and not-held after the hold was "
          "expired. Every command that writes expires overdue holds at its end. For a payment that "
          "came late, use --late reacquire: if a unit is still free, a new hold is placed and "
          "confirmed at once, and if none is, window-elapsed means that the money goes back.",
      .example = "  $ holdfast confirm 2pchzd8hasq1k79e61jzn6k0wx --key order-8123-paid\n"
                 "  id         2pchzd8hasq1k79e61jzn6k0wx\n"
                 "  state      confirmed\n"
                 "  resource   room-307\n"
                 "  requester  guest-91\n"
                 "  placed     2026-11-15T21:39:57.123Z\n"
                 "  expires    2026-11-15T21:54:57.123Z  (15m)\n"
                 "  confirmed  2026-11-15T21:41:02.500Z\n",
      .refusals = "refused: not-known, not-held, window-elapsed, " KEYED_REFUSALS },
    { .name = "release",
      .run = hf_cmd_release,
      .args = "ID",
      .args_min = 1,
      .args_max = 1,
      .options = KEY,
      .globals = CHANGES,
      .keyed = true,
      .summary = "give a hold's unit back",
      .about = "Ends the hold and gives its unit back, also if the hold is overdue but not yet "
               "expired. Use reverse for a confirmed hold.",
      .example = "  $ holdfast release 2pchzd8hasq1k79e61jzn6k0wx --json\n"
                 "  key: 019d3f6c-8a1b-7c3e-9f10-2b6a4c8d0e12\n"
                 "  {\"id\":\"2pchzd8hasq1k79e61jzn6k0wx\",\"resource\":\"room-307\",...\n",
      .refusals = "refused: not-known, not-held, " KEYED_REFUSALS },
    { .name = "expire",
      .run = hf_cmd_expire,
      .args = "ID",
      .args_min = 1,
      .args_max = 1,
      .options = KEY,
      .globals = CHANGES,
      .keyed = true,
      .summary = "end an overdue hold",
      .about = "Ends an overdue hold. Every command that writes does this for all overdue holds; "
               "use expire if one must end now.",
      .example = "  $ holdfast expire 2pchzd8hasq1k79e61jzn6k0wx --key tidy-1\n"
                 "  holdfast: window-not-elapsed: The hold's time has not run out. Wait until\n"
                 "  expires_at and retry with a new key, or release it.\n",
      .refusals = "refused: not-known, not-held, window-not-elapsed, " KEYED_REFUSALS },
    { .name = "reverse",
      .run = hf_cmd_reverse,
      .args = "ID",
      .args_min = 1,
      .args_max = 1,
      .options = KEY,
      .globals = CHANGES,
      .keyed = true,
      .summary = "give a confirmed unit back, by a new record",
      .about = "Gives the unit of a confirmed hold back. The confirmed hold does not change; a new "
               "record, with its own id, names it.",
      .example = "  $ holdfast reverse 2pchzd8hasq1k79e61jzn6k0wx --key refund-77\n"
                 "  id         5w0crm2eyxsy4k3pv1y0ajt7d2\n"
                 "  state      released\n"
                 "  resource   room-307\n"
                 "  requester  guest-91\n"
                 "  placed     2026-11-16T09:12:44.010Z\n"
                 "  expires    2026-11-16T09:27:44.010Z  (15m)\n"
                 "  released   2026-11-16T09:12:44.010Z\n"
                 "  reverses   2pchzd8hasq1k79e61jzn6k0wx\n",
      .refusals =
          "refused: not-known, not-held (not confirmed, or already reversed), " KEYED_REFUSALS },
    { .name = "show",
      .run = hf_cmd_show,
      .args = "ID",
      .args_min = 1,
      .args_max = 1,
      .globals = LOOK,
      .names_tenant = true,
      .summary = "show one hold",
      .about = "Shows a hold of any age as it is now. A reversed hold stays confirmed; a line "
               "below it has the time and the id of the reversal. JSON has only the record, "
               "without that line; use trace for it. Changes nothing and creates no store.",
      .example = "  $ holdfast show 2pchzd8hasq1k79e61jzn6k0wx\n"
                 "  id         2pchzd8hasq1k79e61jzn6k0wx\n"
                 "  state      confirmed\n"
                 "  ...\n"
                 "  confirmed  2026-11-15T21:41:02.500Z\n"
                 "  reversed   2026-11-16T09:12:44.010Z  by 5w0crm2eyxsy4k3pv1y0ajt7d2\n",
      .refusals = "refused: not-known" },
    { .name = "list",
      .run = hf_cmd_list,
      .args = "",
      .options = BIT(STATE) | BIT(RESOURCE) | BIT(REQUESTER) | BIT(FROM) | BIT(TO) | BIT(LIMIT) |
                 BIT(CURSOR),
      .globals = LOOK,
      .names_tenant = true,
      .summary = "list holds, newest first",
      .about = "Lists holds, the newest first. The state column marks overdue holds and reversals. "
               "show and trace say which record reversed a confirmed hold. Changes nothing and "
               "creates no store.",
      .example = "  $ holdfast list --state held --limit 1\n"
                 "  ID                          STATE  RESOURCE  REQUESTER  PLACED   ...\n"
                 "  2pchzd8hasq1k79e61jzn6k0wx  held   room-307  guest-91   2026-11-15T21:3...\n",
      .refusals = "refused: invalid-request" },
    { .name = "resource",
      .run = hf_cmd_resource,
      .args = "NAME",
      .args_min = 1,
      .args_max = 1,
      .options = BIT(CAPACITY) | BIT(CLOSE) | BIT(OPEN) | BIT(REQUIRE_FENCE),
      .globals = CHANGES,
      .summary = "show a resource, or set its capacity, or close and open it",
      .about = "Without options, shows the resource. With options, sets it, and creates it if it "
               "is new. This needs no key: retrying is safe. An overdue hold counts as held until "
               "it is expired: by the next hold on the resource, or by the next command that "
               "writes. The text shows how many are overdue; JSON counts them as held. With "
               "--require-fence yes, a hold without --fence is refused.",
      .example = "  $ holdfast resource room-307 --capacity 2\n"
                 "  resource   room-307\n"
                 "  state      open\n"
                 "  capacity   2  (1 held of which 1 overdue, 0 confirmed)\n"
                 "  available  1  (and the overdue ones, which a new hold expires first)\n"
                 "  fence      0\n",
      .refusals = "refused: not-known, resource-unavailable (capacity below what is taken), "
                  "invalid-request" },
    { .name = "guard",
      .run = hf_cmd_guard,
      .args = "NAME",
      .args_min = 1,
      .args_max = 1,
      .options = BIT(WINDOW) | BIT(MATCH) | BIT(ON_UNAVAILABLE) | BIT(DURABLE) | BIT(FORCE),
      .globals = CHANGES,
      .summary = "set up or show a guard against duplicates",
      .about = "A guard answers whether an identity was recorded within its window. Without "
               "--window, shows the guard; with it, sets all its properties. A new window applies "
               "to identities that are recorded from now on. The match rule changes only while no "
               "identity is under guard, or with --force: then a duplicate of one may not be "
               "recognised. With --durable no, identities are "
               "remembered only while one process has the store open. A command closes the store "
               "at its end, so such a guard remembers nothing between commands.",
      .example = "  $ holdfast guard comments --window 60s --match trim,normalize\n"
                 "  guard           comments\n"
                 "  window          1m\n"
                 "  match           trim,normalize\n"
                 "  on unavailable  open\n"
                 "  durable         yes\n"
                 "  created         2026-11-15T21:39:57.123Z\n",
      .refusals = "refused: not-known, window-not-elapsed (another match rule while identities are "
                  "under guard), invalid-request" },
    { .name = "check",
      .run = hf_cmd_check,
      .args = "GUARD IDENTITY",
      .args_min = 2,
      .args_max = 2,
      .options = BIT(FAIL_IF_SEEN),
      .globals = LOOK,
      .summary = "ask a guard whether an identity was recorded",
      .about = "Prints seen or not-seen, and from when until when. The exit code is 0 for both, "
               "unless --fail-if-seen is given. Changes nothing and creates no store.",
      .example = "  $ holdfast check comments 'Nice  post!'\n"
                 "  seen\n"
                 "  recorded  2026-11-15T21:39:57.123Z\n"
                 "  until     2026-11-15T21:40:57.123Z\n",
      .refusals = "refused: not-known (no such guard), invalid-request; or seen, with "
                  "--fail-if-seen" },
    { .name = "record",
      .run = hf_cmd_record,
      .args = "GUARD IDENTITY",
      .args_min = 2,
      .args_max = 2,
      .options = BIT(RESULT),
      .globals = CHANGES,
      .summary = "record an identity in a guard",
      .about = "Records the identity, with an optional result. If it is already recorded, nothing "
               "changes: neither the time nor the result.",
      .example = "  $ holdfast record payments pay-17 --result 'receipt 4711'\n"
                 "  ok\n",
      .refusals = "refused: not-known (no such guard), invalid-request" },
    { .name = "admit",
      .run = hf_cmd_admit,
      .args = "GUARD IDENTITY",
      .args_min = 2,
      .args_max = 2,
      .options = BIT(RESULT) | BIT(FAIL_IF_SEEN),
      .globals = CHANGES,
      .summary = "check and record in one step",
      .about = "Check and record in one atomic step: prints not-seen for the first call, and seen "
               "for all later calls within the window.",
      .example = "  $ holdfast admit payments pay-17 --json\n"
                 "  {\"seen\":false}\n",
      .refusals = "refused: not-known (no such guard), invalid-request; or seen, with "
                  "--fail-if-seen" },
    { .name = "claim",
      .run = hf_cmd_claim,
      .args = "begin|show|list|heartbeat|complete|fail|abandon [KEY]",
      .args_min = 1,
      .args_max = 2,
      .options = BIT(PAYLOAD) | BIT(FINGERPRINT) | BIT(LEASE) | BIT(RETENTION) | BIT(ON_ABANDON) |
                 BIT(FENCE) | BIT(RESPONSE) | BIT(ERROR) | BIT(RETRYABLE) | BIT(STATUS) |
                 BIT(PREFIX) | BIT(FROM) | BIT(TO) | BIT(LIMIT) | BIT(CURSOR),
      .globals = CHANGES,
      .names_tenant = true,
      .summary = "reserve a key for an outside effect, and settle it",
      .about = "A claim reserves KEY for an effect outside of the store, such as a card charge. "
               "begin starts it and prints its fence. With this fence, complete or fail settles "
               "it, heartbeat keeps its lease, and abandon says that the outcome is not known. "
               "If its lease runs out first, the claim is unknown, and no begin runs the effect "
               "again until it is settled. A settled claim is remembered for its retention; then "
               "the key begins again. list without --tenant shows unsettled claims of all tenants "
               "if it is given --status unknown or started: from a directory or database, and from "
               "a server with the credential of an operator. An operator also settles them, with "
               "--tenant.",
      .example =
          "  $ holdfast claim list --status unknown\n"
          "  KEY    STATUS   FENCE  BEGUN                     LEASE ENDS / SETTLED      ...\n"
          "  pay-1  unknown  7      2026-11-15T21:39:57.123Z  2026-11-15T21:40:57.123Z  ...\n"
          "  $ holdfast claim complete pay-1 --fence 7 --response '{\"charge\":\"ch_1\"}'\n"
          "  key              pay-1\n"
          "  status           completed\n"
          "  ...\n",
      .refusals = "refused: not-known, in-progress, outcome-unknown, token-collision, stale-fence, "
                  "not-held (it is settled), invalid-request" },
    { .name = "lease",
      .run = hf_cmd_lease,
      .args = "grant|renew|release|show|delete NAME",
      .args_min = 1,
      .args_max = 2,
      .options = BIT(HOLDER) | BIT(TTL) | BIT(FENCE) | KEY,
      .globals = CHANGES,
      .keyed = true,
      .summary = "get authority over a name, with a fence, for a limited time",
      .about = "A lease gives one holder authority over NAME until its time has passed, and a "
               "fence: a number that rises with every grant. grant gets it, renew extends it, "
               "release gives it back, and delete removes a lease that is free, or held with "
               "this fence. The holder sends the fence with every write, so that the store refuses "
               "an older holder that has not noticed its end. grant and delete take a key; renew "
               "and release name the fence, so retrying them is safe.",
      .example = "  $ holdfast lease grant leader --holder worker-7 --ttl 30s --key shift-12\n"
                 "  lease    leader\n"
                 "  holder   worker-7\n"
                 "  fence    12\n"
                 "  granted  2026-11-15T21:39:57.123Z\n"
                 "  expires  2026-11-15T21:40:27.123Z  (30s)\n",
      .refusals = "refused: lease-held, not-known, not-held, stale-fence, " KEYED_REFUSALS },
    { .name = "register",
      .run = hf_cmd_register,
      .args = "write|merge|show|delete NAME",
      .args_min = 1,
      .args_max = 2,
      .options = BIT(VALUE) | BIT(TYPE) | BIT(FENCE) | BIT(IF_VERSION) | BIT(REQUIRE_FENCE) | KEY,
      .globals = CHANGES,
      .keyed = true,
      .summary = "write or merge a named value, guarded by a fence or a version",
      .about =
          "A register is a named value with a version. write sets it: with --fence, unless a write "
          "with a newer fence came first, and with --if-version, only if it has this version. "
          "merge combines a value with it so that order and repetition do not matter, and needs no "
          "key. The value of --type max and min is a whole number; of or, true or false; of union, "
          "an array of strings; of lww, {\"value\":V,\"timestamp\":N,\"node\":NODE}; of vector and "
          "counter, {NODE:N}; of updown, {NODE:{\"up\":N,\"down\":N}}. The first write or merge "
          "decides the type for good. delete removes the value; its highest fence stays in force. "
          "After write --require-fence yes, a write or deletion without --fence is refused. write "
          "and delete take a key.",
      .example = "  $ holdfast register merge visits --type counter --value '{\"web-1\":17}'\n"
                 "  register  visits\n"
                 "  type      counter\n"
                 "  value     {\"web-1\":17}\n"
                 "  total     17\n"
                 "  version   1\n"
                 "  fence     0\n",
      .refusals = "refused: not-known, stale-fence, version-mismatch, " KEYED_REFUSALS },
    { .name = "audit",
      .run = hf_cmd_audit,
      .args = "",
      .options = BIT(EXPECT_HEAD),
      .globals = LOOK,
      .summary = "prove from the records that nothing happened twice",
      .about =
          "Reads the journal and checks every rule over every record. Shares no code with the code "
          "that writes them. Can run while a server uses the store. Changes nothing. Reads the "
          "whole store; with --tenant, checks, counts and names only that tenant's records.",
      .example = "  $ holdfast audit | head -2\n"
                 "  No duplicate state change occurred: 4 requests with a key, each decided once;\n"
                 "  1 hold, made by its own key; all 38 checks passed.\n",
      .refusals =
          "a rule is violated, the journal is damaged, or the expected head is missing; the "
          "report names the records" },
    { .name = "trace",
      .run = hf_cmd_trace,
      .args = "[ID|KEY]",
      .args_max = 1,
      .options = BIT(CLIENT) | BIT(SEQUENCE),
      .globals = LOOK,
      .summary = "show every event of a hold or a key",
      .about =
          "Shows everything that the journal has about a hold, by its id, or about a key; with "
          "--client and --sequence, about the request that a numbered client sent with that "
          "number. Can run while a server uses the store. Changes nothing. Without --tenant, "
          "searches all tenants; with it, holds and keys of other tenants are not known.",
      .example = "  $ holdfast trace 2pchzd8hasq1k79e61jzn6k0wx\n"
                 "  Hold 2pchzd8hasq1k79e61jzn6k0wx: 1 event\n"
                 "\n"
                 "  2026-11-15T21:39:57.123Z  placed by key \"order-8123\" for 15m: ...\n"
                 "\n"
                 "  As of 2026-11-15T21:39:57.123Z: held\n",
      .refusals = "no such hold, key or number" },
    { .name = "export",
      .run = hf_cmd_export,
      .args = "FILE",
      .args_min = 1,
      .args_max = 1,
      .options = BIT(FORMAT),
      .required = BIT(FORMAT),
      .globals = PLACE | BIT(TENANT) | BIT(HELP),
      .summary = "write all records to a file, as JSON lines or SQLite",
      .about = "Writes all records to FILE, which must not exist; - is the standard output, for "
               "jsonl. Can run while a server uses the store. Changes nothing in the store. With "
               "--tenant, writes only that tenant's records, and the configurations.",
      .example = "  $ holdfast export --format jsonl - | wc -l\n"
                 "  1284\n",
      .refusals = "the file already exists, or the journal is damaged (the undamaged records are "
                  "written)" },
    { .name = "bench",
      .run = hf_cmd_bench,
      .args = "",
      .args_max = 64,
      .options = BIT(TOKENS) | BIT(RESOURCES) | BIT(TIME) | BIT(ROUNDS) | BIT(DIR) | BIT(OUT),
      .globals = PLAIN,
      .raw = true,
      .summary = "measure the store on this machine",
      .about = "Measures durable holds, replays, recovery and memory beside the bare log: the same "
               "bytes appended and synced, and nothing else. Works in its own folder and removes "
               "it at the end.",
      .example = "  $ holdfast bench | grep -w -e G -e 64\n"
                 "                  G     a second    CPU us    p50 us    p99 us  p99.9 us ...\n"
                 "  holdfast       64        45525      2.42       279      5332      5332 ...\n"
                 "  bare log       64        25917      0.94      3755      5048      5048 ...\n",
      .refusals = NULL },
    { .name = "simulate",
      .run = hf_cmd_simulate,
      .args = "",
      .options = BIT(SEED) | BIT(SEEDS) | BIT(OPS) | BIT(JOBS) | BIT(RECORD) | BIT(TRACE_HASH) |
                 BIT(MINIMIZE),
      .globals = PLAIN,
      .summary = "test the store with random faults",
      .about = "Runs the store over simulated files, clocks and clients, in one thread, with "
               "random retries, wrong keys, power cuts, torn and lost writes, full and failing "
               "disks, and clocks that jump. A judge that shares no code with the store reports "
               "every answer that the rules do not allow. A seed determines everything: the same "
               "seed repeats the same run.",
      .example = "  $ holdfast simulate --seeds 2 --trace-hash | cut -d' ' -f1-3\n"
                 "  seed 1 trace\n"
                 "  seed 2 trace\n"
                 "  2 seeds from\n",
      .refusals = "a seed failed; the output names it and says what was wrong" },
    { .name = "version",
      .run = hf_cmd_version,
      .args = "",
      .globals = (PLACE & ~KEPT) | PLAIN,
      .summary = "print the version",
      .about = "Prints the version of program and library; with --server on the command line, also "
               "the server's version.",
      .example = "  $ holdfast version\n"
                 "  holdfast " HF_VERSION "\n",
      .refusals = NULL },
    { .name = "help",
      .run = hf_cmd_help,
      .args = "[COMMAND]",
      .args_max = 1,
      .options = BIT(LIST),
      .globals = BIT(HELP),
      .summary = "show the help of the program or of one command",
      .about = "Lists the commands, or shows the help of one command.",
      .example = "  $ holdfast help hold | head -1\n"
                 "  usage: holdfast hold RESOURCE --for REQUESTER --duration D ...\n",
      .refusals = NULL },
};

const size_t hf_cli_command_count = sizeof hf_cli_commands / sizeof *hf_cli_commands;

const struct hf_cli_command *hf_cli_command_find(const char *name)
{
    for (size_t i = 0; i < hf_cli_command_count; i++)
        if (strcmp(hf_cli_commands[i].name, name) == 0)
            return &hf_cli_commands[i];
    return NULL;
}

const struct hf_cli_command *hf_cli_command_nearest(const char *name)
{
    const struct hf_cli_command *best = NULL;
    unsigned least = 3;
    for (size_t i = 0; i < hf_cli_command_count; i++) {
        unsigned d = hf_cli_distance(hf_cli_commands[i].name, name);
        if (d < least) {
            least = d;
            best = &hf_cli_commands[i];
        }
    }
    return best;
}
