# How a test is built and run.

# What a program outside needs to link with a library that was built this way.
if(HF_SANITIZE)
  set(HF_LINK_FLAGS "-fsanitize=${HF_SANITIZE}")
elseif(HF_COVERAGE)
  set(HF_LINK_FLAGS "--coverage")
  add_compile_definitions(HF_COVERAGE) # for those who end without the way out that writes the counters
endif()

set(HF_TEST_ENVIRONMENT HF_SCALE=${HF_SCALE} HF_BUILD=${CMAKE_BINARY_DIR} HF_SOURCE=${CMAKE_SOURCE_DIR}
  "HF_LINK_FLAGS=${HF_LINK_FLAGS}")
# What a sanitizer looks for is not left to its defaults, which differ between compilers and their versions.
if(HF_SANITIZE MATCHES "address")
  list(APPEND HF_TEST_ENVIRONMENT "ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=1"
    "UBSAN_OPTIONS=print_stacktrace=1")
endif()

# About how many seconds the long ones take, at either size. ctest begins with the costliest, so that none of them is
# left to run alone at the end. Most of them wait, for a disk or for a patience to run out: tools/test.sh runs more of
# them at a time than there are cores.
set(HF_LONG_TESTS postgres_functions:250 server_payment:150 postgres_functions_json:70 worlds_worlds:60 simulate_seeds:50 cli_server_fails:38 power_keeping:30 crash_kills:28 server_floods:27
  postgres_doubt:75 postgres_locked:61 postgres_replicated:57 postgres_silent:37 postgres_cancelled:34 postgres_failover:28
  fault_server:25
  postgres_removed:22 postgres_contention:45 postgres_opening:40 postgres_swift:40 postgres_swift_gone:35 postgres_lying:40
  postgres_functions_race:30 cli_server:45 models_models:20 server_storage:45 server_patience:17
  store_recovery:16 store_faults:15
  power_plain:13 power_planted:13 power_closing:13 fault_maintain:13 server_stopping:13 judge_library:12
  engine_reopen:12 fault_open:12 cli_usage:11 cli_bench:10 server_pipelines:19 server_crowd:9 server_restart:9
  engine_lists:18 store_agree_files:13 fault_postgres:10 postgres_many:10 postgres_audit:10 server_fair:9 server_shares:9
  install_embed:9 server_wire:9 server_examples:9 cli_holds:9 audit_hostile:8 engine_threads:7 engine_quotas:7 http_chunk:7)

# lld links a test program in a third of the time that GNU ld takes, and there are many.
find_program(HF_LLD ld.lld)
if(HF_LLD)
  set(HF_TEST_LINK -fuse-ld=lld)
endif()

# Is the test of this name wanted? HF_TEST_ONLY, if it is set, must match it, and HF_TEST_NOT must not.
function(hf_wanted name result)
  set(${result} ON PARENT_SCOPE)
  if((HF_TEST_ONLY AND NOT name MATCHES "${HF_TEST_ONLY}") OR (HF_TEST_NOT AND name MATCHES "${HF_TEST_NOT}"))
    set(${result} OFF PARENT_SCOPE)
  endif()
endfunction()

# A test by its name and command; further arguments are NAME=VALUE of its environment.
function(hf_test name command)
  set(cost 1)
  foreach(long ${HF_LONG_TESTS})
    if(long MATCHES "^${name}:(.*)")
      set(cost ${CMAKE_MATCH_1})
    endif()
  endforeach()
  add_test(NAME ${name} COMMAND ${command})
  set_tests_properties(${name} PROPERTIES TIMEOUT 900 COST ${cost} ENVIRONMENT "${HF_TEST_ENVIRONMENT};${ARGN}")
endfunction()

# All *.c of a folder as programs of their own and all *.sh as scripts; a test is named PREFIX_FILE. Further arguments are options
# for the linker.
function(hf_tests folder prefix)
  file(GLOB programs CONFIGURE_DEPENDS ${folder}/*.c)
  foreach(source ${programs})
    get_filename_component(name ${source} NAME_WE)
    set(target ${prefix}_${name})
    hf_wanted(${target} wanted)
    if(NOT wanted)
      continue()
    endif()
    add_executable(${target} ${source})
    target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR}/tests ${CMAKE_SOURCE_DIR}/proof)
    target_link_libraries(${target} PRIVATE hf_kit)
    # What is tested, and the kit, are optimised; the test itself compiles in a quarter of the time if it is not.
    target_compile_options(${target} PRIVATE -O0 -U_FORTIFY_SOURCE)
    target_link_options(${target} PRIVATE ${HF_TEST_LINK} -Wl,--undefined=test_only_named ${ARGN})
    hf_test(${target} ${target})
  endforeach()
  file(GLOB scripts CONFIGURE_DEPENDS ${folder}/*.sh)
  foreach(source ${scripts})
    get_filename_component(name ${source} NAME_WE)
    hf_wanted(${prefix}_${name} wanted)
    if(wanted)
      hf_test(${prefix}_${name} "bash;${source}")
    endif()
  endforeach()
endfunction()
