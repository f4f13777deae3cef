# compare.md: the report for people.
function cell(c, s, m) { return has(c, s, m) ? thousands(median(c, s, m)) : "-" }

function us(c, s, m,    x) {
  if (!has(c, s, m)) return "-"
  x = median(c, s, m)
  return x < 1000 ? sprintf("%.0f us", x) : figures(x / 1000) " ms"
}

function row(c, s, what) {
  if (!has(c, s, "per_second")) return
  printf "| %s | %s | %s | %s to %s | %s | %s | %s | %s | %s | %s |\n", what, system_name(s),
    cell(c, s, "per_second"), thousands(least(c, s, "per_second", 1)), thousands(least(c, s, "per_second", -1)),
    us(c, s, "p50_us"), us(c, s, "p99_us"), us(c, s, "p999_us"), us(c, s, "max_us"),
    figures(median(c, s, "client_cpu_us")), figures(median(c, s, "server_cpu_us"))
}

function rows(c, what) {
  row(c, "holdfast", what)
  row(c, "redis", what)
  row(c, "postgres", what)
  row(c, "shared", what)
}

function figures_table() {
  print "| case | system | a second | rounds | p50 | p99 | p99.9 | max | client CPU us | server CPU us |"
  print "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|"
  rows("place_64", "place_hold, 64 connections")
  rows("place_256", "place_hold, 256 connections")
  rows("replay_64", "replay, 64 connections")
  row("select_64", "postgres", "SELECT by primary key, 64 connections")
  row("empty_64", "holdfast", "empty answer, 64 connections")
  row("batch_256", "holdfast", "batch of 256, 8 connections")
  row("pipeline_16", "redis", "pipelined by 16, 64 connections")
  row("batch_256", "redis", "pipelined by 256, 8 connections")
  row("batch_256", "postgres", "arrays of 256, 8 connections")
  row("batch_32", "postgres", "arrays of 32, 2 connections")
  row("batch_256", "shared", "batch of 256, 8 connections")
  row("two_64", "shared", "place_hold, two servers, 64 connections in all")
  row("two_128", "shared", "place_hold, two servers, 128 connections in all")
  rows("half_64", "half of the greatest load, 64 connections")
  row("slow_64", "holdfast", "the same beside 2,000 slow senders")
  print ""
  print "A second counts requests; the times are of a call, which is a request, a pipeline or a batch. CPU is in"
  print "microseconds a request: the load generator's, and the server's with all its threads and processes."
  print "\"Rounds\" is the least and the greatest of the rounds. At half of the greatest load calls are due at even"
  print "distances and their time runs from when they were due, so waiting in a queue counts."
}

# who divided by s
function ratio_row(what, c, s, peer_case, who,    list, n, i) {
  if (who == "") who = "holdfast"
  if (!has(c, who, "per_second") || !has(peer_case, s, "per_second")) return
  printf "| %s | %s |", what, system_name(s)
  n = split("per_second p50_us p99_us p999_us client_cpu_us server_cpu_us", list, " ")
  for (i = 1; i <= n; i++) printf " %s |", figures(ratio(c, who, list[i], peer_case, s, list[i]))
  print ""
}

function ratio_rows(what, c) {
  ratio_row(what, c, "redis", c)
  ratio_row(what, c, "postgres", c)
}

