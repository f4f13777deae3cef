# report.awk: reads the records of bench/compare and offers what every report needs. Used together with one
# of report_md.awk, report_json.awk, report_svg.awk and report_goals.awk.
BEGIN { FS = "\t"; SUBSEP = "|" }
$1 == "fact" { fact[$2] = $3; next }
NF == 5 {
  if (!(($3, $2, $4) in known)) {
    known[$3, $2, $4] = 1
    metric_of[++metrics] = $3 "|" $2 "|" $4
  }
  value[$3, $2, $4, $1] = $5
  if ($1 + 0 > last_round) last_round = $1 + 0
}

# The median of list[1 .. n]; sorts it.
function middle(list, n,    i, j, x) {
  for (i = 2; i <= n; i++) {
    x = list[i]
    for (j = i - 1; j >= 1 && list[j] > x; j--) list[j + 1] = list[j]
    list[j + 1] = x
  }
  return n % 2 ? list[(n + 1) / 2] : (list[n / 2] + list[n / 2 + 1]) / 2
}

function has(c, s, m) { return (c, s, m) in known }

# The median over the rounds; what is measured once has round 0.
function median(c, s, m,    r, n, list) {
  for (r = 0; r <= last_round; r++)
    if ((c, s, m, r) in value) list[++n] = value[c, s, m, r] + 0
  return n ? middle(list, n) : 0
}

function least(c, s, m, sign,    r, found, x) {
  for (r = 0; r <= last_round; r++)
    if ((c, s, m, r) in value) {
      x = value[c, s, m, r] * sign
      if (found == "" || x < found) found = x
    }
  return found * sign
}

# How much of the machine others used during the measured times, in percent: the median of all cases and
# rounds, and in others_most the greatest.
function others(    key, part, n, list) {
  others_most = 0
  for (key in value) {
    split(key, part, "|")
    if (part[3] != "others_percent" || part[4] == 0) continue
    list[++n] = value[key] + 0
    if (value[key] + 0 > others_most) others_most = value[key] + 0
  }
  return n ? middle(list, n) : 0
}

# The median of the rounds' ratios: the two sides of one round ran within the same minute. "" if either
# was not measured.
function ratio(c1, s1, m1, c2, s2, m2,    r, n, list) {
  for (r = 0; r <= last_round; r++)
    if ((c1, s1, m1, r) in value && (c2, s2, m2, r) in value && value[c2, s2, m2, r] > 0)
      list[++n] = value[c1, s1, m1, r] / value[c2, s2, m2, r]
  return n ? middle(list, n) : ""
}

# 1234567 -> 1,234,567
function thousands(x,    text, out) {
  if (x < 0) return "-" thousands(-x)
  text = sprintf("%.0f", x)
  while (length(text) > 3) {
    out = "," substr(text, length(text) - 2) out
    text = substr(text, 1, length(text) - 3)
  }
  return text out
}

# Three figures, no more: 0.123, 1.23, 12.3, 123
function figures(x) {
  return x == "" ? "" : sprintf(x < 1 ? "%.3f" : x < 10 ? "%.2f" : x < 100 ? "%.1f" : "%.0f", x)
}

function system_name(s) {
  return s == "holdfast" ? "Holdfast" : s == "redis" ? "Redis" : s == "shared" ? "Holdfast on PostgreSQL" : "PostgreSQL"
}

# ---- The goals: filled into goal_*[1 .. goals]. ----

function goal(what, wanted, found, unit, met) {
  goals++
  goal_what[goals] = what
  goal_wanted[goals] = wanted
  goal_found[goals] = found == "" ? "not measured" : figures(found) unit
  goal_value[goals] = found
  goal_state[goals] = found == "" ? "not measured" : met ? "met" : "missed"
}

function at_least(what, wanted, found, unit) {
  goal(what, "at least " wanted unit, found, unit, found != "" && found >= wanted)
}

function below(what, wanted, found, unit) {
  goal(what, "below " wanted unit, found, unit, found != "" && found < wanted)
}

function at_most(what, wanted, found, unit) {
  goal(what, "at most " wanted unit, found, unit, found != "" && found <= wanted)
}

function goals_make(    h, p) {
  h = "holdfast"
  p = "per_second"
  at_least("place_hold, 64 connections, beside Redis", 3, ratio("place_64", h, p, "place_64", "redis", p), " x")
  at_least("place_hold, 64 connections, beside PostgreSQL", 8, \
    ratio("place_64", h, p, "place_64", "postgres", p), " x")
  at_least("replay, 64 connections, beside an empty answer", 0.85, \
    ratio("replay_64", h, p, "empty_64", h, p), " x")
  below("replay, 64 connections, p99", 5, has("replay_64", h, "p99_us") ? median("replay_64", h, "p99_us") / 1000 : "", " ms")
  at_least("batch of 256 beside Redis pipelined by 16", 5, \
    ratio("batch_256", h, p, "pipeline_16", "redis", p), " x")
  at_least("batch of 256 beside PostgreSQL's arrays of 256", 3, \
    ratio("batch_256", h, p, "batch_256", "postgres", p), " x")
  at_most("memory of an idle connection", 8, \
    has("idle_4096", h, "idle_bytes") ? median("idle_4096", h, "idle_bytes") / 1024 : "", " KiB")
  at_most("p99 with 2,000 slow senders beside that without", 2, \
    ratio("slow_64", h, "p99_us", "half_64", h, "p99_us"), " x")
  below("p99 at half of the greatest load, in fdatasyncs of 4 KiB", 4, \
    ratio("half_64", h, "p99_us", "fdatasync", "disk", "fdatasync_p50_us"), "")
  h = "shared"
  at_least("on PostgreSQL: place_hold, 64 connections, beside its own function", 4, \
    ratio("place_64", h, p, "place_64", "postgres", p), " x")
  at_least("on PostgreSQL: place_hold, 64 connections, beside its arrays of 256", 0.6, \
    ratio("place_64", h, p, "batch_256", "postgres", p), " x")
  at_least("on PostgreSQL: replay, 64 connections, beside a SELECT by key", 1.5, \
    ratio("replay_64", h, p, "select_64", "postgres", p), " x")
  at_least("on PostgreSQL: place_hold, two servers with 64 each beside one", 1, \
    ratio("two_128", h, p, "place_64", h, p), " x")
}
