/* What the shared library shows of itself: everything marked BPLS_API, and nothing else. */
#ifndef BPLS_EXPORT_H
#define BPLS_EXPORT_H

#if defined(__GNUC__)
#define BPLS_API __attribute__((visibility("default")))
#else
#define BPLS_API
#endif

#endif
