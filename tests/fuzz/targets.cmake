# Every tests/fuzz/<name>.c is a fuzz target. With HF_FUZZ it is a libFuzzer program; in all other builds it is linked
# with a main that runs the inputs kept in tests/fuzz/corpus/<name>, as the test fuzz_<name>.
file(GLOB fuzz_support CONFIGURE_DEPENDS fuzz/support/*.c)
add_library(hf_fuzz OBJECT ${fuzz_support})
target_include_directories(hf_fuzz PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
target_link_libraries(hf_fuzz PRIVATE PkgConfig::ZSTD)
set(fuzz_objects $<TARGET_OBJECTS:hf_fuzz> $<TARGET_OBJECTS:hf_support> $<TARGET_OBJECTS:hf_simulate>
  $<TARGET_OBJECTS:hf_judge> $<TARGET_OBJECTS:hf_client>
  $<TARGET_OBJECTS:hf_server> $<TARGET_OBJECTS:hf_http> $<TARGET_OBJECTS:hf_api> $<TARGET_OBJECTS:hf_json> $<TARGET_OBJECTS:hf_audit>)

function(hf_fuzz_program target)
  add_executable(${target} ${ARGN} ${fuzz_objects})
  target_include_directories(${target} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  target_link_libraries(${target} PRIVATE holdfast_static PkgConfig::CMOCKA ${HF_PROGRAM_NEEDS})
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
    add_test(NAME fuzz_${name} COMMAND fuzz_${name} ${CMAKE_CURRENT_SOURCE_DIR}/fuzz/corpus/${name})
    set_tests_properties(fuzz_${name} PROPERTIES TIMEOUT 300)
  endif()
  add_dependencies(fuzz_targets fuzz_${name})
endforeach()

# Writes inputs to begin with, made by the code as it is now: fuzz_seeds FOLDER.
hf_fuzz_program(fuzz_seeds fuzz/main/seeds.c)
add_dependencies(fuzz_targets fuzz_seeds)
