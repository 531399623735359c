// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package supervisor is the process between process 1 of a workspace's container and the command of one call. It is the
// subreaper of all that the command starts, whatever becomes of the sessions, environments and descriptors of that: so
// the processes of a call are the descendants of its supervisor, and no others. It stays until it has no child left.
//
// Each command that runs has one, so it must be small. It is the program that process 1 is, and the initialization of
// this package never returns in it. The linker puts that before the initialization of nearly all other packages, in the
// order of their paths, as this one imports nothing that has much to initialise. Keep it so.
package supervisor

import (
	"syscall"
	"unsafe"
)

// Name is what lists of processes show of a supervisor.
const Name = "parley-supervisor"

// variable is set in the environment of a supervisor, and of no other process.
const variable = "PARLEY_SUPERVISOR"

// The descriptors of a supervisor: those of the command, where reports go, and the plan.
const (
	firstOwn   = 3
	reports    = 3
	plan       = 4
	afterOwn   = 5
	mostSignal = 64
)

// Attributes are what a supervisor is forked with: the files of the command, the pipe for reports, and the plan.
func Attributes(input, output, errors, reports, plan uintptr) *syscall.ProcAttr {
	return &syscall.ProcAttr{
		// It is too small for a garbage collector and for parallel work. Huge pages would make it large.
		Env:   []string{variable + "=1", "GOMAXPROCS=1", "GOGC=off", "GODEBUG=disablethp=1"},
		Files: []uintptr{input, output, errors, reports, plan},
		// Commands that signal their process group, or that of their parent, do not reach process 1.
		Sys: &syscall.SysProcAttr{Setsid: true},
	}
}

func init() {
	if _, ok := syscall.Getenv(variable); ok {
		supervise()
	}
}

// supervise starts the command, reports what becomes of it, and ends the process once it has no child.
func supervise() {
	command, err := start()
	if err != nil {
		errno := syscall.EINVAL
		if e, ok := err.(syscall.Errno); ok { //nolint:errorlint // Package errors would be initialised first.
			errno = e
		}
		report(Failed, int(errno))
		syscall.Exit(0)
	}
	report(Started, command)
	// Otherwise the reader of its output would not see its end.
	for _, descriptor := range []int{0, 1, 2, plan} {
		_ = syscall.Close(descriptor) // It is open.
	}
	for {
		pid, status := reap(0)
		switch {
		case pid < 0:
			syscall.Exit(0)
		case pid == command && alone():
			report(Over, int(status))
		case pid == command:
			report(Exited, int(status))
		}
	}
}

// start makes this process what it is to be, and forks the command.
func start() (int, error) {
	const subreaper = 36 // PR_SET_CHILD_SUBREAPER
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, subreaper, 1, 0); errno != 0 {
		return 0, errno
	}
	// What runs as the same user cannot trace this process, nor use its descriptors.
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_DUMPABLE, 0, 0); errno != 0 {
		return 0, errno
	}
	for descriptor := firstOwn; descriptor < afterOwn; descriptor++ {
		syscall.CloseOnExec(descriptor)
	}
	ignoreSignals()
	encoded, err := mapped()
	if err != nil {
		return 0, err
	}
	defer func() { _ = syscall.Munmap(encoded) }() // It was mapped.
	p, err := decode(encoded)
	if err != nil {
		return 0, err
	}
	return syscall.ForkExec(p.path, p.argv, &syscall.ProcAttr{
		Dir: p.dir, Env: p.env, Files: []uintptr{0, 1, 2}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
}

// ignoreSignals has nothing end this process that can be ignored. The runtime does not know of it, and so gives the
// command the defaults. That holds for the signals that the runtime handles, none of which process 1 ignores. A signal
// that stops the process is undone by process 1.
func ignoreSignals() {
	for signal := syscall.Signal(1); signal <= mostSignal; signal++ {
		switch signal {
		case syscall.SIGKILL, syscall.SIGSTOP:
		case syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU, syscall.SIGCONT, syscall.SIGCHLD, syscall.SIGURG,
			32, 33, 34: // The last ones are the runtime's and those of C libraries.
			if handlerOf(signal) == ignored {
				handle(signal, byDefault)
			}
		default:
			handle(signal, ignored) // A real fault ends the process all the same.
		}
	}
}

// Handlers of signals.
const byDefault, ignored uintptr = 0, 1

// action is what the kernel calls struct sigaction.
type action struct{ handler, flags, restorer, mask uintptr }

func handle(signal syscall.Signal, handler uintptr) {
	set := action{handler: handler}
	_, _, _ = syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(signal),
		uintptr(unsafe.Pointer(&set)), 0, unsafe.Sizeof(set.mask), 0, 0)
}

func handlerOf(signal syscall.Signal) uintptr {
	var is action
	_, _, _ = syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(signal), 0,
		uintptr(unsafe.Pointer(&is)), unsafe.Sizeof(is.mask), 0, 0)
	return is.handler
}

// mapped is the plan's file.
func mapped() ([]byte, error) {
	var about syscall.Stat_t
	if err := syscall.Fstat(plan, &about); err != nil {
		return nil, err
	}
	return syscall.Mmap(plan, 0, int(about.Size), syscall.PROT_READ, syscall.MAP_PRIVATE)
}

// reap takes the end of a child. The number is 0 if none has ended, and negative if there is none.
func reap(options int) (int, syscall.WaitStatus) {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, options, nil)
		switch err {
		case nil:
			return pid, status
		case syscall.EINTR:
		default:
			return -1, 0
		}
	}
}

// alone reports whether no child is left.
func alone() bool {
	for {
		if pid, _ := reap(syscall.WNOHANG); pid <= 0 {
			return pid < 0
		}
	}
}

// report writes a report to process 1, as a whole unless that has ended.
func report(k Kind, value int) {
	raw := Report{Supervisor: syscall.Getpid(), Kind: k, Value: value}.encode()
	for {
		if _, err := syscall.Write(reports, raw[:]); err != syscall.EINTR {
			return
		}
	}
}
