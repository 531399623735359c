// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package initproc

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"parley.dev/parley/internal/workspace/agent/supervisor"
)

// reports are a pipe, whose write end all supervisors have.
type reports struct {
	file *os.File
	raw  syscall.RawConn
	// descriptor is that of the file.
	descriptor int
	write      int
}

func openReports() (reports, error) {
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
		return reports{}, fmt.Errorf("making a pipe for supervisors: %w", err)
	}
	if err := unix.SetNonblock(ends[0], true); err != nil {
		return reports{}, errors.Join(fmt.Errorf("preparing a pipe for supervisors: %w", err),
			unix.Close(ends[0]), unix.Close(ends[1]))
	}
	file := os.NewFile(uintptr(ends[0]), "reports")
	raw, err := file.SyscallConn()
	if err != nil {
		return reports{}, errors.Join(fmt.Errorf("preparing a pipe for supervisors: %w", err),
			file.Close(), unix.Close(ends[1]))
	}
	return reports{file: file, raw: raw, descriptor: ends[0], write: ends[1]}, nil
}

func (r reports) close() {
	_ = r.file.Close() // It was only read.
	_ = unix.Close(r.write)
}

// readReports takes reports as they come, until the pipe is closed.
func (i *Init) readReports() {
	_ = i.reports.raw.Read(func(uintptr) bool { // Closing it ends this.
		i.table.mu.Lock()
		defer i.table.mu.Unlock()
		i.takeReports()
		return false
	})
}

// takeReports takes all reports that are there. The caller holds the lock, so that what a supervisor has said is known
// before its end is looked at.
func (i *Init) takeReports() {
	for {
		var raw [supervisor.ReportBytes]byte
		n, err := unix.Read(i.reports.descriptor, raw[:])
		switch {
		case errors.Is(err, unix.EINTR):
		case n != len(raw):
			return
		default:
			i.table.reported(supervisor.ParseReport(raw))
		}
	}
}
