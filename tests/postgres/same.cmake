# The same tests on the other store: these programs are run a second time with HF_STORE=postgres (tests/engine/kit/both.h).
# Those that are left out are about the files of the journal.
function(hf_on_postgres folder)
  foreach(name ${ARGN})
    hf_wanted(postgres_${folder}_${name} wanted)
    if(wanted AND TARGET ${folder}_${name})
      hf_test(postgres_${folder}_${name} ${folder}_${name} HF_STORE=postgres)
      set_tests_properties(postgres_${folder}_${name} PROPERTIES COST 10)
    endif()
  endforeach()
endfunction()

# The library under the sanitizers, the server as it is installed: what a sanitizer would see in the server, it sees in the
# tests of the library.
if(HF_SCALE STREQUAL small)
  hf_on_postgres(engine apply claim_lists claims guards limits lists opening quotas reopen scenarios submit threads time)
else()
  hf_on_postgres(server answers calls_claims claim_lists calls_guards calls_holds calls_keys calls_rest calls_table crowd limits logs
    pipelines restart sandbox stopping tenants wire)
endif()
