# shellcheck shell=bash disable=SC2154 # the variables are those of bench/compare
# cases.sh: what bench/compare measures. Every figure is a line of the records: round, system, case, metric,
# value, divided by tabs; round 0 is what is measured once. Facts about the run are "fact", name, text.

declare -A next acknowledged greatest

batch=256 pipeline=16
window_warm=0.3 # seconds before the measured time of each case

record() { # ROUND SYSTEM CASE, lines of "metric value" from stdin
  awk -v OFS='\t' -v r="$1" -v s="$2" -v c="$3" 'NF == 2 { print r, s, c, $1, $2 }' >>"$records"
}

fact() { # NAME TEXT...
  printf 'fact\t%s\t%s\n' "$1" "${*:2}" >>"$records"
}

metric() { # NAME: of the last measurement
  awk -v name="$1" '$1 == name { print $2 }' "$work/last"
}

facts() {
  fact date "$(date -u +%Y-%m-%d)"
  fact cores "$(nproc)"
  fact cpu "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)"
  fact memory "$(awk '/^MemTotal/ { printf "%.0f GiB", $2 / 1048576 }' /proc/meminfo)"
  fact kernel "$(uname -sr)"
  fact filesystem "$(findmnt -n -o FSTYPE -T "$work")"
  fact load_average "$(cut -d ' ' -f 1 /proc/loadavg)"
  fact rounds "$rounds"
  fact seconds "$seconds"
  fact tokens "$tokens"
  fact resources "$resources"
  fact quick "$quick"
  fact systems "$systems"
  fact holdfast "$("$holdfast" version | head -n 1)"
  fact redis "$(redis-server --version | sed 's/.*v=\([^ ]*\).*/Redis \1/')"
  fact postgres "$("$(pg_config --bindir)/postgres" --version | sed 's/^postgres (PostgreSQL)/PostgreSQL/')"
}

# call SYSTEM OPTIONS...: one run of the load generator against it; its figures are in $work/last. A wrong
# answer anywhere ends the whole comparison.
call() {
  local system=$1 peer=$1 watched=${pid[$1]}
  shift
  [[ $system != shared ]] || peer=holdfast watched+=,${pid[postgres]}
  "$load" run --peer "$peer" --address "${address[$system]}" --script "${redis_script:-}" \
    --resources "$resources" --pid "$watched" "$@" >"$work/last" ||
    fail "$system: the load failed: hf_load run $*"
}

# place SYSTEM OPTIONS...: fresh tokens; counts what was acknowledged.
place() {
  local system=$1
  call "$@" --job place --first "${next[$system]:-0}"
  next[$system]=$(metric next)
  acknowledged[$system]=$((${acknowledged[$system]:-0} + $(metric right)))
}

size() { # FOLDER: bytes on the disk
  du -s --block-size=1 "$1" | cut -f 1
}

# ---- Loading, which tells what a token costs ----

load_tokens_shared() {
  place shared --connections 8 --group $batch --count "$tokens"
  record 0 shared load <"$work/last"
  postgres -d holdfast -c 'VACUUM ANALYZE' -c 'CHECKPOINT'
}

load_tokens() {
  local system=$1 connections=8 group=$batch few=$((tokens < 10000 ? tokens / 2 : 10000)) before after size_before
  # A few first: tables and pools that exist at any size are not charged to the tokens, and PostgreSQL plans
  # its queries for tables that are not empty.
  place "$system" --connections $connections --group $group --count $few
  [[ $system != postgres ]] || postgres -d bench -c 'VACUUM ANALYZE'
  size_before=$(size "${folder[$system]}")
  before=$("$load" memory --pid "${pid[$system]}")
  place "$system" --connections $connections --group $group --count $((tokens - few))
  after=$("$load" memory --pid "${pid[$system]}")
  record 0 "$system" load <"$work/last"
  printf '%s\n%s\n' "$before" "$after" | awk -v n=$((tokens - few)) -v who="$system" '
    { v[$1, ++seen[$1]] = $2 }
    function growth(name) { return v[name, 2] - v[name, 1] }
    END {
      all = growth("memory_bytes")
      if (who == "postgres") all = growth("private_bytes") + growth("machine_shared_bytes")
      printf "token_memory %.0f\ntoken_private %.0f\n", all / n, growth("private_bytes") / n
    }' | record 0 "$system" load
  echo "token_disk $((($(size "${folder[$system]}") - size_before) / (tokens - few)))" |
    record 0 "$system" load
  if [[ $system == postgres ]]; then
    postgres -d bench -c 'VACUUM ANALYZE' -c 'CHECKPOINT'
    echo "token_tables $(($(postgres -d bench -c "SELECT pg_total_relation_size('tokens') +
      pg_total_relation_size('holds')") / tokens))" | record 0 postgres load
  fi
}

# ---- The cases ----

# measure SYSTEM CASE JOB OPTIONS...: let the disk come to rest, run, record.
measure() {
  local system=$1 case=$2 job=$3
  shift 3
  [[ " ${system_list[*]} " == *" $system "* ]] || return 0
  sync -f "$work"
  case $job in
  place) place "$system" --seconds "$seconds" --warm $window_warm "$@" ;;
  *) call "$system" --job "$job" --loaded "$tokens" --seconds "$seconds" --warm $window_warm "$@" ;;
  esac
  record "$round" "$system" "$case" <"$work/last"
  say "round $round: $system $case: $(metric per_second) a second, p99 $(metric p99_us) us"
}

