# The instruction-set levels, listed once. From this list follow the enum bpls::Isa, the names, the kernel tables, the
# compiler flags and the levels that the tests run. A level of another architecture is known by name and not built.

set(bpls_levels "")

# Adds a level: its name, the level it falls back to where the CPU lacks it, its architecture, and its compiler flags.
function(bpls_level name fallback architecture)
  cmake_parse_arguments(PARSE_ARGV 3 flags "" "" "GNU;MSVC")
  set(bpls_levels ${bpls_levels} ${name} PARENT_SCOPE)
  set(bpls_${name}_fallback ${fallback} PARENT_SCOPE)
  set(bpls_${name}_architecture ${architecture} PARENT_SCOPE)
  if(MSVC)
    set(bpls_${name}_flags "${flags_MSVC}" PARENT_SCOPE)
  else()
    set(bpls_${name}_flags "${flags_GNU}" PARENT_SCOPE)
  endif()
endfunction()

set(avx2 -mavx2 -mfma)
set(avx512 ${avx2} -mavx512f -mavx512bw -mavx512dq -mavx512vl -mprefer-vector-width=512)

bpls_level(generic    generic any)
bpls_level(avx2       generic x86 GNU ${avx2} MSVC /arch:AVX2)
bpls_level(avx512     avx2    x86 GNU ${avx512} MSVC /arch:AVX512)
bpls_level(avx512vnni avx512  x86 GNU ${avx512} -mavx512vnni MSVC /arch:AVX512)

# csrc/core/cpu_<architecture>.cpp asks the CPU which of its levels it supports.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$" AND NOT CMAKE_OSX_ARCHITECTURES MATCHES "arm64")
  set(bpls_architecture x86)
else()
  set(bpls_architecture other)
endif()

# Only the translation units that this compiles get a level's flags: a function compiled with them anywhere else could be
# run by a CPU that lacks the instructions.
function(bpls_add_level_source target level source)
  target_sources(${target} PRIVATE ${source})
  # Unoptimised kernels are a hundred times slower, so every build optimises them. They throw nothing; with -fno-exceptions
  # the compiler leaves no reference to the exception machinery, which would be a weak symbol. GCC 12 also warns about its
  # own AVX-512 header, where __Y is undefined on purpose.
  set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS
    "${bpls_${level}_flags};$<$<NOT:$<CXX_COMPILER_ID:MSVC>>:-O3;-fno-exceptions>;$<$<CXX_COMPILER_ID:GNU>:-Wno-uninitialized>")
endfunction()

# Adds the kernels of all levels of this architecture to the target `library`, and their probes to the target `probes`.
# Writes the headers that list the levels to the folder `generated`.
function(bpls_add_levels library probes generated)
  set(names "")
  set(externs "")
  set(rows "")
  set(probe_rows "")
  foreach(level IN LISTS bpls_levels)
    list(APPEND names "\"${level}\"")
    if(NOT bpls_${level}_architecture MATCHES "^(any|${bpls_architecture})$")
      continue()
    endif()
    bpls_add_level_source(${library} ${level} ${CMAKE_CURRENT_SOURCE_DIR}/csrc/kernels/kernels_${level}.cpp)
    configure_file(cmake/probes.cpp.in ${generated}/kernels/probes_${level}.cpp @ONLY)
    bpls_add_level_source(${probes} ${level} ${generated}/kernels/probes_${level}.cpp)
    string(JOIN " " flags ${bpls_${level}_flags})
    string(APPEND externs "extern const Table ${level};\nextern const Probes ${level}_probes;\n")
    string(APPEND rows
      "    {Isa::${level}, \"${level}\", Isa::${bpls_${level}_fallback}, \"${flags}\", &${level}},\n")
    string(APPEND probe_rows "    &${level}_probes,\n")
  endforeach()
  string(JOIN ", " isa_values ${bpls_levels})
  string(JOIN ", " level_names ${names})
  configure_file(cmake/isa.hpp.in ${generated}/bpls/isa.hpp @ONLY)
  configure_file(cmake/levels.hpp.in ${generated}/kernels/levels.hpp @ONLY)
  target_sources(${library} PRIVATE csrc/core/cpu_${bpls_architecture}.cpp)
endfunction()
