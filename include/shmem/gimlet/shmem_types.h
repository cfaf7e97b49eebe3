/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The one table of OpenSHMEM type families. Each list applies X(TYPENAME, TYPE, ARG); every typed
 * function of the headers and of the library is made from it. Included by <shmem.h>, which
 * undefines the lists again; not a public header by itself.
 */
#define SHMEM_I_RMA(X, ARG)             \
  X(float, float, ARG)                  \
  X(double, double, ARG)                \
  X(longdouble, long double, ARG)       \
  X(char, char, ARG)                    \
  X(schar, signed char, ARG)            \
  X(short, short, ARG)                  \
  X(int, int, ARG)                      \
  X(long, long, ARG)                    \
  X(longlong, long long, ARG)           \
  X(uchar, unsigned char, ARG)          \
  X(ushort, unsigned short, ARG)        \
  X(uint, unsigned int, ARG)            \
  X(ulong, unsigned long, ARG)          \
  X(ulonglong, unsigned long long, ARG) \
  X(int8, int8_t, ARG)                  \
  X(int16, int16_t, ARG)                \
  X(int32, int32_t, ARG)                \
  X(int64, int64_t, ARG)                \
  X(uint8, uint8_t, ARG)                \
  X(uint16, uint16_t, ARG)              \
  X(uint32, uint32_t, ARG)              \
  X(uint64, uint64_t, ARG)              \
  X(size, size_t, ARG)                  \
  X(ptrdiff, ptrdiff_t, ARG)

/* Bits of one element of the sized families. */
#define SHMEM_I_SIZES(X, ARG) X(8, ARG) X(16, ARG) X(32, ARG) X(64, ARG) X(128, ARG)

#define SHMEM_I_AMO_BIT(X, ARG)         \
  X(uint, unsigned int, ARG)            \
  X(ulong, unsigned long, ARG)          \
  X(ulonglong, unsigned long long, ARG) \
  X(int32, int32_t, ARG)                \
  X(int64, int64_t, ARG)                \
  X(uint32, uint32_t, ARG)              \
  X(uint64, uint64_t, ARG)

#define SHMEM_I_AMO_STD(X, ARG) \
  X(int, int, ARG)              \
  X(long, long, ARG)            \
  X(longlong, long long, ARG)   \
  SHMEM_I_AMO_BIT(X, ARG)       \
  X(size, size_t, ARG)          \
  X(ptrdiff, ptrdiff_t, ARG)

#define SHMEM_I_AMO_EXT(X, ARG) \
  SHMEM_I_AMO_STD(X, ARG)       \
  X(float, float, ARG)          \
  X(double, double, ARG)

/* Deprecated extra types of wait_until and test. */
#define SHMEM_I_P2P_SHORT(X, ARG) X(short, short, ARG) X(ushort, unsigned short, ARG)
