# The SQL of src/store/postgres/schema as a C source, so that the program carries its migrations with it.
# hf_schema(OUT): files named NNNN_name.sql, in order.
function(hf_schema out)
  file(GLOB scripts CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/store/postgres/schema/[0-9]*.sql)
  list(SORT scripts)
  set(texts "")
  set(table "")
  set(count 0)
  foreach(script ${scripts})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${script})
    get_filename_component(name ${script} NAME_WE)
    string(REGEX MATCH "^[0-9]+" version ${name})
    string(REGEX REPLACE "^0+" "" version ${version})
    string(REGEX REPLACE "^[0-9]+_" "" name ${name})
    file(READ ${script} bytes HEX)
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
