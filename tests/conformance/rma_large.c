/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * 9.6 and 9.7: transfers from nothing to more than a MiB, at odd addresses, between symmetric
 * memory of each kind and local memory of each kind, one at a time and many at once.
 */
#include "conformance.h"

enum { kMi = 1024 * 1024, kMost = kMi + 3, kShift = 16, kGuardBytes = 64, kGuard = 0xc3 };
enum { kRoom = kGuardBytes + kShift + kMost + kGuardBytes };

static const size_t sizes[] = {0,    1,     2,     3,     5,     7,      8,       9,
                               63,   64,    65,    255,   1000,  4095,   4096,    4097,
                               8191, 16384, 16385, 65535, 65537, 262145, kMi - 1, kMost};
enum { kSizes = sizeof sizes / sizeof sizes[0] };

static unsigned char static_room[kRoom];
static unsigned char static_source[kRoom];

struct kind {
  const char* name;
  unsigned char* bytes;
};
static struct kind symmetric[2];
static struct kind local[3];

/* Where `size` bytes lie in a room; guards stand on both sides. */
static unsigned char* payload(unsigned char* room, size_t size) {
  return room + kGuardBytes + size % kShift;
}

static void clear(unsigned char* room, size_t size) {
  memset(room, kGuard, kGuardBytes + kShift + size + kGuardBytes);
}

static void check_room(unsigned char* room, size_t size, uint64_t key, const char* what,
                       const char* from, const char* to) {
  unsigned char* bytes = payload(room, size);
  const size_t wrong = t_differs(bytes, size, key);
  t_check(wrong == size, "%s of %zu bytes from %s to %s: byte %zu is wrong", what, size, from, to,
          wrong);
  t_check(
      t_is_all(room, (size_t)(bytes - room), kGuard) && t_is_all(bytes + size, kGuardBytes, kGuard),
      "%s of %zu bytes from %s to %s wrote beside its bytes", what, size, from, to);
}

static void put_each_size(const struct kind* source, const struct kind* dest, bool nbi) {
  const int to = (t_me + 1) % t_pes;
  const int from = (t_me + t_pes - 1) % t_pes;
  for (size_t i = 0; i < kSizes; ++i) {
    const size_t size = sizes[i];
    unsigned char* bytes = payload(source->bytes, size) + 1; /* not aligned as the other side is */
    clear(dest->bytes, size);
    t_fill(bytes, size, t_key(t_me, to, size + nbi));
    shmem_barrier_all();
    if (nbi) {
      shmem_putmem_nbi(payload(dest->bytes, size), bytes, size, to);
    } else {
      shmem_putmem(payload(dest->bytes, size), bytes, size, to);
      memset(bytes, 0, size);
    }
    shmem_barrier_all();
    check_room(dest->bytes, size, t_key(from, t_me, size + nbi), nbi ? "put_nbi" : "put",
               source->name, dest->name);
  }
}

static void get_each_size(const struct kind* source, const struct kind* dest, bool nbi) {
  const int from = (t_me + 1) % t_pes;
  for (size_t i = 0; i < kSizes; ++i) {
    const size_t size = sizes[i];
    t_fill(payload(source->bytes, size) + 1, size, t_key(t_me, 0, size + nbi));
    clear(dest->bytes, size);
    shmem_barrier_all();
    unsigned char* bytes = payload(dest->bytes, size);
    if (nbi) {
      shmem_getmem_nbi(bytes, payload(source->bytes, size) + 1, size, from);
      shmem_quiet();
    } else {
      shmem_getmem(bytes, payload(source->bytes, size) + 1, size, from);
    }
    check_room(dest->bytes, size, t_key(from, 0, size + nbi), nbi ? "get_nbi" : "get", source->name,
               dest->name);
    shmem_barrier_all();
  }
}

/* All sizes under way at once, puts and gets; one quiet completes them. */
static void many_at_once(const struct kind* memory) {
  static unsigned char* outgoing[kSizes];
  static unsigned char* incoming[kSizes];
  const int to = (t_me + 1) % t_pes;
  const int from = (t_me + t_pes - 1) % t_pes;
  size_t offset = 0;
  for (size_t i = 0; i < kSizes && sizes[i] <= 65537; ++i) {
    outgoing[i] = malloc(sizes[i] + 1);
    incoming[i] = malloc(sizes[i] + 1);
    t_fill(outgoing[i], sizes[i], t_key(t_me, to, i));
  }
  shmem_barrier_all();
  for (size_t i = 0; i < kSizes && sizes[i] <= 65537; ++i) {
    shmem_putmem_nbi(memory->bytes + offset, outgoing[i], sizes[i], to);
    offset += sizes[i];
  }
  shmem_barrier_all();
  offset = 0;
  for (size_t i = 0; i < kSizes && sizes[i] <= 65537; ++i) {
    const size_t wrong = t_differs(memory->bytes + offset, sizes[i], t_key(from, t_me, i));
    t_check(wrong == sizes[i], "one of many puts to %s, of %zu bytes: byte %zu is wrong",
            memory->name, sizes[i], wrong);
    /* What the next PE holds now was sent to it by this one. */
    shmem_getmem_nbi(incoming[i], memory->bytes + offset, sizes[i], to);
    offset += sizes[i];
  }
  shmem_quiet();
  for (size_t i = 0; i < kSizes && sizes[i] <= 65537; ++i) {
    const size_t wrong = t_differs(incoming[i], sizes[i], t_key(t_me, to, i));
    t_check(wrong == sizes[i], "one of many gets from %s, of %zu bytes: byte %zu is wrong",
            memory->name, sizes[i], wrong);
    free(incoming[i]);
    free(outgoing[i]);
  }
  shmem_barrier_all();
}

int main(void) {
  t_start();
  unsigned char* room = shmem_malloc(kRoom);
  unsigned char* source = shmem_malloc(kRoom);
  unsigned char* private_room = malloc(kRoom);
  if (room == NULL || source == NULL || private_room == NULL) shmem_global_exit(1);
  symmetric[0] = (struct kind){"heap", room};
  symmetric[1] = (struct kind){".bss", static_room};
  local[0] = (struct kind){"heap", source};
  local[1] = (struct kind){".bss", static_source};
  local[2] = (struct kind){"private memory", private_room};
  for (int s = 0; s < 2; ++s) {
    for (int l = 0; l < 3; ++l) {
      for (int nbi = 0; nbi < 2; ++nbi) {
        put_each_size(&local[l], &symmetric[s], nbi);
        get_each_size(&symmetric[s], &local[l], nbi);
      }
    }
    many_at_once(&symmetric[s]);
  }
  free(private_room);
  return t_finish();
}