# Remember the greatest number of single calls a second of this round.
keep_greatest() {
  local system=$1
  greatest[$system]=$(awk -v a="${greatest[$system]:-0}" -v b="$(metric per_second)" \
    'BEGIN { print (a > b ? a : b) }')
}

half_of_greatest() {
  awk -v rate="${greatest[$1]:-0}" 'BEGIN { print rate / 2 }'
}

run_round() {
  local system connections
  greatest=()
  for connections in 64 256; do
    for system in "${system_list[@]}"; do
      measure "$system" "place_$connections" place --connections $connections
      keep_greatest "$system"
    done
  done
  measure holdfast empty_64 empty --connections 64
  for system in "${system_list[@]}"; do
    measure "$system" replay_64 replay --connections 64
  done
  measure postgres select_64 select --connections 64
  measure holdfast batch_256 place --connections 8 --group $batch
  measure redis pipeline_16 place --connections 64 --group $pipeline
  measure redis batch_256 place --connections 8 --group $batch
  measure postgres batch_256 place --connections 8 --group $batch
  measure shared batch_256 place --connections 8 --group $batch
  # The arrays that 64 single calls can fill, half of them under way at a time: what is left to a server that makes such
  # batches of them, before HTTP.
  measure postgres batch_32 place --connections 2 --group 32
  if [[ " ${system_list[*]} " == *" shared "* ]]; then
    for connections in 64 128; do
      measure shared "two_$connections" place --connections $connections \
        --address "${address[shared]},${address[second]}" --pid "${pid[shared]},${pid[second]},${pid[postgres]}"
    done
  fi
  for system in redis postgres; do
    measure "$system" half_64 place --connections 64 --rate "$(half_of_greatest "$system")"
  done
  # What is compared with each other is measured in one breath: the disk, half of the load, the slow senders.
  sync -f "$work"
  "$load" disk --dir "$work" --seconds 1 | record "$round" disk fdatasync
  measure holdfast half_64 place --connections 64 --rate "$(half_of_greatest holdfast)"
  if [[ " ${system_list[*]} " == *" holdfast "* ]]; then
    crowds
  fi
}

# The p99 of 64 connections with 2,000 slow senders beside them, at the same load as half_64; and what an idle
# connection costs, of a server that has done nothing else.
crowds() {
  "$load" slow --address "${address[holdfast]}" --connections 2000 >"$work/slow" &
  slow_pid=$!
  wait_for 20 grep -q ready "$work/slow" || fail "the slow senders cannot connect"
  sleep 1 # until all of them are trickling
  measure holdfast slow_64 place --connections 64 --rate "$(half_of_greatest holdfast)"
  kill "$slow_pid"
  wait "$slow_pid" || fail "the slow senders failed"
  slow_pid=''
  record "$round" holdfast slow_64 <"$work/slow"

  start_holdfast idle
  "$load" idle --address "${address[idle]}" --connections 4096 --pid "${pid[idle]}" >"$work/last" ||
    fail "the idle connections failed"
  record "$round" holdfast idle_4096 <"$work/last"
  stop idle || fail "holdfast did not end well: $(tail -n 3 "$work/idle.err")"
  rm -rf "${folder[idle]:?}"
}

# ---- Is everything there? ----

check_stored() {
  local system=$1 stored
  stored=$("stored_$system")
  [[ $stored == "${acknowledged[$system]}" ]] ||
    fail "$system: ${acknowledged[$system]} holds were acknowledged and $stored are stored"
  printf 'acknowledged %s\nstored %s\n' "${acknowledged[$system]}" "$stored" | record 0 "$system" check
  say "$system: $stored holds stored, as acknowledged"
}

# audit_stored SYSTEM OPTIONS...: the journal is read by the auditor, which trusts nothing but what is stored.
audit_stored() {
  local system=$1 counted status=0
  shift
  "$holdfast" audit --json "$@" >"$work/audit.json" 2>"$work/audit.err" || status=$?
  ((status == 0)) || fail "holdfast audit of $system: exit $status: $(tail -n 3 "$work/audit.err")"
  counted=$(sed -n 's/.*"holds":{"count":\([0-9]*\).*/\1/p' "$work/audit.json")
  [[ $counted == "${acknowledged[$system]}" ]] ||
    fail "holdfast audit of $system counts $counted holds, ${acknowledged[$system]} were acknowledged"
  echo "audited $counted" | record 0 "$system" check
  say "holdfast audit of $system: $counted holds in the journal, no violation"
}

# Stop the servers, those of Holdfast first: their journals are then audited.
finish() {
  local name
  for name in holdfast shared second; do
    stop $name || fail "holdfast did not end well: $(tail -n 3 "$work/$name.err")"
  done
  [[ " ${system_list[*]} " != *" holdfast "* ]] || audit_stored holdfast --data "${folder[holdfast]}"
  [[ " ${system_list[*]} " != *" shared "* ]] || audit_stored shared --store postgres --postgres "$(shared_conninfo)"
  stop_all
}
