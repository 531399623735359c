// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

#include "textflag.h"

// handleSignal is called by the kernel with the address of a siginfo_t in SI. It writes 20 bytes of it to signalPipe.
TEXT handleSignal<>(SB), NOSPLIT|NOFRAME, $0
	MOVQ ·signalPipe(SB), DI
	MOVL $20, DX
	MOVL $1, AX // SYS_write
	SYSCALL
	RET

TEXT ·handlerAddress(SB), NOSPLIT, $0-8
	LEAQ handleSignal<>(SB), AX
	MOVQ AX, ret+0(FP)
	RET
