# SPDX-License-Identifier: BSD-3-Clause
shmemdir = $(includedir)
shmem_gimletdir = $(includedir)/gimlet
shmem_mppdir = $(includedir)/mpp
gindir = $(includedir)/gin
gin_impldir = $(includedir)/gin/impl
dist_shmem_HEADERS = %D%/shmem/shmem.h %D%/shmem/shmemx.h %D%/shmem/pshmem.h
dist_shmem_gimlet_HEADERS = %D%/shmem/gimlet/shmem_prototypes.h %D%/shmem/gimlet/shmem_types.h %D%/shmem/gimlet/shmem_types_end.h
dist_shmem_mpp_HEADERS = %D%/shmem/mpp/shmem.h %D%/shmem/mpp/shmemx.h
dist_gin_HEADERS = %D%/gin/action.h %D%/gin/barrier.h %D%/gin/comm.h %D%/gin/context.h %D%/gin/coop.h \
	%D%/gin/dev_comm.h %D%/gin/gin.h %D%/gin/launch.h %D%/gin/platform.h %D%/gin/result.h %D%/gin/team.h \
	%D%/gin/window.h
dist_gin_impl_HEADERS = %D%/gin/impl/atomic.h %D%/gin/impl/barrier.h %D%/gin/impl/barrier_layout.h \
	%D%/gin/impl/context.h %D%/gin/impl/coop.h %D%/gin/impl/copy.h %D%/gin/impl/device.h \
	%D%/gin/impl/direct.h %D%/gin/impl/exec.h %D%/gin/impl/fault.h %D%/gin/impl/hooks.h \
	%D%/gin/impl/launch_cuda.h %D%/gin/impl/launch_executor.h %D%/gin/impl/platform_cuda.h \
	%D%/gin/impl/platform_executor.h %D%/gin/impl/proxied.h %D%/gin/impl/ring.h \
	%D%/gin/impl/ring_layout.h %D%/gin/impl/tables.h %D%/gin/impl/window.h
