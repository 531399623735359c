// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package initproc is process 1 of a workspace's container. It starts the serving process, and starts it again when it
// dies; forks a supervisor for each command that the serving process asks for; reaps every child; kills whatever it
// adopts; and ends all when the container stops.
//
// All processes of a command are the descendants of its supervisor. Process 1 adopts them only when that is killed, and
// then the command counts as ended once process 1 has killed them.
//
// It holds what must outlive the serving process: the pipe that each command writes to, and the exit of each command
// until the serving process has put that on disk. So a crash of the serving process ends no command and loses nothing:
// writers meanwhile find their pipe full and wait. It reads no output, opens no files, and listens to nobody else.
package initproc

import (
	"cmp"
	"context"
	"crypto/rand"
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

	"parley.dev/parley/internal/netguard/retry"
)

// Init is process 1. Where it is not, such as in a pod whose containers share their processes, it adopts the orphans
// below it just the same.
type Init struct {
	// Path and Argv of the serving process, which finds the socket as ServingDescriptor. Supervisors have the same path:
	// the program must import package supervisor.
	Path string
	Argv []string
	// Now returns the current time.
	Now func() time.Time
	Log *slog.Logger
	// Backoff is how long to wait before a serving process that ended is started again. Default: retry.Process.
	Backoff retry.Backoff
	// Grace is how long the commands have between SIGTERM and SIGKILL when the container stops; default: 20 s, since a
	// pod has 30 by default.
	Grace time.Duration

	// abandoned is closed when there is no time left to write down what has become of the commands.
	abandoned chan struct{}

	system system
	boot   string
	since  time.Time
	null   *os.File

	reports reports
	// adopted rings when something was adopted, which is to be killed.
	adopted bell

	table *table
}

// ServingDescriptor is where the serving process finds its end of the socket.
const ServingDescriptor = 3

// threads is more than process 1 ever needs at once.
const threads = 8

// system is what Init has the operating system do.
type system struct {
	fork func(path string, argv []string, attr *syscall.ProcAttr) (int, error)
	kill func(pid int, signal syscall.Signal) error
	// killAll ends everything below process 1.
	killAll func()
}

// Run starts the serving process, and returns when the context is done and everything has ended.
func (i *Init) Run(ctx context.Context) error {
	if err := i.prepare(); err != nil {
		return err
	}
	defer func() { _ = i.null.Close() }() // Nothing was written to it.
	var reading, hunting sync.WaitGroup
	reading.Go(i.readReports)
	stopped, quit := make(chan struct{}), make(chan struct{})
	reaped := i.reapUntil(quit)
	hunting.Go(func() { i.endAdoptedUntil(stopped) })
	served := make(chan struct{})
	go func() {
		defer close(served)
		i.serveUntil(quit)
	}()
	<-ctx.Done()
	i.endCommands()
	close(stopped)
	hunting.Wait()
	i.reap() // Whatever has ended is told before the serving process is let go.
	i.endAdopted()
	close(quit)
	i.endServing(served)
	<-reaped
	i.reports.close()
	reading.Wait()
	return nil
}

// prepare makes the process one that adopts orphans, and that commands, which run as the same user, cannot look into:
// it holds the tokens of who calls.
func (i *Init) prepare() error {
	if os.Getpid() != 1 {
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
			return fmt.Errorf("adopting orphans: %w", err)
		}
	}
	if err := errors.Join(Conceal(), keepToOneself()); err != nil {
		return err
	}
	handleIgnored()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("opening the standard input of commands: %w", err)
	}
	i.null = null
	i.reset()
	if i.reports, err = openReports(); err != nil {
		return err
	}
	runtime.GOMAXPROCS(min(2, runtime.GOMAXPROCS(0)))
	SpareThreads(threads)
	return nil
}

// handleIgnored handles the signals that were ignored when the process began, as below nohup, and does nothing about
// them: what it starts then begins with the defaults. A supervisor could not correct that for its command without a
// moment in which the command could end it. Of all others the runtime handles those that end a process.
func handleIgnored() {
	for _, s := range []os.Signal{syscall.SIGHUP, syscall.SIGINT} {
		if signal.Ignored(s) {
			signal.Notify(make(chan os.Signal, 1), s)
		}
	}
}

// SpareThreads has the runtime make so many threads at once. Where commands have forked as many processes as may be, it
// could make none, and a Go program that cannot ends.
func SpareThreads(n int) {
	var made, gone sync.WaitGroup
	release := make(chan struct{})
	for range n {
		made.Add(1)
		gone.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			made.Done()
			<-release
		})
	}
	made.Wait()
	close(release)
	gone.Wait()
}

// Conceal keeps other processes of the same user from reading the memory and the descriptors of this one.
func Conceal() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("concealing the process: %w", err)
	}
	return nil
}

// keepToOneself sees to it that nothing is inherited but what is meant to be: some container runtimes leave files open.
func keepToOneself() error {
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

func (i *Init) reset() {
	i.boot, i.since, i.abandoned = rand.Text(), i.Now(), make(chan struct{})
	i.adopted = make(bell, 1)
	if i.system.fork == nil {
		i.system = system{fork: syscall.ForkExec, kill: syscall.Kill, killAll: i.killAll}
	}
	i.table = &table{now: i.Now, log: i.Log, kill: i.system.kill,
		commands: map[string]*command{}, supervised: map[int]*command{}}
	i.Backoff = cmp.Or(i.Backoff, retry.Process)
	i.Grace = cmp.Or(i.Grace, 20*time.Second)
}

// reapUntil reaps children until it is told to quit. Then the channel is closed.
func (i *Init) reapUntil(quit <-chan struct{}) <-chan struct{} {
	children, done := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(children, syscall.SIGCHLD)
	go func() {
		defer close(done)
		defer signal.Stop(children)
		for {
			i.reap()
			select {
			case <-children:
			case <-quit:
				return
			}
		}
	}()
	return done
}

// reap takes the exits of all children that have ended. It holds the lock, under which children are also forked and
// signalled: so no number is taken over by another process between a look at the table and what follows from it.
func (i *Init) reap() {
	i.table.mu.Lock()
	defer i.table.mu.Unlock()
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG|syscall.WUNTRACED, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil || pid <= 0:
			return
		case !status.Stopped():
			i.ended(pid, status)
		case i.table.supervised[pid] != nil:
			_ = i.system.kill(pid, syscall.SIGCONT) // Whatever has stopped it: it is needed.
		}
	}
}

// ended notes that a child has ended: a supervisor, the serving process, or what was adopted. A supervisor that ends by
// itself leaves nothing behind.
func (i *Init) ended(pid int, status syscall.WaitStatus) {
	if s := i.table.serving; s != nil && s.pid == pid {
		s.status = status
		close(s.ended)
		return
	}
	i.takeReports() // It may have said something before it ended.
	c := i.table.supervised[pid]
	delete(i.table.supervised, pid)
	switch {
	case c == nil: // There may be more where it came from.
		i.adopted.ring()
	case c.done != nil:
	case status.Exited() && !c.isStarted(): // There was no room for its threads.
		i.table.refuse(c, syscall.EAGAIN)
	case status.Exited() && c.exit != nil:
		i.table.finish(c, *c.exit, false)
	default:
		i.table.orphaned = append(i.table.orphaned, c)
		i.adopted.ring()
	}
}
