# The SQL of src/store/postgres/schema as a C source, so that the program carries its migrations with it.
# hf_schema(OUT): each NNNN_name.sql, or folder NNNN_name with its files in order, is one migration.
function(hf_schema out)
  set(folder ${CMAKE_SOURCE_DIR}/src/store/postgres/schema)
  file(GLOB scripts CONFIGURE_DEPENDS ${folder}/[0-9]*)
  list(SORT scripts)
  set(texts "")
  set(table "")
  set(count 0)
  foreach(script ${scripts})
    set(files ${script})
    if(IS_DIRECTORY ${script})
      file(GLOB files CONFIGURE_DEPENDS ${script}/*.sql)
      list(SORT files)
    endif()
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${files})
    get_filename_component(name ${script} NAME_WE)
    string(REGEX MATCH "^[0-9]+" version ${name})
    string(REGEX REPLACE "^0+" "" version ${version})
    string(REGEX REPLACE "^[0-9]+_" "" name ${name})
    set(bytes "")
    foreach(file ${files})
      file(READ ${file} part HEX)
      string(APPEND bytes "${part}0a")
    endforeach()
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
    string(APPEND texts "static const char text_${version}[] = { ${bytes} 0 };\n")
    string(APPEND table "    { ${version}, \"${name}\", text_${version} },\n")
    math(EXPR count "${count} + 1")
  endforeach()
  file(CONFIGURE OUTPUT ${out} @ONLY CONTENT
"/* Made from src/store/postgres/schema by cmake/schema.cmake. */
#include \"store/postgres/migrate.h\"

${texts}
const struct hf_pg_migration hf_pg_migrations[] = {
${table}};
const int hf_pg_migration_count = ${count};
")
endfunction()
