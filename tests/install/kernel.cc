// SPDX-License-Identifier: BSD-3-Clause
// A C++ program as a user would write it: a kernel in the symmetric heap, next to host OpenSHMEM.
#include <gin/gin.h>
#include <shmem.h>

#include <cstdio>

namespace {

__global__ void number(int* out, int first) {
  out[blockIdx.x * blockDim.x + threadIdx.x] =
      first + static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
}

bool numbers_are_right(const int* values, int count) {
  for (int i = 0; i < count; ++i) {
    if (values[i] != 7 + i) {
      std::fprintf(stderr, "element %d is %d and not %d\n", i, values[i], 7 + i);
      return false;
    }
  }
  return true;
}

}  // namespace

int main() {
  constexpr int kBlocks = 3;
  constexpr int kThreads = 64;
  shmem_init();
  auto* values = static_cast<int*>(shmem_malloc(sizeof(int) * kBlocks * kThreads));
  if (values == nullptr) return 1;
  if (gin::launch(number, {kBlocks, kThreads}, values, 7) != ginSuccess) return 1;
  if (gin::streamSynchronize(nullptr) != ginSuccess) return 1;
  const bool right = numbers_are_right(values, kBlocks * kThreads);
  shmem_free(values);
  shmem_finalize();
  return right ? 0 : 1;
}