function ratio_table() {
  print "| Holdfast's figure divided by that of | | a second | p50 | p99 | p99.9 | client CPU | server CPU |"
  print "|---|---|--:|--:|--:|--:|--:|--:|"
  ratio_rows("place_hold, 64 connections", "place_64")
  ratio_rows("place_hold, 256 connections", "place_256")
  ratio_rows("replay, 64 connections", "replay_64")
  ratio_row("replay by an empty answer", "replay_64", "holdfast", "empty_64")
  ratio_row("batch of 256 by a pipeline of 16", "batch_256", "redis", "pipeline_16")
  ratio_row("batch of 256 by a pipeline of 256", "batch_256", "redis", "batch_256")
  ratio_row("batch of 256 by arrays of 256", "batch_256", "postgres", "batch_256")
  ratio_row("batch of 256 by single calls", "batch_256", "holdfast", "place_64")
  ratio_rows("half of the own greatest load", "half_64")
  ratio_row("beside slow senders by without", "slow_64", "holdfast", "half_64")
  ratio_row("on PostgreSQL: place_hold, 64 connections", "place_64", "postgres", "place_64", "shared")
  ratio_row("on PostgreSQL: place_hold, 256 connections", "place_256", "postgres", "place_256", "shared")
  ratio_row("on PostgreSQL: place_hold by arrays of 256", "place_64", "postgres", "batch_256", "shared")
  ratio_row("on PostgreSQL: place_hold by arrays of 32", "place_64", "postgres", "batch_32", "shared")
  ratio_row("on PostgreSQL: batch of 256 by arrays of 256", "batch_256", "postgres", "batch_256", "shared")
  ratio_row("on PostgreSQL: replay by the function", "replay_64", "postgres", "replay_64", "shared")
  ratio_row("on PostgreSQL: replay by a SELECT", "replay_64", "postgres", "select_64", "shared")
  ratio_row("on PostgreSQL: two servers by one, 64 connections in all", "two_64", "shared", "place_64", "shared")
  ratio_row("on PostgreSQL: two servers by one, 64 connections each", "two_128", "shared", "place_64", "shared")
}

function token_ratio(s) {
  if (!has("load", "holdfast", "token_memory") || !has("load", s, "token_memory")) return
  printf "Holdfast's by %s's: memory %s, disk %s.\n", system_name(s),
    figures(ratio("load", "holdfast", "token_memory", "load", s, "token_memory")),
    figures(ratio("load", "holdfast", "token_disk", "load", s, "token_disk"))
}

function token_row(s) {
  if (!has("load", s, "token_memory")) return
  printf "| %s | %s | %s | %s | %s |\n", system_name(s), cell("load", s, "per_second"), cell("load", s, "token_memory"),
    cell("load", s, "token_private"), cell("load", s, "token_disk")
}

function token_table() {
  print "| system | loaded a second | memory a token | of it private | disk a token |"
  print "|---|--:|--:|--:|--:|"
  token_row("holdfast")
  token_row("redis")
  token_row("postgres")
  print ""
  print "Bytes, measured while " thousands(fact["tokens"]) " tokens are loaded, each with its hold. Memory is what the server's processes"
  print "have resident more than before (shared pages counted once); private is what of it is neither shared nor a"
  print "file's. PostgreSQL's is its private memory and its shared buffers as far as they are used; the page cache is"
  print "not counted."
  printf "Disk is the growth of the data folder%s.\n", \
    has("load", "postgres", "token_tables") ? ", PostgreSQL's with its log (tables and indexes alone: " \
    cell("load", "postgres", "token_tables") ")" : ""
  token_ratio("redis")
  token_ratio("postgres")
}

function goal_table() {
  goals_make()
  print "| goal | wanted | found | |"
  print "|---|--:|--:|---|"
  for (i = 1; i <= goals; i++)
    printf "| %s | %s | %s | %s |\n", goal_what[i], goal_wanted[i], goal_found[i], goal_state[i]
}

function check_text(s) {
  if (has("check", s, "stored"))
    printf "- %s: %s acknowledged, %s stored%s.\n", system_name(s), cell("check", s, "acknowledged"),
      cell("check", s, "stored"), \
      has("check", s, "audited") ? ", " cell("check", s, "audited") " in the journal by `holdfast audit`" : ""
}

