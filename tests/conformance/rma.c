/* SPDX-License-Identifier: BSD-3-Clause */
/* launch: np=1,2,3,4,7 */
/*
 * 9.6 and 9.7: every typed, sized and mem form of put, get, p and g, blocking and not, from every
 * PE to every PE, itself included, in the heap and in static data. All bytes move, also the padding
 * of long double, and no byte beside them.
 */
#include "families.h"

enum { kMostElements = 33, kGuard = 0xc3 };

/* One transfer of `nelems` elements, by one form, in its own slot for each sender. */
struct transfer {
  size_t nelems;
  enum { kPut, kPutNbi, kOne } form;
};
static const struct transfer transfers[] = {{1, kPut},    {3, kPut},     {kMostElements, kPut},
                                            {1, kPutNbi}, {17, kPutNbi}, {1, kOne}};
enum { kTransfers = sizeof transfers / sizeof transfers[0] };

static uint64_t occasion(size_t family, const struct place* place, size_t transfer) {
  return family * 100 + (size_t)(place - t_places) * 10 + transfer;
}

/* Guard elements stand in front of each slot and behind the last. */
static size_t slot_bytes(size_t element) {
  return (kMostElements + 1) * element;
}

static unsigned char* slot(unsigned char* base, size_t element, size_t transfer, int pe) {
  return base + element + ((size_t)pe * kTransfers + transfer) * slot_bytes(element);
}

static size_t region_bytes(size_t element) {
  return element + (size_t)t_pes * kTransfers * slot_bytes(element);
}

static void check_slot(const struct family* family, const struct place* place, size_t t,
                       const unsigned char* from, uint64_t key, const char* what) {
  const size_t bytes =
      transfers[t].form == kOne ? family->value_size : transfers[t].nelems * family->size;
  /* The padding that passing by value may lose is neither data nor guard. */
  const size_t reach = transfers[t].nelems * family->size;
  const size_t wrong = t_differs(from, bytes, key);
  t_check(wrong == bytes, "%s %s in %s, transfer %zu: byte %zu of %zu is %#x", family->name, what,
          place->name, t, wrong, bytes, from[wrong]);
  t_check(t_is_all(from + reach, slot_bytes(family->size) - reach, kGuard),
          "%s %s in %s, transfer %zu: bytes behind its %zu elements were written", family->name,
          what, place->name, t, transfers[t].nelems);
}

static void put_all(size_t f, const struct place* place) {
  const struct family* family = &t_families[f];
  /* Sources of non-blocking forms stay as they are until quiet: one buffer for each. */
  static unsigned char sources[kMaxPes][kTransfers][kMostElements * 16];
  memset(place->bytes, kGuard, region_bytes(family->size));
  shmem_barrier_all();
  for (int pe = 0; pe < t_pes; ++pe) {
    for (size_t t = 0; t < kTransfers; ++t) {
      const struct transfer* transfer = &transfers[t];
      unsigned char* source = sources[pe][t];
      unsigned char* dest = slot(place->bytes, family->size, t, t_me);
      t_fill(source, transfer->nelems * family->size, t_key(t_me, pe, occasion(f, place, t)));
      if (transfer->form == kOne) {
        if (family->p != NULL) family->p(dest, source, pe);
      } else if (transfer->form == kPut) {
        family->put(dest, source, transfer->nelems, pe);
        memset(source, 0, transfer->nelems * family->size); /* may be reused at once */
      } else {
        family->put_nbi(dest, source, transfer->nelems, pe);
      }
    }
  }
  shmem_barrier_all();
  for (int pe = 0; pe < t_pes; ++pe) {
    for (size_t t = 0; t < kTransfers; ++t) {
      if (transfers[t].form == kOne && family->p == NULL) continue;
      check_slot(family, place, t, slot(place->bytes, family->size, t, pe),
                 t_key(pe, t_me, occasion(f, place, t)), "put");
    }
  }
  t_check(t_is_all(place->bytes, family->size, kGuard), "%s put in %s: the first guard was written",
          family->name, place->name);
  shmem_barrier_all();
}

static void get_all(size_t f, const struct place* place) {
  const struct family* family = &t_families[f];
  static unsigned char results[(kMaxPes * kTransfers * (kMostElements + 1) + 1) * 16];
  for (int pe = 0; pe < t_pes; ++pe) {
    for (size_t t = 0; t < kTransfers; ++t) {
      /* Slot `pe` of this PE is what PE `pe` will get. */
      t_fill(slot(place->bytes, family->size, t, pe), transfers[t].nelems * family->size,
             t_key(t_me, pe, 7777 + occasion(f, place, t)));
    }
  }
  memset(results, kGuard, region_bytes(family->size));
  shmem_barrier_all();
  for (int pe = 0; pe < t_pes; ++pe) {
    for (size_t t = 0; t < kTransfers; ++t) {
      const struct transfer* transfer = &transfers[t];
      unsigned char* result = slot(results, family->size, t, pe);
      const unsigned char* source = slot(place->bytes, family->size, t, t_me);
      if (transfer->form == kOne) {
        if (family->g != NULL) family->g(result, source, pe);
      } else if (transfer->form == kPut) {
        family->get(result, source, transfer->nelems, pe);
        check_slot(family, place, t, result, t_key(pe, t_me, 7777 + occasion(f, place, t)), "get");
      } else {
        family->get_nbi(result, source, transfer->nelems, pe);
      }
    }
  }
  shmem_quiet();
  for (int pe = 0; pe < t_pes; ++pe) {
    for (size_t t = 0; t < kTransfers; ++t) {
      if (transfers[t].form == kOne && family->g == NULL) continue;
      check_slot(family, place, t, slot(results, family->size, t, pe),
                 t_key(pe, t_me, 7777 + occasion(f, place, t)), "get");
    }
  }
  shmem_barrier_all();
}

/* No element: no action, whatever the pointers. */
static void move_nothing(const struct family* family) {
  unsigned char local[16];
  memset(local, kGuard, sizeof local);
  for (int pe = 0; pe < t_pes; ++pe) {
    family->put(NULL, NULL, 0, pe);
    family->get(NULL, NULL, 0, pe);
    family->put_nbi(NULL, NULL, 0, pe);
    family->get_nbi(NULL, NULL, 0, pe);
    for (T_EACH_PLACE(place)) {
      family->put(place->bytes, NULL, 0, pe);
      family->put_nbi(place->bytes, local, 0, pe);
      family->get(local, place->bytes, 0, pe);
      family->get_nbi(NULL, place->bytes, 0, pe);
    }
  }
  shmem_quiet();
  t_check(t_is_all(local, sizeof local, kGuard), "%s: a get of nothing wrote", family->name);
}

int main(void) {
  t_start();
  t_make_places();
  for (size_t f = 0; f < kFamilies; ++f) {
    for (T_EACH_PLACE(place)) {
      if (region_bytes(t_families[f].size) > kPlaceBytes) shmem_global_exit(99);
      put_all(f, place);
      get_all(f, place);
    }
    move_nothing(&t_families[f]);
  }
  return t_finish();
}
