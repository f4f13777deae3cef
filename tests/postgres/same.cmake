# The tests of the library that hold for every store, run on PostgreSQL too.
foreach(name found_calls_inside_apply lists scenarios)
  add_test(NAME postgres_engine_${name} COMMAND engine_${name})
  set_tests_properties(postgres_engine_${name} PROPERTIES TIMEOUT 600
    ENVIRONMENT "HF_STORE=postgres;HF_SCALE=${HF_SCALE};HF_BUILD=${CMAKE_BINARY_DIR};HF_SOURCE=${CMAKE_SOURCE_DIR}")
endforeach()
