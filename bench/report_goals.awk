# What the goals say, for the terminal.
END {
  goals_make()
  for (i = 1; i <= goals; i++)
    printf "%-58s %14s %14s  %s\n", goal_what[i], goal_wanted[i], goal_found[i], goal_state[i]
  share = others()
  printf "Others used %.1f %% of the machine in the middle case, %.1f %% at most%s\n", share, others_most,
    (share > 5 ? ": it was not quiet, and these figures mean little." : ".")
}
