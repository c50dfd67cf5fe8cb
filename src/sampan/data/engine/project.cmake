# Included after every project() of llama.cpp. Changes how it is built, never what is built.

if(PROJECT_NAME STREQUAL "ggml")
  # Only the kernels are built for the variant's CPU; all else is for the architecture's floor and shared by the variants.
  function(sampan_variant)
    target_compile_options(ggml-cpu PRIVATE -mcpu=${SAMPAN_CPU})
  endfunction()
  cmake_language(DEFER DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}" CALL sampan_variant)
endif()

if(PROJECT_NAME STREQUAL "llama.cpp")
  # Keeps this machine's folders out of __FILE__: the same inputs give the same bytes anywhere.
  add_compile_options("-ffile-prefix-map=${CMAKE_SOURCE_DIR}=." "-ffile-prefix-map=${CMAKE_BINARY_DIR}=.")

  # Linking it makes zig build musl, libc++ and compiler-rt. By the dependency below ninja starts that first, beside the
  # compilation, instead of at the very end with one core idle.
  add_executable(sampan-libraries "${CMAKE_CURRENT_LIST_DIR}/libraries.cpp")

  # Most of the time goes into parsing the same headers again: several sources form one unit. Those that must stand alone
  # (explicit specialisations, guards against internal headers) do.
  function(sampan_units)
    add_dependencies(server-context sampan-libraries)

    get_target_property(sources llama SOURCES)
    foreach(source IN LISTS sources)
      set_source_files_properties(src/${source} TARGET_DIRECTORY llama PROPERTIES SKIP_UNITY_BUILD_INCLUSION OFF)
    endforeach()
    set_target_properties(llama PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 16)
    set_target_properties(llama-common PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
    set_target_properties(mtmd PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 12)
    set_target_properties(server-context llama-server-impl PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 6)

    set_source_files_properties(common/json.cpp common/arg.cpp
      TARGET_DIRECTORY llama-common PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    set_source_files_properties(tools/mtmd/mtmd-helper.cpp tools/mtmd/mtmd-helper-gen.cpp
      TARGET_DIRECTORY mtmd PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)

    # One function with every option's lambda: -O3 takes twice as long as -Os, and it runs once a start.
    set_source_files_properties(common/arg.cpp TARGET_DIRECTORY llama-common PROPERTIES COMPILE_OPTIONS -Os)
  endfunction()
  cmake_language(DEFER DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}" CALL sampan_units)
endif()
