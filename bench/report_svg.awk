# compare.svg: two panels of bars, requests a second and p99, both logarithmic.
function y_of(x, low, high,    t) {
  t = (log(x > 0 ? x : 1) / log(10) - low) / (high - low)
  return TOP + HIGH - (t < 0 ? 0 : t > 1 ? 1 : t) * HIGH
}

function label(x, y, anchor, text, more) {
  printf "<text x='%.0f' y='%.1f' text-anchor='%s'%s>%s</text>\n", x, y, anchor, more, text
}

function axis(left, title, low, high, names,    part, e, y) {
  label(left, TOP - 26, "start", title, " font-size='14'")
  split(names, part, ",")
  for (e = low; e <= high; e++) {
    y = y_of(10 ^ e, low, high)
    printf "<line x1='%d' x2='%d' y1='%.1f' y2='%.1f' stroke='#ddd'/>\n", left, left + WIDE, y, y
    label(left - 6, y + 4, "end", part[e - low + 1], "")
  }
}

function bar(x, c, s, m, low, high, unit,    y, v) {
  if (!has(c, s, m)) return
  v = median(c, s, m)
  y = y_of(v, low, high)
  printf "<rect x='%.1f' y='%.1f' width='%d' height='%.1f' fill='%s'/>\n", x, y, BAR, TOP + HIGH - y, color[s]
  label(x + BAR / 2, y - 4, "middle", figures(v / unit), " font-size='9'")
}

# Redis's own best in a batch is the pipeline by 16.
function case_of(i, s) { return i == 4 && s == "redis" ? "pipeline_16" : cases[i] }

function panel(left, m, low, high, unit,    i, k, middle_x) {
  for (i = 1; i <= count; i++) {
    middle_x = left + WIDE / count * (i - 0.5)
    for (k = 1; k <= 4; k++)
      bar(middle_x + (k - 2.5) * (BAR + 2) - BAR / 2, case_of(i, systems[k]), systems[k], m, low, high, unit)
    label(middle_x, TOP + HIGH + 18, "middle", titles[i], "")
    label(middle_x, TOP + HIGH + 33, "middle", subtitles[i], " fill='#555' font-size='10'")
  }
}

END {
  WIDE = 430; HIGH = 250; TOP = 70; BAR = 21
  split("holdfast redis postgres shared", systems, " ")
  color["holdfast"] = "#1f6f8b"; color["redis"] = "#c0504d"; color["postgres"] = "#c9b79c"; color["shared"] = "#7fb069"
  count = split("place_64 place_256 replay_64 batch_256", cases, " ")
  split("place_hold,place_hold,replay,batch", titles, ",")
  split("64 connections,256 connections,64 connections,256 (Redis: 16)", subtitles, ",")
  printf "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 1040 390' font-family='sans-serif' " \
    "font-size='12'>\n<rect width='100%%' height='100%%' fill='white'/>\n"
  for (k = 1; k <= 4; k++) {
    printf "<rect x='%d' y='12' width='12' height='12' fill='%s'/>\n", 60 + 110 * (k - 1), color[systems[k]]
    label(76 + 110 * (k - 1), 22, "start", system_name(systems[k]), "")
  }
  axis(60, "Durable requests a second (thousands)", 3, 6, "1 k,10 k,100 k,1 M")
  panel(60, "per_second", 3, 6, 1000)
  axis(580, "p99 of a call (milliseconds)", 1, 6, "10 us,100 us,1 ms,10 ms,100 ms,1 s")
  panel(580, "p99_us", 1, 6, 1000)
  label(60, 382, "start", (fact["rounds"] == 1 ? "One round" : "Medians of " fact["rounds"] " rounds") \
    " of " fact["seconds"] " s, " fact["cores"] \
    " cores, client included; both axes logarithmic.", " fill='#555' font-size='11'")
  print "</svg>"
}
