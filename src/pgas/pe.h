// SPDX-License-Identifier: BSD-3-Clause
#ifndef GIMLET_PGAS_PE_H
#define GIMLET_PGAS_PE_H
#endif
