// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package initproc

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// stopSignals stop the container: a container runtime sends SIGTERM, or the image's STOPSIGNAL.
var stopSignals = []os.Signal{syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM}

// otherSignals end a Go program that does not handle them. To ignore them would have commands ignore them as well.
var otherSignals = []os.Signal{
	syscall.SIGHUP, syscall.SIGILL, syscall.SIGTRAP, syscall.SIGABRT, syscall.SIGBUS, syscall.SIGFPE, syscall.SIGSEGV,
	syscall.SIGPIPE, syscall.SIGSTKFLT, syscall.SIGSYS,
}

// signalInfo is how siginfo_t begins for signals that kill sends.
type signalInfo struct {
	Signal, Errno, Code, _ int32
	Sender                 uint32
}

// signalPipe is the descriptor to which handleSignal writes the signalInfo of a stop signal. It stays open as long as
// the process lives: else a signal would be written to the file that has its number next.
var signalPipe uintptr //nolint:unused // Assembly reads it.

// handlerAddress is that of handleSignal, in assembly: package signal does not tell who sent a signal, and the runtime
// lets no thread block these signals, so that signalfd cannot read them.
func handlerAddress() uintptr

// Stopped returns a context that is done when a container runtime stops the container. Signals of commands, which run
// in the PID namespace of process 1, do not stop it, and none of them ends this process.
func Stopped(log *slog.Logger) (context.Context, error) {
	// The runtime handles them from then on, even if they were ignored at the start.
	signal.Notify(make(chan os.Signal, 1), append(otherSignals, stopSignals...)...)
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return nil, fmt.Errorf("making a pipe: %w", err)
	}
	read := os.NewFile(uintptr(ends[0]), "signals")
	signalPipe = uintptr(ends[1])
	for _, s := range stopSignals {
		if err := replaceHandler(s.(syscall.Signal)); err != nil {
			return nil, fmt.Errorf("handling signals: %w", err)
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		defer stop()
		for {
			var received signalInfo
			if err := binary.Read(read, binary.NativeEndian, &received); err != nil {
				log.Error("Signals cannot be read", "error", err)
				return
			}
			if received.isFromOutside(os.Getpid()) {
				stop()
				continue
			}
			log.Warn("A process of the container tried to stop the agent",
				"signal", received.Signal, "pid", received.Sender)
		}
	}()
	return ctx, nil
}

// replaceHandler puts handleSignal in the place of the runtime's handler.
func replaceHandler(s syscall.Signal) error {
	var action struct{ handler, flags, restorer, mask uintptr }
	address, maskBytes := unsafe.Pointer(&action), unsafe.Sizeof(action.mask)
	_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(s), 0, uintptr(address), maskBytes, 0, 0)
	if errno == 0 {
		action.handler = handlerAddress()
		_, _, errno = unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(s), uintptr(address), 0, maskBytes, 0, 0)
	}
	if errno != 0 {
		return errno
	}
	return nil
}

// isFromOutside reports whether the sender is outside of the PID namespace, whose processes have no id in it. Only
// kill(2) has the code, and its sender cannot forge it. For a process that is not process 1 all senders count.
func (s signalInfo) isFromOutside(pid int) bool {
	const siUser = 0
	return pid != 1 || s.Code == siUser && s.Sender == 0
}
