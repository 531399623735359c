// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"parley.dev/parley/internal/text/clip"
	"parley.dev/parley/internal/workspace/protocol"
)

// shownName is how many characters of a path, a glob or a pattern a refusal repeats.
const shownName = 300

// passage is a part of a file, which a refusal does not cut.
type passage string

func refuse(code protocol.ErrorCode, format string, args ...any) error {
	for i := range args {
		if name, ok := args[i].(string); ok {
			args[i] = clip.Ellipsis(name, shownName)
		}
	}
	return &protocol.Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// faults are errors of the operating system, with their refusals: %q is the path.
var faults = []struct {
	errs    []error
	code    protocol.ErrorCode
	message string
}{
	{[]error{fs.ErrNotExist}, protocol.NotFound, "There is no file or directory %q."},
	{[]error{syscall.ENOTDIR}, protocol.NotFound, "A part of the path %q is a file and no directory."},
	{[]error{syscall.EISDIR, fs.ErrExist}, protocol.NotRegular, "%q is a directory, not a file."},
	{[]error{syscall.ENXIO, syscall.ENODEV}, protocol.NotRegular, "%q is no regular file."},
	{[]error{syscall.ENOSPC, syscall.EDQUOT}, protocol.NoSpace,
		"There is no space left for %q: the workspace's storage is full. Remove what is not needed and try again."},
	{[]error{syscall.EFBIG}, protocol.TooLarge, "%q would be larger than the file system or the limits allow."},
	{[]error{syscall.EROFS}, protocol.PermissionDenied, "%q cannot be changed: its file system is read-only."},
	{[]error{fs.ErrPermission}, protocol.PermissionDenied,
		"No permission for %q: look at its owner and mode, and at those of its directory."},
	{[]error{syscall.ENAMETOOLONG}, protocol.BadRequest, "The path %q, or a name in it, is too long."},
	{[]error{syscall.ELOOP}, protocol.BadRequest, "The links of %q lead in a circle."},
}

// explain turns an error of the operating system into a refusal for a path.
func explain(path string, err error) error {
	for _, known := range []error{context.Canceled, context.DeadlineExceeded, errChanged} {
		if errors.Is(err, known) {
			return err
		}
	}
	if refused, ok := errors.AsType[*protocol.Error](err); ok {
		return refused
	}
	for _, fault := range faults {
		for _, target := range fault.errs {
			if errors.Is(err, target) {
				return refuse(fault.code, fault.message, path)
			}
		}
	}
	return refuse(protocol.Internal, "%q: %v.", path, err)
}

// describe names the type of a file.
func describe(mode fs.FileMode) string {
	switch mode.Type() {
	case 0:
		return "a file"
	case fs.ModeDir:
		return "a directory"
	case fs.ModeSymlink:
		return "a link"
	case fs.ModeNamedPipe:
		return "a named pipe"
	case fs.ModeSocket:
		return "a socket"
	}
	return "a device"
}

func notRegular(path string, mode fs.FileMode) error {
	return refuse(protocol.NotRegular, "%q is %s, not a regular file.", path, describe(mode))
}
