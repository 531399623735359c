// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

#include "textflag.h"

// handleSignal is called by the kernel with the address of a siginfo_t in R1. It writes 20 bytes of it to signalPipe.
TEXT handleSignal<>(SB), NOSPLIT|NOFRAME, $0
	MOVD ·signalPipe(SB), R0
	MOVD $20, R2
	MOVD $64, R8 // SYS_write
	SVC
	RET

TEXT ·handlerAddress(SB), NOSPLIT, $0-8
	MOVD $handleSignal<>(SB), R0
	MOVD R0, ret+0(FP)
	RET
