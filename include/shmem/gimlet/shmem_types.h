/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The one table of OpenSHMEM type families. Each list applies X(TYPENAME, TYPE, ...); every typed function of
 * the headers and of the library is made from it. Included by <shmem.h>, which undefines the lists again;
 * not a public header by itself.
 */
#define SHMEM_I_RMA(X, ...)                          \
  X(float, float, __VA_ARGS__)                       \
  X(double, double, __VA_ARGS__)                     \
  X(longdouble, long double, __VA_ARGS__)            \
  X(char, char, __VA_ARGS__)                         \
  X(schar, signed char, __VA_ARGS__)                 \
  X(short, short, __VA_ARGS__)                       \
  X(int, int, __VA_ARGS__)                           \
  X(long, long, __VA_ARGS__)                         \
  X(longlong, long long, __VA_ARGS__)                \
  X(uchar, unsigned char, __VA_ARGS__)               \
  X(ushort, unsigned short, __VA_ARGS__)             \
  X(uint, unsigned int, __VA_ARGS__)                 \
  X(ulong, unsigned long, __VA_ARGS__)               \
  X(ulonglong, unsigned long long, __VA_ARGS__)      \
  X(int8, int8_t, __VA_ARGS__)                       \
  X(int16, int16_t, __VA_ARGS__)                     \
  X(int32, int32_t, __VA_ARGS__)                     \
  X(int64, int64_t, __VA_ARGS__)                     \
  X(uint8, uint8_t, __VA_ARGS__)                     \
  X(uint16, uint16_t, __VA_ARGS__)                   \
  X(uint32, uint32_t, __VA_ARGS__)                   \
  X(uint64, uint64_t, __VA_ARGS__)                   \
  X(size, size_t, __VA_ARGS__)                       \
  X(ptrdiff, ptrdiff_t, __VA_ARGS__)

/* Bits of one element of the sized families. */
#define SHMEM_I_SIZES(X, ...) \
  X(8, __VA_ARGS__) X(16, __VA_ARGS__) X(32, __VA_ARGS__) X(64, __VA_ARGS__) X(128, __VA_ARGS__)

#define SHMEM_I_AMO_BIT(X, ...)                 \
  X(uint, unsigned int, __VA_ARGS__)            \
  X(ulong, unsigned long, __VA_ARGS__)          \
  X(ulonglong, unsigned long long, __VA_ARGS__) \
  X(int32, int32_t, __VA_ARGS__)                \
  X(int64, int64_t, __VA_ARGS__)                \
  X(uint32, uint32_t, __VA_ARGS__)              \
  X(uint64, uint64_t, __VA_ARGS__)

#define SHMEM_I_AMO_STD(X, ...)         \
  X(int, int, __VA_ARGS__)              \
  X(long, long, __VA_ARGS__)            \
  X(longlong, long long, __VA_ARGS__)   \
  SHMEM_I_AMO_BIT(X, __VA_ARGS__)       \
  X(size, size_t, __VA_ARGS__)          \
  X(ptrdiff, ptrdiff_t, __VA_ARGS__)

#define SHMEM_I_AMO_EXT(X, ...)       \
  SHMEM_I_AMO_STD(X, __VA_ARGS__)     \
  X(float, float, __VA_ARGS__)        \
  X(double, double, __VA_ARGS__)

/* Deprecated extra types of wait_until and test. */
#define SHMEM_I_P2P_SHORT(X, ...) X(short, short, __VA_ARGS__) X(ushort, unsigned short, __VA_ARGS__)
