# How ctest runs the tests.
get_property(HF_ALL_TESTS DIRECTORY PROPERTY TESTS)

# What a sanitizer looks for is not left to its defaults, which differ between compilers and their versions.
if(HF_SANITIZE MATCHES "address")
  set_property(TEST ${HF_ALL_TESTS} APPEND PROPERTY ENVIRONMENT
    "ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=1"
    "UBSAN_OPTIONS=print_stacktrace=1")
endif()

# About how many seconds the long ones take, at either size. ctest begins with the costliest, so that none of them is
# left to run alone at the end. Most of them wait, for a disk or for a patience to run out: tools/test.sh runs more of
# them at a time than there are cores.
foreach(long worlds_worlds:60 simulate_seeds:50 cli_server_fails:38 power_keeping:30 crash_kills:28 server_floods:27
    postgres_doubt:75 postgres_replicated:57 postgres_silent:37 postgres_failover:28 fault_server:25
    postgres_removed:22 cli_server:22 models_models:20 server_storage:20 server_patience:17
    store_recovery:16 store_faults:15
    power_plain:13 power_planted:13 power_closing:13 fault_maintain:13 server_stopping:13 judge_tests_library:12
    engine_reopen:12 fault_open:12 cli_usage:11 cli_bench:10 server_pipelines:10 server_crowd:9 server_restart:9
    server_unread:9 audit_hostile:8 engine_threads:7 http_split:7)
  string(REPLACE ":" ";" long ${long})
  list(GET long 0 name)
  list(GET long 1 seconds)
  set_property(TEST ${name} PROPERTY COST ${seconds})
endforeach()