function method() {
  print "Every request is the same for all: a token that looks like a UUID, one of " thousands(fact["resources"]) " resources whose"
  print "capacity never runs out, one of a million requesters, a duration and a window of 24 hours. place_hold looks up"
  print "the token, then the resource, and writes token, hold, resource and expiry index; it is answered when that"
  print "is on the disk. A replay is a request whose token is known, chosen uniformly among the loaded."
  print ""
  print "- Holdfast: `holdfast serve`, default settings (`--max-connections 8192`). HTTP/1.1, keep-alive; a batch is one"
  print "  `POST /v1/batch`. Its log, which has a line for each replay, goes to a file on the same disk."
  print "- Redis: `bench/redis/redis.conf` (`appendonly yes`, `appendfsync always`, no snapshots, no rewriting of the log"
  print "  meanwhile). The whole job is one `EVALSHA` of `bench/redis/place_hold.lua`."
  print "- PostgreSQL: `bench/postgres/postgresql.conf` (`synchronous_commit on`, 512 MB of shared buffers, autovacuum on, no"
  print "  checkpoint meanwhile). The whole job is one call of a prepared function of `bench/postgres/schema.sql`; batches"
  print "  are arrays, worked on in sets."
  print "- Holdfast on PostgreSQL: the same program with `--store postgres`, on the same cluster in a database of its own. Its"
  print "  server CPU is its own and PostgreSQL's together. It also writes its journal, a row for each call, and chains it."
  print "- The client, `bench/load*.c`, is one thread for all: epoll, N connections, each sends its next call when the last"
  print "  is answered. Plain sockets for Holdfast and Redis, libpq (asynchronous, binary) for PostgreSQL. It shares the"
  print "  cores with the server."
  print ""
  print "They take turns case by case, " fact["rounds"] " round" (fact["rounds"] == 1 ? "" : "s") " of " fact["seconds"] " s (after 0.3 s that do not count) each; figures are medians,"
  print "ratios are medians of the rounds' ratios. Before each case the file system is synced. All servers keep running"
  print "all the time and keep what they have stored."
}

END {
  print "# Holdfast beside Redis and PostgreSQL"
  print ""
  print "Written by `bench/compare`; do not edit. Repeat it with `bench/compare` (`--help` for its options)."
  print ""
  if (fact["quick"] == "yes") {
    print "**A quick run: it shows that the comparison works, not how fast anything is.**"
    print ""
  }
  print "![requests a second and p99](compare.svg)"
  print ""
  print "## Goals"
  print ""
  goal_table()
  print ""
  print "## Figures"
  print ""
  figures_table()
  print ""
  print "## Ratios"
  print ""
  ratio_table()
  print ""
  print "## A token's cost"
  print ""
  token_table()
  if (has("idle_4096", "holdfast", "idle_bytes")) {
    printf "\nAn idle connection to Holdfast costs %s bytes, %s of them private: the growth of a fresh server's memory\n",
      cell("idle_4096", "holdfast", "idle_bytes"), cell("idle_4096", "holdfast", "idle_private_bytes")
    print "by 4,096 connections that all asked once at the same time, divided by their number."
  }
  print ""
  print "## Machine"
  print ""
  printf "%s cores of %s, %s, %s, %s. Load average before the run: %s.\n", fact["cores"], fact["cpu"],
    fact["memory"], fact["kernel"], fact["filesystem"], fact["load_average"]
  share = others()
  printf "During the measured times others used %.1f %% of the machine in the middle case, %.1f %% at most (the kernel's\n",
    share, others_most
  print "own threads included)" (share > 5 ? "; **it was not quiet, and these figures mean little**." : ".")
  printf "fdatasync of 4 KiB in a file written before: median %s, p99 %s.\n", us("fdatasync", "disk", "fdatasync_p50_us"),
    us("fdatasync", "disk", "fdatasync_p99_us")
  printf "%s, %s, %s; %s.\n", fact["holdfast"], fact["redis"], fact["postgres"], fact["date"]
  print ""
  print "## What was run"
  print ""
  method()
  print ""
  print "## Is it right?"
  print ""
  print "Answers are counted by status and any but the expected one fails the run; afterwards the holds stored are"
  print "counted and must be those acknowledged."
  print ""
  check_text("holdfast")
  check_text("redis")
  check_text("postgres")
  check_text("shared")
}
