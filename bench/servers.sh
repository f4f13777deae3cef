# shellcheck shell=bash disable=SC2154,SC2034 # the variables are shared with bench/compare and cases.sh
# servers.sh: start, stop, load and check the servers. Sourced by bench/compare, which sets $work (a
# temporary folder), $load (the load generator), $holdfast (the program), $here (this folder), $resources.
# Each server runs on loopback, on a free port, in a folder of its own, as a child of the script.

declare -A pid address folder

fail() {
  echo "bench/compare: $*" >&2
  exit 1
}

# wait_for SECONDS COMMAND...: until the command succeeds.
wait_for() {
  local tries=$(($1 * 20))
  shift
  until "$@" >/dev/null 2>&1; do
    ((tries-- > 0)) || return 1
    sleep 0.05
  done
}

# stop NAME: ask the server to end, insist after 20 s, and answer its exit status.
stop() {
  local name=$1 signal=TERM status=0
  [[ -n ${pid[$name]:-} ]] || return 0
  [[ $name == postgres ]] && signal=INT # a fast shutdown
  kill -s "$signal" "${pid[$name]}" 2>/dev/null || true
  wait_for 20 gone "${pid[$name]}" || kill -KILL "${pid[$name]}" 2>/dev/null || true
  wait "${pid[$name]}" 2>/dev/null || status=$?
  unset "pid[$name]"
  return $status
}

# gone PID: a child that ended is a zombie until it is waited for.
gone() {
  local state
  state=$(ps -o stat= -p "$1" 2>/dev/null) || return 0
  [[ -z $state || $state == Z* ]]
}

stop_all() {
  local name
  for name in "${!pid[@]}"; do
    stop "$name" || true
  done
}

# ---- Holdfast ----

# start_holdfast NAME [OPTIONS]: a second instance may run beside the first under another name.
start_holdfast() {
  local name=$1
  shift
  folder[$name]=$work/$name
  (($# > 0)) || set -- --data "${folder[$name]}"
  "$holdfast" serve "$@" --listen 127.0.0.1:0 --max-connections 8192 >"$work/$name.out" 2>"$work/$name.err" &
  pid[$name]=$!
  wait_for 20 grep -q '^holdfast: listening on http://' "$work/$name.out" ||
    fail "holdfast does not start: $(tail -n 3 "$work/$name.err")"
  address[$name]=$(sed -n 's|^holdfast: listening on http://||p;q' "$work/$name.out")
}

setup_holdfast() { # [NAME]
  "$load" run --address "${address[${1:-holdfast}]}" --job resource --count "$resources" --resources "$resources" \
    --connections 64 >"$work/setup"
}

# What is stored, by what the server says: the sum of the units held.
stored_holdfast() { # [NAME]
  "$load" held --address "${address[${1:-holdfast}]}" | sed -n 's/^held //p'
}

# ---- Holdfast on PostgreSQL: the cluster that is measured by itself too, another database ----

shared_conninfo() {
  echo "host=127.0.0.1 port=${address[postgres]##*:} user=bench dbname=holdfast"
}

# Two servers; the second is used where it is said.
start_shared() {
  [[ -n ${pid[postgres]:-} ]] || start_postgres
  postgres -d postgres -c 'CREATE DATABASE holdfast'
  for name in shared second; do
    start_holdfast $name --store postgres --postgres "$(shared_conninfo)"
  done
}

setup_shared() {
  setup_holdfast shared
  postgres -d holdfast -c 'VACUUM ANALYZE'
}

stored_shared() {
  stored_holdfast shared
}

# ---- Redis ----

redis() {
  redis-cli -h 127.0.0.1 -p "${address[redis]##*:}" "$@"
}

start_redis() {
  local port
  port=$("$load" port)
  folder[redis]=$work/redis
  mkdir "${folder[redis]}"
  address[redis]=127.0.0.1:$port
  redis-server "$here/redis/redis.conf" --port "$port" --dir "${folder[redis]}" >"$work/redis.out" 2>&1 &
  pid[redis]=$!
  wait_for 20 redis ping || fail "redis does not start: $(tail -n 3 "$work/redis.out")"
}

setup_redis() {
  redis_script=$(redis -x script load <"$here/redis/place_hold.lua")
  redis eval "for i = 0, ARGV[1] - 1 do
      redis.call('HSET', string.format('r:r%07d', i), 'capacity', 1000000000, 'taken', 0, 'open', 1)
    end" 0 "$resources" >/dev/null
}

# The expiry index has a member a hold; the keys are a token and a hold each, the resources, the index and
# the counter.
stored_redis() {
  local holds keys
  holds=$(redis zcard expiry)
  keys=$(redis dbsize)
  ((keys == 2 * holds + resources + 2)) || fail "redis: $keys keys do not fit $holds holds"
  echo "$holds"
}

# ---- PostgreSQL ----

# PostgreSQL refuses to run as root.
as_postgres() {
  if [[ $(id -u) == 0 ]]; then
    exec setpriv --reuid=postgres --regid=postgres --init-groups "$@"
  else
    exec "$@"
  fi
}

postgres() {
  psql -X -q -A -t -v ON_ERROR_STOP=1 -h 127.0.0.1 -p "${address[postgres]##*:}" -U bench "$@"
}

start_postgres() {
  local port programs
  programs=$(pg_config --bindir)
  port=$("$load" port)
  folder[postgres]=$work/postgres
  address[postgres]=127.0.0.1:$port
  mkdir "${folder[postgres]}"
  [[ $(id -u) != 0 ]] || chown postgres: "${folder[postgres]}"
  (cd "${folder[postgres]}" && as_postgres "$programs/initdb" -D "${folder[postgres]}" -U bench --auth=trust \
    --no-sync --locale=C --encoding=UTF8) >"$work/postgres.out" 2>&1 ||
    fail "initdb: $(tail -n 3 "$work/postgres.out")"
  cat "$here/postgres/postgresql.conf" >>"${folder[postgres]}/postgresql.conf"
  (cd "${folder[postgres]}" && as_postgres "$programs/postgres" -D "${folder[postgres]}" -p "$port") \
    >"$work/postgres.out" 2>&1 &
  pid[postgres]=$!
  wait_for 20 postgres -d postgres -c 'SELECT 1' ||
    fail "postgres does not start: $(tail -n 3 "$work/postgres.out")"
}

setup_postgres() {
  postgres -d postgres -c 'CREATE DATABASE bench'
  postgres -d bench -f "$here/postgres/schema.sql"
  postgres -d bench -c "INSERT INTO resources SELECT 'r' || lpad(i::text, 7, '0'), 1000000000
    FROM generate_series(0, $resources - 1) i" -c 'VACUUM ANALYZE resources'
}

stored_postgres() {
  local holds tokens taken
  IFS='|' read -r holds tokens taken < <(postgres -d bench -c "SELECT (SELECT count(*) FROM holds),
    (SELECT count(*) FROM tokens), (SELECT sum(taken) FROM resources)")
  ((holds == tokens && holds == taken)) ||
    fail "postgres: $holds holds, $tokens tokens, $taken units taken"
  echo "$holds"
}
