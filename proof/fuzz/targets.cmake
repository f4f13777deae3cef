# Every proof/fuzz/<name>.c is a fuzz target. With HF_FUZZ it is a libFuzzer program; in all other builds it is linked
# with a main that runs the inputs kept in proof/fuzz/corpus/<name>.pack and the files in proof/fuzz/regressions/<name>,
# as the test fuzz_<name>.
file(GLOB fuzz_support CONFIGURE_DEPENDS fuzz/support/*.c)
add_library(hf_fuzz STATIC ${fuzz_support})
target_include_directories(hf_fuzz PRIVATE ${CMAKE_CURRENT_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/tests)
target_link_libraries(hf_fuzz PUBLIC hf_kit)
function(hf_fuzz_program target)
  add_executable(${target} ${ARGN})
  target_include_directories(${target} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/tests)
  target_link_libraries(${target} PRIVATE hf_fuzz)
  target_link_options(${target} PRIVATE ${HF_TEST_LINK})
endfunction()

add_custom_target(fuzz_targets)
file(GLOB fuzz_sources CONFIGURE_DEPENDS fuzz/*.c)
foreach(source ${fuzz_sources})
  get_filename_component(name ${source} NAME_WE)
  if(HF_FUZZ)
    hf_fuzz_program(fuzz_${name} ${source})
    target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
  else()
    hf_fuzz_program(fuzz_${name} ${source} fuzz/main/replay.c)
    file(GLOB regressions CONFIGURE_DEPENDS fuzz/regressions/${name}/*)
    add_test(NAME fuzz_${name}
      COMMAND fuzz_${name} ${CMAKE_CURRENT_SOURCE_DIR}/fuzz/corpus/${name}.pack ${regressions})
    set_tests_properties(fuzz_${name} PROPERTIES TIMEOUT 300 ENVIRONMENT "${HF_TEST_ENVIRONMENT}")
  endif()
  add_dependencies(fuzz_targets fuzz_${name})
endforeach()

# Writes inputs to begin with, made by the code as it is now: fuzz_seeds FOLDER.
hf_fuzz_program(fuzz_seeds fuzz/main/seeds.c)
add_dependencies(fuzz_targets fuzz_seeds)

# Inputs of a target that does not exist would never be run.
file(GLOB kept CONFIGURE_DEPENDS fuzz/corpus/*.pack fuzz/regressions/*)
foreach(inputs ${kept})
  get_filename_component(name ${inputs} NAME_WE)
  if(NOT TARGET fuzz_${name})
    message(FATAL_ERROR "${inputs}: there is no fuzz target ${name}")
  endif()
endforeach()

# Packs the inputs of a folder, and unpacks them: fuzz_corpus pack FOLDER PACK, fuzz_corpus unpack PACK FOLDER.
hf_fuzz_program(fuzz_corpus fuzz/main/corpus.c)
add_dependencies(fuzz_targets fuzz_corpus)

# What reads packs refuses those that are broken, and so does a test that is given one.
if(NOT HF_FUZZ)
  hf_fuzz_program(fuzz_tests_corpus fuzz/tests/corpus.c)
  add_dependencies(fuzz_targets fuzz_tests_corpus)
  hf_test(fuzz_tests_corpus fuzz_tests_corpus)
  hf_test(fuzz_tests_packs "bash;${CMAKE_CURRENT_SOURCE_DIR}/fuzz/tests/packs.sh")
endif()
