// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package initproc does what process 1 of a workspace's container has to do. It forks a supervisor for each command,
// reaps every child, kills what it adopts, and ends all commands when the container stops.
//
// The processes of a command are the descendants of its supervisor. Process 1 adopts them only if the supervisor is
// killed. The command is over once process 1 has killed them.
package initproc

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"parley.dev/parley/internal/workspace/agent/supervisor"
)

// Init forks, signals and reaps all children of this process: nothing else in it may start programs. If it is not
// process 1, such as in a pod whose containers share their processes, it adopts the orphans below it all the same.
type Init struct {
	log    *slog.Logger
	now    func() time.Time
	system system

	// null is the standard input of commands.
	null *os.File
	// reports and reporter are the ends of a pipe, whose write end all supervisors have.
	reports, reporter *os.File
	// adopted wakes who kills what was adopted; hunting is held while that happens.
	adopted chan struct{}
	hunting sync.Mutex
	// starts are the commands of which it is not known whether they were started.
	starts sync.WaitGroup

	// mu is held while children are forked, signalled and reaped. So no process id changes its owner in between.
	mu sync.Mutex
	// supervised are commands by the process ids of supervisors that have not been reaped.
	supervised map[int]*Command
	// orphaned are commands whose supervisor was killed, and of which processes may still run.
	orphaned []*Command
	stopping bool
}

// system is what Init has the operating system do.
type system struct {
	fork func(path string, argv []string, attr *syscall.ProcAttr) (int, error)
	kill func(pid int, signal syscall.Signal) error
}

// New makes this process one that adopts orphans, and whose memory and descriptors commands cannot read: they run as
// the same user, and it has the tokens of its callers. It reaps from then on.
func New(now func() time.Time, log *slog.Logger) (*Init, error) {
	if os.Getpid() != 1 {
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
			return nil, fmt.Errorf("adopting orphans: %w", err)
		}
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("protecting the memory of the process: %w", err)
	}
	if err := closeOnExec(); err != nil {
		return nil, err
	}
	i, err := newInit(now, log)
	if err != nil {
		return nil, err
	}
	spareThreads()
	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD)
	go func() {
		for range children {
			i.reap()
		}
	}()
	go i.readReports()
	go i.endAdoptedForever()
	return i, nil
}

func newInit(now func() time.Time, log *slog.Logger) (*Init, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("opening the standard input of commands: %w", err)
	}
	reports, reporter, err := pipe()
	if err != nil {
		return nil, errors.Join(err, null.Close())
	}
	return &Init{
		log: log, now: now, system: system{fork: syscall.ForkExec, kill: syscall.Kill},
		null: null, reports: reports, reporter: reporter,
		adopted: make(chan struct{}, 1), supervised: map[int]*Command{},
	}, nil
}

// pipe makes a pipe. Reading from it takes no thread, and who writes to it waits until there is room.
func pipe() (read, write *os.File, err error) {
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
		return nil, nil, fmt.Errorf("making a pipe: %w", err)
	}
	err = unix.SetNonblock(ends[0], true)
	read, write = os.NewFile(uintptr(ends[0]), "pipe"), os.NewFile(uintptr(ends[1]), "pipe")
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("preparing a pipe: %w", err), read.Close(), write.Close())
	}
	return read, write, nil
}

// threads are one for each request that may wait for a disk.
const threads = 64

// spareThreads has the runtime create threads that it keeps. Where commands have forked as many processes as the
// container may have, it could create none, and a Go program that cannot ends.
func spareThreads() {
	var created, ended sync.WaitGroup
	release := make(chan struct{})
	created.Add(threads)
	for range threads {
		ended.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			created.Done()
			<-release
		})
	}
	created.Wait()
	close(release)
	ended.Wait()
}

// closeOnExec has commands inherit no file that a container runtime left open.
func closeOnExec() error {
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return fmt.Errorf("looking for open files: %w", err)
	}
	for _, entry := range open {
		if descriptor, err := strconv.Atoi(entry.Name()); err == nil && descriptor > 2 {
			unix.CloseOnExec(descriptor)
		}
	}
	return nil
}

// reap takes the exits of all children that have ended.
func (i *Init) reap() {
	i.mu.Lock()
	defer i.mu.Unlock()
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG|syscall.WUNTRACED, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil || pid <= 0:
			return
		case !status.Stopped():
			i.ended(pid, status)
		case i.supervised[pid] != nil:
			_ = i.system.kill(pid, syscall.SIGCONT) // A command has stopped its supervisor.
		}
	}
}

// ended notes that a child has ended. A supervisor that ends by itself leaves nothing behind.
func (i *Init) ended(pid int, status syscall.WaitStatus) {
	i.takeReports() // It may have reported something before it ended.
	c := i.supervised[pid]
	delete(i.supervised, pid)
	switch {
	case c == nil: // Its children are adopted now.
		i.wakeHunter()
	case c.state.Done:
	case status.Exited() && !c.settled: // There was no room for its threads.
		i.refuse(c, syscall.EAGAIN)
	case status.Exited() && c.state.Exited:
		i.change(c, State{Exited: true, Status: c.state.Status, At: c.state.At, Done: true})
	default:
		i.orphaned = append(i.orphaned, c)
		i.wakeHunter()
	}
}

func (i *Init) wakeHunter() {
	select {
	case i.adopted <- struct{}{}:
	default: // It is awake, and looks again.
	}
}

// readReports takes reports as they come.
func (i *Init) readReports() {
	raw, err := i.reports.SyscallConn()
	if err == nil {
		err = raw.Read(func(uintptr) bool {
			i.mu.Lock()
			defer i.mu.Unlock()
			i.takeReports()
			return false
		})
	}
	if !errors.Is(err, os.ErrClosed) {
		i.log.Error("The reports of supervisors cannot be read", "error", err)
	}
}

// takeReports takes all reports that are there. The caller holds the lock.
func (i *Init) takeReports() {
	raw, err := i.reports.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(descriptor uintptr) { // It is open.
		for {
			var report [supervisor.ReportBytes]byte
			n, err := unix.Read(int(descriptor), report[:])
			switch {
			case errors.Is(err, unix.EINTR):
			case n != len(report):
				return
			default:
				i.reported(supervisor.ParseReport(report))
			}
		}
	})
}
