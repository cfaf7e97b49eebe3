// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_TESTS_UNIT_RANDOM_H
#define GIMLET_TESTS_UNIT_RANDOM_H

#include <sys/random.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>

namespace gimlet::tests {

/// A generator whose seed is printed, so that a failure can be repeated with
/// GIMLET_TEST_SEED=<seed>.
inline std::mt19937_64 seeded_generator(const char* test) {
  std::uint64_t seed = 0;
  if (const char* wanted = std::getenv("GIMLET_TEST_SEED")) {
    seed = std::strtoull(wanted, nullptr, 0);
  } else if (::getrandom(&seed, sizeof seed, 0) != static_cast<ssize_t>(sizeof seed)) {
    std::abort();
  }
  std::printf("%s: GIMLET_TEST_SEED=%llu\n", test, static_cast<unsigned long long>(seed));
  std::fflush(stdout);
  return std::mt19937_64(seed);
}

/// Uniform in [low, high].
inline std::uint64_t draw(std::mt19937_64& generator, std::uint64_t low, std::uint64_t high) {
  return std::uniform_int_distribution<std::uint64_t>(low, high)(generator);
}

}  // namespace gimlet::tests

#endif
