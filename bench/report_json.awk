# compare.json: the facts, every figure of every round with its median, and the goals.
function quoted(text) {
  gsub(/["\\]/, "\\\\&", text)
  return "\"" text "\""
}

END {
  printf "{\"facts\":{"
  count = split("date cores cpu memory kernel filesystem load_average rounds seconds tokens resources quick " \
    "systems holdfast redis postgres", names, " ")
  for (i = 1; i <= count; i++) printf "%s%s:%s", (i > 1 ? "," : ""), quoted(names[i]), quoted(fact[names[i]])
  printf "},\n\"figures\":["
  for (i = 1; i <= metrics; i++) {
    split(metric_of[i], part, "|")
    printf "%s\n{\"case\":%s,\"system\":%s,\"metric\":%s,\"median\":%s,\"rounds\":[", (i > 1 ? "," : ""),
      quoted(part[1]), quoted(part[2]), quoted(part[3]), sprintf("%.12g", median(part[1], part[2], part[3]))
    first = 1
    for (r = 0; r <= last_round; r++)
      if ((part[1], part[2], part[3], r) in value) {
        printf "%s%s", first ? "" : ",", value[part[1], part[2], part[3], r]
        first = 0
      }
    printf "]}"
  }
  printf "],\n\"goals\":["
  goals_make()
  for (i = 1; i <= goals; i++)
    printf "%s\n{\"goal\":%s,\"wanted\":%s,\"found\":%s,\"state\":%s}", (i > 1 ? "," : ""), quoted(goal_what[i]),
      quoted(goal_wanted[i]), (goal_value[i] == "" ? "null" : sprintf("%.4g", goal_value[i])), quoted(goal_state[i])
  printf "]}\n"
}
