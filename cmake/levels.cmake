# The instruction-set levels. Only csrc/kernels/kernels_<level>.cpp is compiled with that level's flags: a function
# compiled with them anywhere else could be run by a CPU that has not got them.

function(bpls_add_level target level)
  string(JOIN " " flags ${ARGN})
  set(source ${CMAKE_CURRENT_SOURCE_DIR}/csrc/kernels/kernels_${level}.cpp)
  target_sources(${target} PRIVATE ${source})
  # Kernels are worth optimising in every build: an unoptimised tile is a hundred times slower.
  # They throw nothing; told so, the compiler leaves no reference to the exception machinery, which would be a weak one.
  # GCC 12 also warns of its own AVX-512 header, where __Y is undefined on purpose.
  set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS
    "${ARGN};$<$<NOT:$<CXX_COMPILER_ID:MSVC>>:-O3;-fno-exceptions>;$<$<CXX_COMPILER_ID:GNU>:-Wno-uninitialized>")
  string(TOUPPER ${level} name)
  set_property(SOURCE ${CMAKE_CURRENT_SOURCE_DIR}/csrc/core/dispatch.cpp
    APPEND PROPERTY COMPILE_DEFINITIONS "BPLS_FLAGS_${name}=\"${flags}\"")
endfunction()

function(bpls_add_levels target)
  bpls_add_level(${target} generic)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$" AND NOT CMAKE_OSX_ARCHITECTURES MATCHES "arm64")
    target_compile_definitions(${target} PRIVATE BPLS_X86)
    target_sources(${target} PRIVATE csrc/core/cpu_x86.cpp)
    if(MSVC)
      bpls_add_level(${target} avx2 /arch:AVX2)
      bpls_add_level(${target} avx512 /arch:AVX512)
      bpls_add_level(${target} avx512vnni /arch:AVX512)
    else()
      set(avx2 -mavx2 -mfma)
      set(avx512 ${avx2} -mavx512f -mavx512bw -mavx512dq -mavx512vl -mprefer-vector-width=512)
      bpls_add_level(${target} avx2 ${avx2})
      bpls_add_level(${target} avx512 ${avx512})
      bpls_add_level(${target} avx512vnni ${avx512} -mavx512vnni)
    endif()
  else()
    target_sources(${target} PRIVATE csrc/core/cpu_other.cpp)
  endif()
endfunction()
