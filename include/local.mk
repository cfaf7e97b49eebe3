# SPDX-License-Identifier: BSD-3-Clause
shmemdir = $(includedir)
shmem_gimletdir = $(includedir)/gimlet
shmem_mppdir = $(includedir)/mpp
gindir = $(includedir)/gin
gin_impldir = $(includedir)/gin/impl
dist_shmem_HEADERS = %D%/shmem/shmem.h %D%/shmem/shmemx.h %D%/shmem/pshmem.h
dist_shmem_gimlet_HEADERS = %D%/shmem/gimlet/shmem_prototypes.h %D%/shmem/gimlet/shmem_types.h %D%/shmem/gimlet/shmem_types_end.h
dist_shmem_mpp_HEADERS = %D%/shmem/mpp/shmem.h %D%/shmem/mpp/shmemx.h
dist_gin_HEADERS = %D%/gin/launch.h %D%/gin/platform.h %D%/gin/result.h
dist_gin_impl_HEADERS = %D%/gin/impl/exec.h %D%/gin/impl/launch_cuda.h %D%/gin/impl/launch_executor.h \
	%D%/gin/impl/platform_cuda.h %D%/gin/impl/platform_executor.h
