/* SPDX-License-Identifier: BSD-3-Clause */
/* <shmem.h> defines only specified names: the lists of shmem_types.h end here. */
#undef SHMEM_I_RMA
#undef SHMEM_I_SIZES
#undef SHMEM_I_AMO_BIT
#undef SHMEM_I_AMO_STD
#undef SHMEM_I_AMO_EXT
#undef SHMEM_I_P2P_SHORT
